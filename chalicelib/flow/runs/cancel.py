"""Cancel runs: the wish is stored on the run first, then carried out until the target says that it has ended."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.jobs import claim
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import Replace
from chalicelib.ports import MAX_RACES, Ports


def oldest(ports: Ports, limit_name: LimitState, limit: int, why: str) -> int:
    """Wish the end of as many of a line's oldest runs as leave room for one more. Returns how many were asked."""
    by_age = sorted(limit_name.starts.items(), key=lambda start: (start[1], start[0]))
    too_many = limit_name.active - limit + 1
    asked = 0
    for holder, _ in by_age[: max(too_many, 0)]:
        asked += request_cancel(ports, *claim.parse_holder(holder), why)
    return asked


def request_cancel(ports: Ports, run_id: str, attempt: int, why: str) -> bool:
    """Store that a run is to end, and hint it. False if it has ended, or is to end already."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        run = ports.runs.run(run_id, attempt)
        if run is None or run.cancel or states.is_terminal(run.state):
            return False
        if ports.ledger.commit([Replace(_to_end(run, why, now))]) is None:
            ports.hints.send([run_ref(run_id, attempt)], now, now)
            return True
    raise RuntimeError(f"the wish to cancel run {run_id} lost {MAX_RACES} races; it will be made again")


def _to_end(run: Run, why: str, now: int) -> Run:
    return replace(run, cancel=True, reason=why, wake_at=now, leases=0, rev=run.rev + 1)
