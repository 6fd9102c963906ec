"""``sluice jobs``: the work that waits to run."""

from __future__ import annotations

from typing import Annotated

from sluice import names, render
from sluice.cli import frame, tables
from sluice.client import segment
from sluice.names import SCHEDULE


def jobs(
    namespace: frame.Namespace = None,
    app: frame.App = None,
    schedule: frame.OfSchedule = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """List the jobs that wait, and what for."""
    if schedule is not None:
        path = f"{names.path_of(SCHEDULE, names.full_name(SCHEDULE, schedule, namespace, app))}/jobs"
    else:
        path = f"/v1/namespaces/{segment(frame.needed_namespace(namespace))}/jobs"
    answer = frame.connect().listing(path, most=limit or None)
    if as_json:
        render.machine(answer)
        return
    if not answer["items"]:
        render.note("no jobs wait")
        return
    tables.jobs(render.stdout(), answer["items"], frame.now())
    tables.rest(answer, len(answer["items"]), "sluice jobs ...")
