"""``sluice policies``: the throttling policies of a namespace."""

from __future__ import annotations

from typing import Annotated

from sluice.cli import filters, frame, get
from sluice.names import POLICY


def policies(
    namespace: frame.Namespace = None,
    tag: filters.OwnTag = None,
    text: filters.TextOfName = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List throttling policies. ``sluice describe policy NAME`` shows one with its queue."""
    get.print_list(POLICY, namespace, tag, text, limit, as_json)
