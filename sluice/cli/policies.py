"""``sluice policies``: the throttling policies of a namespace."""

from __future__ import annotations

from typing import Annotated

from sluice import names, render
from sluice.cli import frame, tables
from sluice.names import POLICY


def policies(
    namespace: frame.Namespace = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List throttling policies. ``sluice describe policy NAME`` shows one with its queue."""
    path = names.collection_path(POLICY, [frame.needed_namespace(namespace)])
    answer = frame.connect().listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no policies here")
    else:
        tables.definitions(render.stdout(), POLICY, items, frame.now())
    tables.rest(answer, len(items), "sluice policies ...")
