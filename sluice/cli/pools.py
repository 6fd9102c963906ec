"""``sluice pools``: the pools of a namespace."""

from __future__ import annotations

from typing import Annotated

from sluice.cli import filters, frame, get
from sluice.names import POOL


def pools(
    namespace: frame.Namespace = None,
    tag: filters.OwnTag = None,
    text: filters.TextOfName = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List pools. ``sluice describe pool NAME`` shows one with its use."""
    get.print_list(POOL, namespace, tag, text, limit, as_json)
