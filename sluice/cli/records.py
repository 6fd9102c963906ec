"""``sluice records``: work that never became a run, with the reason and the instant."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import checks, names, render
from sluice.cli import frame, search, tables
from sluice.client import segment
from sluice.names import SCHEDULE

KINDS = ("ABORTED", "EXPIRED", "SKIPPED", "DROPPED", "COALESCED", "LATE")


def records(
    namespace: frame.Namespace = None,
    app: frame.App = None,
    schedule: frame.OfSchedule = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="KIND", help=f"Only this: {', '.join(KINDS).lower()}.")
    ] = None,
    day: Annotated[str | None, typer.Option("--day", metavar="DAY", help="Only this day (UTC): 2026-11-20.")] = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List work that was aborted, expired, skipped, dropped or coalesced, newest first, and why."""
    wanted = None if kind is None else checks.one_of(kind, KINDS, "--kind")
    search.check_day(day)
    if schedule is not None:
        path = f"{names.path_of(SCHEDULE, names.full_name(SCHEDULE, schedule, namespace, app))}/records"
        query: dict[str, str | None] = {}  # the API filters this list by nothing
    else:
        path = f"/v1/namespaces/{segment(frame.needed_namespace(namespace))}/records"
        query = {"day": day}
    maximum = limit or None
    search_for = search.Wanted(
        (lambda record: record["kind"] == wanted) if wanted else None,
        day,
        "at",
        hide=schedule is None and not everything,
    )
    found = search.search(frame.connect(), path, query, maximum, search_for)
    answer = found.answer
    if as_json:
        render.machine(answer)
        return
    frame.note_left_out(found.left_out)
    items = answer["items"][:maximum]
    if not items:
        render.note("no records match" if wanted or day else "no records yet: no work was aborted, dropped or skipped")
        return
    tables.records(render.stdout(), items, frame.now())
    tables.rest(answer, len(items), "sluice records ...")
