"""``sluice periods``: the periods of a schedule, or those of many by day, and what became of each (L23)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated

import typer

from sluice import checks, names, render, wording
from sluice.cli import filters, frame, tables
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.names import SCHEDULE

DAYS_OF_MONTH = "1   5    10   15   20   25   30"
LEGEND = "f failed, m missing, r running, w waiting, s succeeded, . no period; of several in a day the first of these"


def periods(
    of: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Schedules, such as demo.flights.clean. None: all of -n or -a."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", "--since", metavar="WHEN", help="The first day or instant; by default the first partition."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--to", "--until", metavar="WHEN", help="The end, which is excluded. By default now."),
    ] = None,
    namespace: frame.Namespace = None,
    app_name: filters.OfApp = None,
    workflow: filters.Workflows = None,
    tag: filters.Tags = None,
    state: filters.States = None,
    text: filters.TextOfName = None,
    limit: Annotated[int, frame.Limit] = 100,
    as_json: frame.Json = False,
) -> None:
    """Show the periods of a schedule, oldest first, and what became of each.

    Each is missing, waiting, running, succeeded or failed. For a time trigger, the list begins 31 days ago.
    Of several schedules, or of an app or a namespace, show a letter for each of the last 31 days.
    """
    chosen = filters.read(tag, workflow, state)
    for option, given in (("--tag", tag), ("--workflow", workflow), ("--state", state), ("--text", text)):
        if of and given:
            raise WrongUsage(f"expected {option} without NAME", option, f"leave out NAME, or {option}")
    if of is None or len(of) != 1:
        _by_day(_matrix_of(of or (), namespace, app_name, chosen, text), since, until, limit, as_json)
        return
    (name,) = of
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
            values_of(item),
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
        what = f"--partition {values_of(hole)}" if hole["values"] else f"--from {hole['at']} --to ..."
        render.note(f"sluice backfill begin {full} {what} --only missing")


def values_of(item: Document) -> str:
    """The values of a period, or the instant of a fire."""
    return wording.pairs(item["values"]) if item["values"] else wording.entry(item["at"])


def _matrix_of(
    given: Sequence[str], namespace: str | None, app_name: str | None, chosen: filters.Filters, text: str | None
) -> tuple[str, dict[str, str | None]]:
    """The path of the periods of many schedules, and the filters that choose these."""
    space, app = names.place(namespace, app_name)
    full = [names.full_name(SCHEDULE, name, namespace, app_name) for name in given]
    spaces = {name.partition(".")[0] for name in full}
    if len(spaces) > 1:
        raise WrongUsage(
            f"expected schedules of one namespace, got {', '.join(sorted(spaces))}", "NAME", "ask for each"
        )
    in_space = spaces.pop() if spaces else frame.needed_namespace(space)
    workflow = None if chosen.workflow is None else filters.workflow_name(chosen.workflow, in_space, app)
    wanted = {"schedules": ",".join(full) or None, "app": app if not full else None, "q": text}
    wanted |= {"tag": chosen.tag, "workflow": workflow, "state": chosen.state}
    return f"/v1/namespaces/{segment(in_space)}/periods", wanted


def _by_day(
    wanted: tuple[str, dict[str, str | None]], since: str | None, until: str | None, limit: int, as_json: bool
) -> None:
    """Print a letter for each day of each schedule, a line for each month."""
    path, query = wanted
    last = (_day(until, "--to") - timedelta(days=1)).isoformat() if until is not None else None
    first = _day(since, "--from").isoformat() if since is not None else None
    found = list(frame.connect().pages(path, {**query, "from": first, "to": last}, limit or None, largest=100))
    items = [item for page in found for item in page["items"]][: limit or None]
    answer = {**found[-1], "items": items}
    if as_json:
        render.machine(answer)
        return
    begin = date.fromisoformat(answer["from"])
    rows = [(item["schedule"], *line) for item in items for line in _months(begin, item["days"])]
    render.table(render.stdout(), ("SCHEDULE", "MONTH", DAYS_OF_MONTH), rows)
    for item in items:
        if item["why"]:
            render.note(f"{item['schedule']} has no periods here: {item['why']}")
    tables.rest(answer, len(items), "sluice periods ...")
    render.note(LEGEND)


def _months(begin: date, days: str) -> Iterator[tuple[str, str]]:
    """The letters of each month, with the letter of its first day in the first place."""
    while days:
        here = ((begin.replace(day=1) + timedelta(days=31)).replace(day=1) - begin).days
        yield f"{begin:%Y-%m}", f"{'':{begin.day - 1}}{days[:here]}"
        begin, days = begin + timedelta(days=here), days[here:]


def _day(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongUsage(f"expected a day, got {text!r}", field, "such as 2026-03-01") from None
