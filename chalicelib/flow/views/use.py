"""The use of limits, as an explanation shows it: how many permits are taken, of how many, and by which runs."""

from __future__ import annotations

from collections.abc import Iterable

from chalicelib.core import ids
from chalicelib.core.constraints.constraint import Constraint
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.views import View

MAX_HOLDERS = 20  # runs of each limit in an answer


class UseView(View):
    """The permits of a limit that are taken, of how many, and by which runs."""

    used: int | None
    max: int | None
    held_by: list[str] | None


class UseOfLimitView(UseView):
    """A limit that may make a job wait. ``waiting`` counts its queue, and ``waits_here`` is whether this job is in
    it."""

    name: str
    text: str
    waiting: int
    waits_here: bool


NONE: UseView = {"used": None, "max": None, "held_by": None}


def of_constraint(constraint: Constraint, job: Job, known: Facts, now: Instant) -> UseView:
    """The use of the limit of a constraint; only nulls if it has none, or only counts."""
    workflow = known.schedule.workflow if known.schedule is not None else ""
    asks = tuple(constraint.permits(workflow, job.schedule.partition(".")[0]))
    return of_ask(asks[0], known.limit_state(asks[0].limit_name), now) if asks else NONE


def of_job(job: Job, known: Facts, asks: Iterable[PermitRequest], now: Instant) -> list[UseOfLimitView]:
    """The use of each limit that may make a job wait, in the order in which the job acquires permits."""
    bounds = [ask for ask in permits.with_fallbacks(tuple(asks)) if not permits.is_unlimited(ask)]
    return [
        {
            "name": ask.limit_name,
            "text": names.describe(ask.limit_name),
            **of_ask(ask, state, now),
            "waiting": state.waiters,
            "waits_here": job.queued_in is not None and names.whole(job.queued_in) == ask.limit_name,
        }
        for ask, state in ((ask, known.limit_state(ask.limit_name)) for ask in bounds)
    ]


def of_ask(ask: PermitRequest, state: LimitState, now: Instant) -> UseView:
    """The use of a limit, from a request of it and its state. ``held_by`` is None if the limit does not list the runs
    that hold its permits."""
    used, (maximum, _) = ask.used(state, now), ask.maximum
    if used is None:
        return NONE
    return {"used": used, "max": maximum, "held_by": None if ask.records_claim else holders(state)}


def holders(state: LimitState) -> list[str] | None:
    """The runs that hold slots of a limit, the longest first; None if the limit does not list them."""
    if not names.names_starts(state.limit_name):
        return None
    first = sorted(state.starts.items(), key=lambda start: (start[1], start[0]))
    return [ids.attempt_of(holder)[0] for holder, _ in first[:MAX_HOLDERS]]
