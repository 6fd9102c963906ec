"""Cancel runs: first store the request on the run, then repeat it until the target reports the end of the run."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import ids, states
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.why import Why
from chalicelib.core.writes import Replace
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def oldest(ports: Ports, state: LimitState, limit: int, why: Why, within: str | None = None) -> int:
    """Cancel as many of the oldest runs of a limit as one more run needs; with ``within``, only those of this
    namespace. Returns how many cancels were requested."""
    own = [start for start in state.starts.items() if within is None or start[0].startswith(f"{within}.")]
    by_age = sorted(own, key=lambda start: (start[1], start[0]))
    too_many = state.active - limit + 1
    requested = 0
    for holder, _ in by_age[: max(too_many, 0)]:
        requested += request_cancel(ports, *ids.attempt_of(holder), why)
    return requested


def request_cancel(ports: Ports, run_id: str, attempt: int, why: Why) -> bool:
    """Store a cancel request on a run and hint the run. Returns False if the run has ended or has such a request.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = ports.rows.get(Run, run_id, attempt)
        if run is None or run.cancel or states.is_terminal(run.state):
            return False
        ends = replace(run, cancel=True, reason=why, wake_at=now, leases=0, rev=run.rev + 1)
        if ports.ledger.commit([Replace(ends)]) is None:
            ports.hints.send([run_ref(run_id, attempt)], now, now)
            return True
    raise too_many_conflicts(f"the request to cancel run {run_id}", "it will be repeated")
