"""How the newest runs of a namespace have ended: counts, and the ones that failed last."""

from __future__ import annotations

from collections import Counter

from chalicelib.core.instants import DAY, iso
from chalicelib.core.views import At, View
from chalicelib.flow.views.lists import MAX_DAYS
from chalicelib.flow.views.views import RunView, run_view
from chalicelib.ports import Ports

NEWEST = 500  # attempts that are counted
SHOWN = 8  # of those that failed


class OutcomesView(View):
    """The newest attempts of a namespace, by state: ``runs`` of them, the oldest from ``since``. ``failed`` are the
    last ones that failed. ``more``: there are older ones."""

    runs: int
    more: bool
    since: At | None
    states: dict[str, int]
    failed: list[RunView]


def outcomes(ports: Ports, namespace: str) -> OutcomesView:
    """The newest `NEWEST` attempts of the last two weeks by state, and in full the last `SHOWN` of them that failed.
    ``more``: there are older ones. The reads are eventually consistent."""
    now = ports.clock.now()
    days = [f"{namespace}#{iso(now - back * DAY)[:10]}" for back in range(MAX_DAYS)]
    found = ports.runs.spans("day", days, now - MAX_DAYS * DAY, now + DAY, NEWEST + 1)
    newest = found[:NEWEST]
    failed = [(span.run_id, span.attempt) for span in newest if span.state == "FAILED"][:SHOWN]
    rows = {(run.run_id, run.attempt): run for run in ports.runs.several(failed, strong=False)}
    return {
        "runs": len(newest),
        "more": len(found) > NEWEST,
        "since": iso(newest[-1].claimed_at) if newest else None,
        "states": dict(sorted(Counter(span.state for span in newest).items())),
        "failed": [run_view(rows[name], prices=ports.settings.prices) for name in failed if name in rows],
    }
