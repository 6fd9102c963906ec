"""Permits that go back to their lines: of a job that will not start with them, and of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.ids import holder_of
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.slots import Slots
from chalicelib.core.limits.writes import Ended, ReleasePermit
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run


def return_held(job: Job, states: Mapping[str, LimitState], now: Instant) -> list[ReleasePermit]:
    """Give back what a job holds that will not start with it: slots, and its entries in logs."""
    back: list[ReleasePermit] = []
    for line in job.held:
        state = states.get(line) or LimitState(line)
        wake = now if state.waiters > 0 else None
        if names.returns_permit(line):
            back.append(ReleasePermit(line, wake, units=units_at(line, job.units)))
        elif names.is_rate_window(line):
            back.append(ReleasePermit(line, wake, Ended(holder_of(job.job_id, job.attempt), state)))
    return back


def give_back(
    permits: tuple[str, ...], states: Mapping[str, LimitState], now: Instant, run: Run | None = None
) -> list[ReleasePermit]:
    """Give the slots of a run back; where somebody waits, the very same write wakes the queue. The line learns of a
    success when it started and ended."""
    plan: list[ReleasePermit] = []
    for line in permits:
        if not names.returns_permit(line):
            continue
        state = states.get(line) or LimitState(line)
        ended = _ended(run, state) if run is not None else None
        plan.append(
            ReleasePermit(line, now if state.waiters > 0 else None, ended, units_at(line, run.units if run else 0))
        )
    return plan


def units_at(line: str, units: int) -> int:
    """How much comes back to a line: of a pool what was taken, of any other one slot."""
    return units if names.is_pool(line) and units else 1


def units_of(asks: tuple[PermitRequest, ...], before: int) -> int:
    """What a job holds of its pool with these permits; ``before``: what it held already. 0: of no pool."""
    return next((ask.units for ask in asks if isinstance(ask, Slots) and names.is_pool(ask.line)), before)


def _ended(run: Run, state: LimitState) -> Ended:
    holder = holder_of(run.run_id, run.attempt)
    if run.state != "SUCCEEDED":
        return Ended(holder, state)
    return Ended(holder, state, run.claimed_at, run.moved_at)
