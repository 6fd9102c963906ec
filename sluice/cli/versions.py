"""``sluice versions``: the versions of a schedule, and the changes of each (L7)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import names, render
from sluice.cli import frame, tables
from sluice.names import SCHEDULE


def versions(
    schedule: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    namespace: frame.Namespace = None,
    app: frame.App = None,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List the versions of a schedule, newest first."""
    full = names.full_name(SCHEDULE, schedule, namespace, app)
    answer = frame.connect().listing(f"{names.path_of(SCHEDULE, full)}/versions", most=limit or None)
    if as_json:
        render.machine(answer)
        return
    tables.versions(render.stdout(), answer["items"], frame.now())
    tables.rest(answer, len(answer["items"]), "sluice versions ...")
