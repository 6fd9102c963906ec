"""Prepare the deliveries that are due at one instant, before that instant: read, decide, build (E2, E6).

Fires that waited, and are woken together, are prepared in the same way. Their instant is that of their hint. Rows are
read a hundred per call. A job that needs a permit or an external answer, or that was tried before, is left to
the check of single jobs. That check delivers by the same code (`flow/deliveries/send.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from chalicelib.core.changes import replace
from chalicelib.core.definitions import overrides
from chalicelib.core.fires import bundles as core_bundles
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check, claim, gather
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names
from chalicelib.core.limits.route import paces_of
from chalicelib.core.rows import delivery_lease, kinds, sort_keys
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import Ref, events_of, ref_of
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs import queued
from chalicelib.core.schedules import closings
from chalicelib.core.schedules.closings import Counts
from chalicelib.core.why import Why
from chalicelib.core.writes import ExpectOpen
from chalicelib.flow import facts as facts_of
from chalicelib.flow import fire_events
from chalicelib.flow.deliveries import bundles
from chalicelib.flow.deliveries.books import MAX_WRITES
from chalicelib.flow.deliveries.ends import Ready, called_run, ready_of
from chalicelib.flow.deliveries.join import Joining
from chalicelib.flow.deliveries.leases import Elsewhere
from chalicelib.flow.facts import Parsed
from chalicelib.flow.ingest import fires
from chalicelib.flow.runs import context
from chalicelib.flow.runs.context import build, partition_of, with_named
from chalicelib.ports import Ports

T = TypeVar("T")

BATCH_SIZE = 500  # bounds memory, which holds the rows of these jobs twice
DETACHED_WRITES = 4  # that detach a job in its queue
MIN_BATCH = 2  # a single job gets the ordinary check: if it is not delivered, a batch would have read it twice


class Busy(NamedTuple):
    """A job that another invocation delivers in a batch; its lease ends at ``until``."""

    ref: Ref
    until: Instant


class Gone(NamedTuple):
    """A job that does not exist any more: it is delivered, or dropped."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries that are ready, the jobs that wait for permits of their policies, and the refs that need a check
    one by one. ``busy`` are those that another invocation delivers, each with the end of its lease. ``counts`` are the
    counts of closings of their namespaces, from before the rows were read."""

    ready: tuple[Ready, ...]
    others: tuple[Ref, ...]
    joining: tuple[Joining, ...] = ()
    busy: tuple[Busy, ...] = ()
    counts: Counts = field(default_factory=dict)


def prepare(ports: Ports, refs: Sequence[Ref], due: Instant) -> Batch:
    """Read, decide and build as if it were ``due``. Writes nothing and sends nothing."""
    fires_only = [ref for ref in refs if ref.kind == "job" and sort_keys.may_be_fire(ref.parts[2])]
    if sum(map(events_of, fires_only)) < MIN_BATCH:
        return Batch((), tuple(refs))
    namespaces = {ref.parts[0].partition(".")[0] for ref in fires_only}
    now = ports.clock.now()
    counts = closings.settled(ports.jobs.closings(namespaces), now)
    found: list[Ready | Joining | Busy | Gone] = []
    parsed, elsewhere, at = Parsed(), Elsewhere(ports), max(due, ports.clock.now())
    for part in _parts(fires_only, BATCH_SIZE):
        found += _prepare(ports, part, at, parsed, elsewhere)
    known = {each.row_ref if isinstance(each, Ready) else each.ref for each in found}
    others = tuple(ref for ref in refs if ref not in known)
    ready = tuple(each for each in found if isinstance(each, Ready))
    joining = tuple(each for each in found if isinstance(each, Joining))
    return Batch(ready, others, joining, tuple(each for each in found if isinstance(each, Busy)), counts)


def _prepare(
    ports: Ports, refs: Sequence[Ref], at: Instant, parsed: Parsed, elsewhere: Elsewhere
) -> Iterable[Ready | Joining | Busy | Gone]:
    named = {ref: (ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs}
    wanted: list[Key] = [kinds.key(Job, *key) for key in named.values()]
    wanted += [kinds.key(ScheduleState, schedule) for schedule, _, _ in named.values()]
    seen = ports.prefetch.read(ports, wanted)
    rows = {ref: seen.rows.get(Job, *key) for ref, key in named.items()}
    yield from (Gone(ref) for ref, job in rows.items() if job is None)
    jobs = {ref: job for ref, job in rows.items() if job is not None and not job.closed}
    # A late job may have been hinted again while another invocation delivers it: then its other rows need no read.
    ends = elsewhere.ends(jobs.values(), at)
    busy = {ref: until for ref, job in jobs.items() if (until := ends.get(delivery_lease.mark(job))) is not None}
    yield from (Busy(ref, until) for ref, until in busy.items())
    jobs = {ref: job for ref, job in jobs.items() if ref not in busy}
    seen = seen.prefetch.read(seen, _needs(seen, jobs.values()))
    seen = seen.prefetch.read(seen, _waiting(seen, jobs.values(), parsed))
    for ref, job in jobs.items():
        facts = facts_of.read(seen, job, parsed)
        # A fire that was moved since it was hinted has a hint for its own instant; no lease may keep it from that one.
        is_sooner = seen.clock.now() < delivery_lease.due_of(job) < at
        if job.is_bundle and bundles.has_to_change(ports, job, facts):
            continue
        decision = None if is_sooner or fires.is_event(job, facts, at) else check.decide(job, facts, at)
        if isinstance(decision, Launch) and _is_plain(job, facts, decision):
            if job.is_bundle:
                yield from bundles.ready(ports, job, facts, decision.why, at)
                continue
            yield ready_of(ports, job, facts, decision.why, at)
        elif isinstance(decision, Launch) and job.queued_in is None and is_paced(job, facts, decision):
            (pace,) = paces_of(decision.asks)
            yield Joining(ref, job, facts, pace, decision.why)


def _needs(seen: Ports, jobs: Iterable[Job]) -> list[Key]:
    """The rows that each job's decision needs: its definition, its run and its record."""
    wanted: list[Key] = []
    for job in jobs:
        schedule_state = seen.rows.get(ScheduleState, job.schedule)
        wanted += [kinds.key(Version, schedule_state.schedule, schedule_state.version)] if schedule_state else []
        wanted += [kinds.key(Run, job.job_id, job.attempt), kinds.key(Record, job.job_id)]
        wanted += [kinds.key(Fire, core_bundles.fire_id_of(job))] if fire_events.may_be_in_bundle(job) else []
    return wanted


