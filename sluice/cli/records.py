"""``sluice records``: work that never became a run, or whose run was aborted or cancelled, with reason and instant."""

from __future__ import annotations

import heapq
from typing import Annotated

import typer

from sluice import checks, render
from sluice.cli import filters, frame, search, tables
from sluice.client import Client
from sluice.errors import WrongUsage

KINDS = ("ABORTED", "EXPIRED", "SKIPPED", "DROPPED", "COALESCED", "LATE", "CANCELLED")
OF_RUNS = ("ABORTED", "CANCELLED")  # states of runs that are listed beside the records


def records(
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    schedule: frame.OfSchedule = None,
    workflow: filters.OfWorkflow = None,
    target: filters.OfTarget = None,
    tag: filters.OfTag = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="KIND", help=f"Only this: {', '.join(KINDS).lower()}.")
    ] = None,
    text: filters.Text = None,
    day: frame.Day = None,
    since: filters.Since = None,
    until: filters.Until = None,
    everything: frame.Everything = False,
    limit: Annotated[int, frame.Limit] = 20,
    as_json: frame.Json = False,
) -> None:
    """List work that was aborted, expired, skipped, dropped, coalesced or cancelled, newest first, and why."""
    wanted = None if kind is None else checks.one_of(kind, KINDS, "--kind")
    place, maximum = filters.place_of(namespace, app, schedule), limit or None
    for option, given_here in (("--workflow", workflow), ("--target", target)):
        if schedule is not None and given_here is not None:
            hint = "the records of a schedule do not say it: leave one of them out"
            raise WrongUsage(f"expected one of --schedule and {option}, got both", option, hint)
    given: filters.Given = {"workflow": workflow, "target": target, "tag": tag, "text": text, "day": day}
    asked = filters.rows_of(place, frame.now(), **given, since=since, until=until)
    hide = not (schedule or everything)
    client = frame.connect()
    found = search.Found({"items": [], "next_cursor": None}, 0)
    if wanted != "CANCELLED":
        of_kind = {} if wanted is None else {"kind": wanted}
        found = search.search(client, f"{place.path}/records", {**asked, **of_kind}, maximum, hide)
    states = [state for state in OF_RUNS if wanted in (None, state)]
    runs = [_runs(client, f"{place.path}/runs", {**asked, "state": state}, maximum, hide) for state in states]
    lists = [each.answer["items"] for each in (found, *runs)]
    items = list(heapq.merge(*lists, key=lambda record: str(record["at"]), reverse=True))
    answer = {"items": items, "next_cursor": found.answer["next_cursor"]}
    if as_json:
        render.machine(answer)
        return
    frame.note_left_out(found.left_out + sum(each.left_out for each in runs))
    shown = items[:maximum]
    if not shown:
        render.note(
            "no records match" if wanted or asked else "no records yet: no work was aborted, dropped or skipped"
        )
        return
    tables.records(render.stdout(), shown, frame.now())
    tables.rest({"next_cursor": answer["next_cursor"] or len(items) > len(shown)}, len(shown), "sluice records ...")


def _runs(client: Client, path: str, query: dict[str, str | None], maximum: int | None, hide: bool) -> search.Found:
    """The runs in a state, newest first, in the form of records. A run belongs to the day of its claim."""
    found = search.search(client, path, query, maximum, hide)
    records = [
        {
            "id": run["run_id"],
            "kind": run["state"],
            "schedule": run["schedule"],
            "reason": run.get("reason"),
            "at": run.get("ended_at") or run["claimed_at"],
            "count": 1,
        }
        for run in found.answer["items"]
    ]
    return search.Found({**found.answer, "items": records}, found.left_out)
