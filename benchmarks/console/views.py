"""The views of the console that are measured: their addresses in the world of `world.py`, and what shows their first
rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.console.world import BACKFILLED, BIG, DAG, LIMIT, NAMESPACE, VERSIONED

ROWS = "table tbody tr"
PART = ".panel:has(> nav.tabs) table tbody tr"  # of the open part of a schedule: others have tables, too
RUNS = '[role="row"] a'  # of a list that draws only what is on screen


@dataclass(frozen=True)
class View:
    """``rows`` is a selector, ``words`` what is typed into the palette, and ``budget_ms`` the most for the first
    rows."""

    name: str
    path: str
    rows: str
    words: str | None = None
    budget_ms: float = 1_000

    def asked(self) -> dict[str, Any]:
        return {name: content for name, content in asdict(self).items() if content is not None and name != "budget_ms"}


def views(run_id: str) -> tuple[View, ...]:
    """All measured views; ``run_id`` is that of a run that has ended."""
    ns = f"/{NAMESPACE}"
    fed = f"{ns}/schedules/a1/fed-00001"
    return (
        View("Home", ns, ".big-figure", budget_ms=1_500),
        View("Schedules", f"{ns}/schedules", '[role="row"] a.name'),
        View("Schedule", fed, RUNS),
        View("Versions", f"{ns}/schedules/seed/{VERSIONED}?tab=versions", PART),
        View("Timeline, 1 h", f"{ns}/timeline", ".timeline-labels a"),
        View("Timeline, 24 h", f"{ns}/timeline?span=1440", ".timeline-labels a"),
        View("Queue", f"{ns}/queue", '[role="row"] a.name', budget_ms=2_000),
        View("Runs", f"{ns}/runs", '[role="row"] a.name'),
        View("Run", f"{ns}/runs/{run_id}", ".page-head .state"),
        View("DAG", f"{ns}/dags/seed/{DAG}", ROWS),
        View("Dataset", f"{ns}/datasets/{BIG}", ".calendar-cell.ok"),
        View("Limits", f"{ns}/limits?name={LIMIT}", '[role="row"] button.name'),
        View("Backfills", f"{ns}/schedules/seed/{BACKFILLED}?tab=backfills", PART),
        View("Dead letters", f"{ns}/dead-letters", '[role="row"] a.name'),
        View("Report", f"{ns}/report", ROWS),
        View("Palette", ns, '[role="option"] >> text=fed-00011', words="fed-00011"),
    )
