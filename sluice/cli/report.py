"""``sluice report``: the report of a day, workflow by workflow (H3)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sluice import checks, render, wording
from sluice.cli import filters, frame, tables
from sluice.client import segment
from sluice.errors import WrongUsage

# The orders of --sort: the field, and whether the largest value comes first.
ORDERS = {
    "name": ("workflow", False),
    "cost": ("cost_usd", True),
    "failed": ("failed", True),
    "late": ("lateness_p99_ms", True),
    "slow": ("duration_p95_ms", True),
    "runs": ("runs", True),
}
COLUMNS = (
    *("WORKFLOW", "RUNS", "SUCCESS", "FAILED", "RETRIES", "NOT RUN", "LATE P50", "LATE P99", "TOOK P50", "TOOK P95"),
    *("WAITED P95", "MISSED", "COST", "TOOK Δ7D", "COST Δ7D"),
)


def report(
    namespace: frame.Namespace = None,
    app: filters.OfApp = None,
    workflow: filters.OfWorkflow = None,
    text: filters.TextOfName = None,
    day: Annotated[
        str | None, typer.Option("--day", metavar="DAY", help="A day (UTC), such as 2026-11-20; by default the newest.")
    ] = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="BY", help=f"One of {', '.join(ORDERS)}.", show_default=True)
    ] = "name",
    limit: Annotated[int, frame.Limit] = 50,
    as_json: frame.Json = False,
) -> None:
    """Show the report of a day: runs, success, lateness, durations and cost of each workflow."""
    checks.day(day)
    if sort not in ORDERS:
        raise WrongUsage(f"expected one of {', '.join(ORDERS)}, got {sort!r}", "--sort")
    place = filters.place_of(namespace, app, None)
    name, full = str(place.namespace), place.workflow(workflow)
    # The API sorts by name and filters nothing; any other order, and a filter, needs all pages.
    is_filtered = bool(app or workflow or text)
    maximum = (limit or None) if sort == "name" and not is_filtered else None
    pages = list(frame.connect().pages(f"/v1/namespaces/{segment(name)}/reports", {"day": day}, maximum))
    answer = {**pages[0], "items": [item for page in pages for item in page["items"]]}
    answer["next_cursor"] = pages[-1].get("next_cursor")
    fitting = [item for item in answer["items"] if _fits(item["workflow"] or "", place.app, full, text)]
    items = _sorted(fitting, *ORDERS[sort])[: limit or None]
    if as_json:
        render.machine({**answer, "items": items})
        return
    if not items:
        render.note(f"nothing{' like that' if is_filtered else ''} ran in {name} on {answer['day']}")
        return
    render.note(f"{name} on {answer['day']} (UTC)")
    render.table(render.stdout(), COLUMNS, [_row(item) for item in items])
    if answer["next_cursor"] or len(items) < len(fitting):
        tables.rest({"next_cursor": "more"}, len(items), "sluice report ...")


def _fits(workflow: str, app: str | None, full: str | None, text: str | None) -> bool:
    """Whether a line of a report is of an app, of a workflow or DAG, and of a name with a text."""
    return (
        (app is None or workflow.split(".")[1:2] == [app])
        and full in (None, workflow, wording.as_written(workflow))
        and (text is None or text.lower() in _name(workflow).lower())
    )


def _name(workflow: str) -> str:
    """The workflow of a line as people know it: ``demo.flights.nightly`` for the starts of a DAG, and
    ``messages of demo.flights`` for those of an app, which count as one workflow."""
    app, is_of_messages, _ = workflow.partition(".~")
    return f"messages of {app}" if is_of_messages else wording.as_written(workflow)


def _sorted(items: list[Any], field: str, largest_first: bool) -> list[Any]:
    """The items in the order of a field; unknown values come last in both directions."""
    known = [item for item in items if item.get(field) is not None]
    known.sort(key=lambda item: item[field], reverse=largest_first)
    return known + [item for item in items if item.get(field) is None]


def _row(item: dict[str, Any]) -> tuple[render.Cell, ...]:
    return (
        _name(item["workflow"]) if item["workflow"] else "(none ran)",
        str(item["runs"]),
        _share(item.get("success_rate")),
        _count(item.get("failed")),
        _count(item.get("retries")),
        _count(item.get("not_run")),
        _took(item.get("lateness_p50_ms")),
        _took(item.get("lateness_p99_ms")),
        _took(item.get("duration_p50_ms")),
        _took(item.get("duration_p95_ms")),
        _took(item.get("waited_p95_ms")),
        _count(item.get("sla_misses")),
        wording.NOTHING if item.get("cost_usd") is None else f"${item['cost_usd']:,.2f}",
        _change(item.get("duration_p50_change")),
        _change(item.get("cost_change")),
    )


def _share(share: float | None) -> str:
    """A share in percent, rounded down, so that 100 % means all."""
    return wording.NOTHING if share is None else f"{int(share * 1000) / 10:g} %"


def _count(number: int | None) -> str | None:
    return wording.NOTHING if number is None else str(number) if number else None


def _took(ms: int | None) -> str:
    return wording.duration(None if ms is None else ms / 1000)


def _change(share: float | None) -> str:
    return wording.NOTHING if share is None else f"{share:+.0%}"
