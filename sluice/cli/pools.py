"""``sluice pools``: the pools of a namespace."""

from __future__ import annotations

from typing import Annotated

from sluice import names, render
from sluice.cli import frame, tables
from sluice.names import POOL


def pools(
    namespace: frame.Namespace = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List pools. ``sluice describe pool NAME`` shows one with its use."""
    path = names.collection_path(POOL, [frame.needed_namespace(namespace)])
    answer = frame.connect().listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no pools here")
    else:
        tables.definitions(render.stdout(), POOL, items, frame.now())
    tables.rest(answer, len(items), "sluice pools ...")
