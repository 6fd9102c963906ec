"""``sluice datasets``: the datasets of a namespace, or the partitions of one dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame, tables
from sluice.names import DATASET


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show the partitions of this dataset.")] = None,
    namespace: frame.Namespace = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List datasets, or the partitions of one dataset."""
    if name is None:
        path = names.collection_path(DATASET, [frame.needed_namespace(namespace)])
    else:
        path = f"{names.path_of(DATASET, names.full_name(DATASET, name, namespace))}/partitions"
    answer = frame.connect().listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no partition is registered yet" if name else "no datasets here")
    elif name is None:
        tables.definitions(render.stdout(), DATASET, items, frame.now())
    else:
        tables.partitions(render.stdout(), items, frame.now())
    tables.rest(answer, len(items), "sluice datasets ...")
