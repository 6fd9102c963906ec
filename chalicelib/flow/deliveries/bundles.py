"""Prepare the events of a bundle, take single events out of it, and bring it up to date before it is decided (E2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles, continued, fire
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import claim, plain
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import fire_events
from chalicelib.flow.check_result import CheckResult
from chalicelib.flow.deliveries.ends import Ready, called_run
from chalicelib.flow.runs.context import build
from chalicelib.ports import Ports

DIVIDED = 90  # events that become jobs in one transaction


def ready(ports: Ports, bundle: Job, facts: Facts, why: Why, at: Instant) -> list[Ready]:
    """The events of a bundle as deliveries. They differ in their ids, numbers and instants alone."""
    events = list(bundles.events(bundle))
    like = called_run(ports, events[0], facts, why, at)
    found: list[Ready] = []
    for job in events:
        run = _run_of(ports, like, job, bundle)
        found.append(Ready(ref_of(job), job, facts, run, build(ports, run), bundle=bundle, at=job.due_at or 0))
    return found


def _run_of(ports: Ports, like: Run, job: Job, bundle: Job) -> Run:
    request = replace(
        like.request,
        context_uri=ports.payloads.context_uri(job.job_id),
        client_token=ids.client_token(job.job_id, job.attempt),
        name=f"{job.job_id}-{job.attempt}"[-256:],
    )
    return replace(
        like,
        run_id=job.job_id,
        request=request,
        created_at=job.created_at,
        due_at=job.due_at,
        accepted_at=job.accepted_at,
        event=fire.event_of(job),
        spread=(job.index, Plan(*bundle.plan).events),
    )


def row_of(waiter: Waiter) -> Waiter:
    """The row in a queue for a waiter: that of its bundle, or its own."""
    found = bundles.waiter_of(waiter)
    return found[0] if found is not None else waiter


def queued_event(
    ports: Ports, bundle: Job, waiter: Waiter, facts: Facts, why: Why, at: Instant, likes: dict[Waiter, Run]
) -> Ready | None:  # fmt: skip
    """One event of a bundle in the queue of a policy as a delivery; None if it is not in the bundle any more. ``likes``
    keeps the run of each bundle from which those of its events differ."""
    found = bundles.waiter_of(waiter)
    if found is None or found[1] not in bundles.numbers(bundle):
        return None
    job = bundles.event_of(bundle, found[1])
    if found[0] not in likes:
        likes[found[0]] = called_run(ports, job, facts, why, at)
    run = replace(_run_of(ports, likes[found[0]], job, bundle), waited_for=claim.waited_for(job, at))
    return Ready(ref_of(job), job, facts, run, build(ports, run), bundle.queued_in, bundle)


def has_to_change(ports: Ports, bundle: Job, facts: Facts) -> bool:
    """Whether a bundle has to be brought up to date before it is decided: `bring_up_to_date`."""
    schedule, schedule_state, workflow = facts.schedule, facts.schedule_state, facts.workflow
    if schedule is None or schedule_state is None or schedule_state.generation != bundle.generation:
        return False  # its decision ends it
    if workflow is not None and not plain.is_bundled(schedule, workflow, facts.counted, facts.policy):
        return True
    if bundles.planned_anew(bundle, schedule, schedule_state) is not bundle:
        return True
    return bool(_ran_before(ports, bundle, schedule_state))


def bring_up_to_date(ports: Ports, bundle: Job, facts: Facts, now: Instant) -> CheckResult | None:
    """Bring a bundle up to date with the schedule: plan its events anew after a pause, without those that ran before.
    Divide it into jobs if its events need more than a delivery now. Returns None after a conflict."""
    schedule, schedule_state = facts.schedule, facts.schedule_state
    if schedule is None or schedule_state is None:
        raise ValueError("expected a bundle of a schedule")
    if before := _ran_before(ports, bundle, schedule_state):
        return _without(ports, bundle, before, now)
    later = bundles.planned_anew(bundle, schedule, schedule_state)
    if later is not bundle:
        if ports.ledger.commit([Replace(later)]) is not None:
            return None
        ports.hints.send([ref_of(later)], later.due_at or now, now)
        return CheckResult("waiting", Why.of("spread_again", "the rest of its fire is spread again after a pause"))
    return divide(ports, bundle, now)


def _ran_before(ports: Ports, bundle: Job, schedule_state: ScheduleState) -> list[int]:
    """The numbers of the events that ran in the former generation, because they were due before an update was
    committed."""
    number = next(iter(bundles.numbers(bundle)), None)
    if number is None:
        return []
    before = continued.double_of(bundles.event_of(bundle, number), schedule_state)
    if before is None:
        return []
    each = [continued.double_of(job, schedule_state) for job in bundles.events(bundle)]
    return fire_events.ran(ports, [job for job in each if job is not None])


def divide(ports: Ports, bundle: Job, now: Instant) -> CheckResult | None:
    """Make a job of each event of a bundle."""
    why = "its events are jobs of their own now, because they need more than a delivery"
    while bundle.waiting:
        events = [bundles.ahead(job, now) for job in bundles.events(bundle)][:DIVIDED]
        numbers = [job.index for job in events]
        if ports.ledger.commit([*fire_events.without(bundle, numbers), *map(Create, events)]) is not None:
            return None
        _hint(ports, events, now)
        bundle = bundles.without(bundle, numbers)
    return CheckResult("waiting", Why.of("divided", why))


def _hint(ports: Ports, jobs: Sequence[Job], now: Instant) -> None:
    by_instant: dict[Instant, list[Job]] = {}
    for job in jobs:
        by_instant.setdefault(max(now, job.due_at or now), []).append(job)
    ports.hints.send_all([(due, [ref_of(job) for job in group]) for due, group in by_instant.items()], now)


def _without(ports: Ports, bundle: Job, numbers: Collection[int], now: Instant) -> CheckResult | None:
    if ports.ledger.commit(fire_events.without(bundle, numbers)) is not None:
        return None
    rest = bundles.without(bundle, numbers)
    if rest.waiting:
        ports.hints.send([ref_of(rest)], max(now, rest.due_at or now), now)
    why = Why.of("divided", "some of its events ran before the schedule was updated")
    return CheckResult("waiting" if rest.waiting else "gone", why)
