"""Permits that are released: those of a job that will not start with them, and those of a run that has ended."""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.ids import holder_of
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import PermitRequest, Slots
from chalicelib.core.limits.writes import Ended, ReleasePermit
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run


def return_held(job: Job, states: Mapping[str, LimitState], now: Instant) -> list[ReleasePermit]:
    """The writes that release the permits of a job that will not start with them: slots and entries in rate windows."""
    releases: list[ReleasePermit] = []
    for limit_name in job.held:
        state = states.get(limit_name) or LimitState(limit_name)
        wake = now if state.waiters > 0 else None
        if names.returns_permit(limit_name):
            releases.append(ReleasePermit(limit_name, wake, units=units_at(limit_name, job.units)))
        elif names.is_rate_window(limit_name):
            releases.append(ReleasePermit(limit_name, wake, Ended(holder_of(job.job_id, job.attempt), state)))
    return releases


def give_back(
    permits: tuple[str, ...], states: Mapping[str, LimitState], now: Instant, run: Run | None = None
) -> list[ReleasePermit]:
    """The writes that release the slots of a run. Where jobs wait, the same write wakes the queue. After a success the
    limit remembers when the run started and ended."""
    plan: list[ReleasePermit] = []
    for limit_name in permits:
        if not names.returns_permit(limit_name):
            continue
        state = states.get(limit_name) or LimitState(limit_name)
        ended = _ended(run, state) if run is not None else None
        wake = now if state.waiters > 0 else None
        plan.append(ReleasePermit(limit_name, wake, ended, units_at(limit_name, run.units if run else 0)))
    return plan


def units_at(limit_name: str, units: int) -> int:
    """How many units a limit gets back: of a pool all that were acquired, of any other limit one slot."""
    return units if names.is_pool(limit_name) and units else 1


def units_of(asks: tuple[PermitRequest, ...], before: int) -> int:
    """The units of its pool that a job holds with these permits; ``before`` if none of them is of a pool."""
    return next((ask.units for ask in asks if isinstance(ask, Slots) and names.is_pool(ask.limit_name)), before)


def _ended(run: Run, state: LimitState) -> Ended:
    holder = holder_of(run.run_id, run.attempt)
    if run.state != "SUCCEEDED":
        return Ended(holder, state)
    # `fresh` asks for a success of the workflow. That of a node with elements is when all of them have succeeded (W19).
    return Ended(holder, state, run.claimed_at, run.state_at if run.element is None else None)