def _waiting(seen: Ports, jobs: Iterable[Job], parsed: Parsed) -> list[Key]:
    """The rows of the jobs that each fire could join, and of its workflow: a job may already wait under those keys."""
    wanted: list[Key] = []
    for job in jobs:
        schedule_state = seen.rows.get(ScheduleState, job.schedule)
        schedule = parsed.schedule(seen, schedule_state)
        if schedule_state is not None and schedule is not None:
            now = seen.clock.now()
            copies = (
                claim.keys_of_copy(job, schedule, schedule_state, now)
                if check.is_prepared(job) and not job.is_bundle
                else ()
            )
            wanted += [kinds.key(Job, job.schedule, job.generation, key) for key in copies]
            wanted.append(kinds.key(Definition, "workflow", schedule.workflow))
    return wanted


def prepare_queued(ports: Ports, waiters: Sequence[Waiter], at: Instant) -> list[tuple[Waiter, Ready]]:
    """The same for jobs in the queue of a policy, as if they had their permits for the instant ``at``. Returns those
    that may be delivered without a claim, in the given order.

    Detaches the jobs that still gather events: an event that comes while a job is sent begins the next job. The job of
    a period is claimed, and keeps its key until then."""
    rows = {waiter: bundles.row_of(waiter) for waiter in waiters}
    named = {row: (row.job_schedule, row.job_generation, row.job_sort_key) for row in rows.values()}
    wanted: list[Key] = [kinds.key(Job, *key) for key in named.values()]
    wanted += [kinds.key(ScheduleState, row.job_schedule) for row in named]
    seen = ports.prefetch.read(ports, wanted)
    found = ((row, seen.rows.get(Job, *key)) for row, key in named.items())
    jobs = {row: job for row, job in found if job is not None and queued.waiter_of(job) == row}
    seen = seen.prefetch.read(seen, _needs(seen, jobs.values()))
    decided: dict[Waiter, _Decided] = {}
    parsed = Parsed()
    for row, job in jobs.items():
        facts = facts_of.read(seen, job, parsed)
        if job.closed or (job.is_bundle and bundles.has_to_change(ports, job, facts)):
            continue
        decision = check.decide(job, facts, at, row.limit_name)
        of_period = facts.schedule is not None and facts.schedule.per is not None and job.traits.gathers
        if isinstance(decision, Launch) and is_paced(job, facts, decision) and not of_period:
            decided[row] = _Decided(job, facts, decision.why)
    detached = _detached(ports, [each.job for each in decided.values() if each.job.traits.gathers])
    ready: list[tuple[Waiter, Ready]] = []
    likes: dict[Waiter, Run] = {}
    for waiter, row in rows.items():
        each = decided.get(row)
        if each is None:
            continue
        if each.job.is_bundle:
            one = bundles.queued_event(ports, each.job, waiter, each.facts, each.why, at, likes)
            ready += [(waiter, one)] if one is not None else []
            continue
        kept = detached.get(ref_of(each.job)) if each.job.traits.gathers else each.job
        if kept is not None:
            ready.append((waiter, _queued(seen, kept, each.facts, each.why, at)))
    return ready


