"""``sluice periods``: the periods of a schedule, and what became of each (L23)."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice import checks, names, render, wording
from sluice.cli import frame, tables
from sluice.client import Document
from sluice.names import SCHEDULE


def periods(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A schedule, such as demo.flights.clean.")],
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="WHEN", help="The first day or instant. By default the first partition."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="WHEN", help="The end, which is excluded. By default now.")
    ] = None,
    namespace: frame.Namespace = None,
    app_name: frame.App = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """Show the periods of a schedule, oldest first, and what became of each.

    Each is missing, waiting, running, succeeded or failed. For a time trigger, the list begins 31 days ago.
    """
    full = names.full_name(SCHEDULE, name, namespace, app_name)
    ends = {
        option: checks.day_or_instant(given, f"--{option}") if given is not None else None
        for option, given in (("from", since), ("to", until))
    }
    answer = frame.connect().listing(f"{names.path_of(SCHEDULE, full)}/periods", ends, limit or None)
    if as_json:
        render.machine(answer)
        return
    items = answer["items"]
    if not items:
        render.note("no period has begun and ended in this span")
        return
    now = frame.now()
    rows: list[tuple[render.Cell, ...]] = [
        (
            of(item),
            render.state(item["state"]),
            wording.ago(item["since"], now) if item["since"] else None,
            str(item["revision"]) if item["revision"] else None,
            item["runs"][0] if item["runs"] else item["job_id"],
            item["why"],
        )
        for item in items
    ]
    render.table(render.stdout(), ("PERIOD", "STATE", "SINCE", "RUNS", "RUN", "WHY…"), rows)
    tables.rest(answer, len(items), f"sluice periods {name} ...")
    hole = next((item for item in items if item["state"] == "missing"), None)
    if hole is not None:
        what = f"--partition {of(hole)}" if hole["values"] else f"--from {hole['at']} --to ..."
        render.note(f"sluice backfill begin {full} {what} --only missing")


def of(item: Document) -> str:
    """The values of a period, or the instant of a fire."""
    return wording.pairs(item["values"]) if item["values"] else wording.entry(item["at"])
