"""``sluice records``: work that never became a run, or whose run was aborted or cancelled, with reason and instant."""

from __future__ import annotations

import heapq
from typing import Annotated

import typer

from sluice import checks, names, render
from sluice.cli import frame, search, tables
from sluice.client import Client, segment
from sluice.names import SCHEDULE

KINDS = ("ABORTED", "EXPIRED", "SKIPPED", "DROPPED", "COALESCED", "LATE", "CANCELLED")
OF_RUNS = ("ABORTED", "CANCELLED")  # states of runs that are listed beside the records


def records(
    namespace: frame.Namespace = None,
    app: frame.App = None,
    schedule: frame.OfSchedule = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="KIND", help=f"Only this: {', '.join(KINDS).lower()}.")
    ] = None,
    day: frame.Day = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List work that was aborted, expired, skipped, dropped, coalesced or cancelled, newest first, and why."""
    wanted = None if kind is None else checks.one_of(kind, KINDS, "--kind")
    search.check_day(day)
    if schedule is not None:
        parent = names.path_of(SCHEDULE, names.full_name(SCHEDULE, schedule, namespace, app))
        query: dict[str, str | None] = {}  # the API filters this list by nothing
    else:
        parent = f"/v1/namespaces/{segment(frame.needed_namespace(namespace))}"
        query = {"day": day}
    maximum = limit or None
    search_for = search.Wanted(
        (lambda record: record["kind"] == wanted) if wanted else None,
        day,
        "at",
        hide=schedule is None and not everything,
    )
    client = frame.connect()
    found = search.Found({"items": [], "next_cursor": None}, 0)
    if wanted != "CANCELLED":
        found = search.search(client, f"{parent}/records", query, maximum, search_for)
    states = [state for state in OF_RUNS if wanted in (None, state)]
    runs = [_runs(client, f"{parent}/runs", state, day, maximum, search_for.hide) for state in states]
    lists = [each.answer["items"] for each in (found, *runs)]
    items = list(heapq.merge(*lists, key=lambda record: str(record["at"]), reverse=True))
    answer = {"items": items, "next_cursor": found.answer["next_cursor"]}
    if as_json:
        render.machine(answer)
        return
    frame.note_left_out(found.left_out + sum(each.left_out for each in runs))
    shown = items[:maximum]
    if not shown:
        render.note("no records match" if wanted or day else "no records yet: no work was aborted, dropped or skipped")
        return
    tables.records(render.stdout(), shown, frame.now())
    tables.rest({"next_cursor": answer["next_cursor"] or len(items) > len(shown)}, len(shown), "sluice records ...")


def _runs(client: Client, path: str, state: str, day: str | None, maximum: int | None, hide: bool) -> search.Found:
    """The runs in a state, newest first, in the form of records. A run belongs to the day of its claim."""
    wanted = search.Wanted(lambda run: run["state"] == state, day, "claimed_at", hide=hide)
    found = search.search(client, path, {"state": state, "day": day}, maximum, wanted)
    records = [
        {
            "id": run["run_id"],
            "kind": state,
            "schedule": run["schedule"],
            "reason": run.get("reason"),
            "at": run.get("ended_at") or run["claimed_at"],
            "count": 1,
        }
        for run in found.answer["items"]
    ]
    return search.Found({**found.answer, "items": records}, found.left_out)