class _Decided(NamedTuple):
    job: Job
    facts: Facts
    why: Why


def _queued(ports: Ports, job: Job, facts: Facts, why: Why, at: Instant) -> Ready:
    """A job in the queue of a policy as the delivery that it will be."""
    run = replace(called_run(ports, job, facts, why, at), waited_for=claim.waited_for(job, at))
    events = None
    if not job.traits.timed:
        run = with_named(ports, run, facts.origin)
        events = context.events_of(ports, run)
        run = replace(run, partition=partition_of(run, events))
    return Ready(ref_of(job), job, facts, run, build(ports, run, events), job.queued_in)


def _detached(ports: Ports, gathering: Sequence[Job]) -> dict[Ref, Job]:
    """Detach gathering jobs in their queue, many in one transaction. Returns the detached jobs, by the former refs.
    Those that have changed since are left out."""
    detached: dict[Ref, Job] = {}
    for part in _parts(gathering, MAX_WRITES // DETACHED_WRITES):
        plans = {ref_of(job): (gather.detach(job), claim.detached_in_queue(job)) for job in part}
        while plans:
            # A transaction may name a row once, and jobs of one schedule expect the same generation.
            writes = [write for _, plan in plans.values() for write in plan]
            expected = dict.fromkeys(write for write in writes if isinstance(write, ExpectOpen))
            conflict = ports.ledger.commit([*(each for each in writes if not isinstance(each, ExpectOpen)), *expected])
            if conflict is None:
                detached |= {ref: later for ref, (later, _) in plans.items()}
                break
            refused = conflict.writes
            left = {ref: kept for ref, kept in plans.items() if not any(write in refused for write in kept[1])}
            plans = left if len(left) < len(plans) else {}
    return detached


def _is_plain(job: Job, facts: Facts, decision: Launch) -> bool:
    """Whether the job is a fire that needs and holds no permit, and its target has no lifecycle: then Sluice delivers
    it without a claim."""
    waits = job.queued_in is not None
    return not decision.asks and job.traits.timed and job.tries == 0 and not waits and _is_delivered(job, facts)


def is_paced(job: Job, facts: Facts, decision: Launch) -> bool:
    """Whether the job needs a permit of its policy and no other, and would be delivered without a claim otherwise."""
    policy = facts.schedule.policy if facts.schedule is not None else None
    asked = [ask.limit_name for ask in decision.asks]
    return policy is not None and asked == [names.policy_limit(policy)] and _is_delivered(job, facts)


def _is_delivered(job: Job, facts: Facts) -> bool:
    """Whether the target of the job has no lifecycle, and the job holds no permit. A job with a probe is left out: the
    probe is called at the instant itself, job by job. The next attempt of a run is left out, too: it replaces that
    run."""
    if facts.schedule is None:
        return False
    constraints = overrides.constraints_of(facts.schedule, facts.workflow)
    if not all(constraint.decidable_ahead for constraint in constraints):
        return False
    if overrides.deadline_of(facts.schedule, facts.workflow) is not None:
        return False
    untracked = facts.workflow is not None and not facts.workflow.target.has_lifecycle
    return untracked and not job.held and not job.traits.retries


def _parts(things: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))
