"""Apply an event to a schedule exactly once: one transaction writes the applied event and the gathering job (T16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from chalicelib.core import ids
from chalicelib.core.access.grants import ForeignUse, waiting_for
from chalicelib.core.dags import rounds
from chalicelib.core.definitions import foreign
from chalicelib.core.definitions.foreign import UsedGrants
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.jobs import claim, gather, of_period, timeout
from chalicelib.core.jobs.gather import Begin, Gathered, Touch
from chalicelib.core.jobs.of_period import Place
from chalicelib.core.rows.event import CLAIMED_LIFE, AppliedEvent, Event, LastArrival
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription, Version
from chalicelib.core.steps import DOCUMENT, OverBudget, Steps, values_in
from chalicelib.core.triggers.event import custom_key
from chalicelib.core.triggers.parts import MAX_JOBS
from chalicelib.core.triggers.patterns import MAX_FOREIGN_STEPS, MAX_STEPS, Flattened
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, DeleteJob, ExpectNoRun, ExpectOpen, Put, PutLastArrival, Replace, Write
from chalicelib.flow import calendars, grants, many, wake
from chalicelib.flow.each import run_each
from chalicelib.flow.ingest import absences, roll_up
from chalicelib.flow.ingest.roll_up import Refused
from chalicelib.flow.notices import notices
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports, too_many_conflicts

# Longer than SQS keeps a message in a dead-letter queue (14 days), so that a repeated event finds the row.
APPLIED_LIFE = 45 * DAY
# What a request may take for the patterns of schedules: 0.4 s on a core; and for the documents and patterns of those of
# other namespaces: 0.1 s, of which one namespace may take 0.04 s.
MAX_OF_REQUEST = 1_000_000
MAX_FOREIGN_OF_REQUEST = 250_000
MAX_OF_FOREIGN_NAMESPACE = 100_000
NO_JOB = "-"  # the job of an applied event that only opposes leaves


class Budget:
    """What a request may spend on the patterns of schedules, and on the documents of those of other namespaces than
    that of its events. What it does not get to stays in the outboxes of its events, for the sweep."""

    def __init__(self) -> None:
        self.own, self._foreign = Steps(MAX_OF_REQUEST), Steps(MAX_FOREIGN_OF_REQUEST)
        self._parts: dict[str, Steps] = {}  # by the foreign namespace: what one spends delays no other
        self._read: dict[tuple[str, int], Schedule] = {}

    def foreign(self, schedule: str) -> Steps:
        """What is left for a schedule of another namespace."""
        namespace = schedule.partition(".")[0]
        return self._parts.setdefault(namespace, Steps(MAX_OF_FOREIGN_NAMESPACE, self._foreign))

    def foreign_document(self, ports: Ports, row: Subscription) -> Schedule | None:
        """The document of a schedule of another namespace. All events of the request share it, so it is read once.
        Raises `OverBudget` if the budget does not suffice."""
        key = row.schedule, row.version
        if key not in self._read:
            steps = self.foreign(row.schedule)
            steps.spend(DOCUMENT)
            version = ports.rows.get(Version, *key)
            if version is None:
                return None
            steps.spend(values_in(version.definition))
            self._read[key] = Schedule.model_validate(version.definition)
        return self._read[key]


def apply_to_all(
    ports: Ports,
    event: Event,
    rows: Iterable[Subscription],
    now: Instant,
    budget: Budget | None = None,
    begins: bool = True,
) -> None:
    """Apply an event to the schedules of these subscriptions, and hint the jobs that need a check.

    One failure does not stop the other schedules; the errors are raised at the end. With a ``budget``, a schedule that
    it does not suffice for is such a failure. ``begins``: as in `apply_event`.
    """
    touched = [list(group) for _, group in groupby(sorted(rows, key=_generation_of), key=_generation_of)]
    refs: list[Ref] = []
    payload = Flattened(event.payload)

    def one(group: list[Subscription]) -> None:
        gathering = [row for row in group if row.leaf != WAKE]
        refs.extend(apply_event(ports, event, gathering, now, payload=payload, budget=budget, begins=begins))
        if len(gathering) < len(group):
            wake.constrained(ports, group[0].schedule, group[0].generation)

    try:
        run_each(touched, one)
    finally:
        if refs:
            ports.hints.send(refs, now, now)


def _generation_of(row: Subscription) -> tuple[str, int]:
    return row.schedule, row.generation


def apply_event(
    ports: Ports,
    event: Event,
    rows: Sequence[Subscription],
    now: Instant,
    along: Sequence[Write] = (),
    payload: Flattened | None = None,
    budget: Budget | None = None,
    beside: Sequence[Event] = (),
    begins: bool = True,
) -> tuple[Ref, ...]:
    """Apply an event to the leaves of one generation of one schedule, with the writes ``along`` in one transaction.
    ``payload`` is that of the event, for callers that apply it to many schedules. The job gets the events ``beside``
    with it: they count for no leaf, and its run has them in its context.

    Returns the refs of the jobs whose trigger is met, for a hint: of one job, or of those in whose windows a partition
    is. A repeated event, a closed generation and an event accepted before the leaf began to gather change nothing. But
    a partition that was accepted before, or that begins nothing (``begins`` False), joins the jobs of its periods that
    wait: they have what the registry had when they began, and it may have been registered since.
    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row. Raises `OverBudget` if the ``budget`` of the request
    does not suffice.
    """
    found = _match(ports, event, rows, payload, budget, now, begins)
    if isinstance(found, Record):
        ports.ledger.put_all([Put(found)])
        return ()
    applied = _applied(ports, event, found)
    known = many.rows(ports, Job, [match.job_key for match in applied]) if applied else []
    refs = [_ref_of_met(job) for job in known]
    refs += [_apply(ports, match.mark(event), match, now, along, beside) for match in found if match not in applied]
    return tuple(ref for ref in refs if ref is not None)


def _applied(ports: Ports, event: Event, found: Sequence[_Match]) -> Sequence[_Match]:
    """Those of several jobs to which the event was applied before. So an invocation goes on where another one ended."""
    if len(found) < 2:
        return ()
    keys = [(match.row.schedule, match.row.generation, match.mark(event).id) for match in found]
    marks = {applied.event_id for applied in many.rows(ports, AppliedEvent, keys)}
    return [match for match in found if match.mark(event).id in marks]


def _apply(
    ports: Ports, event: Event, found: _Match, now: Instant, along: Sequence[Write], beside: Sequence[Event]
) -> Ref | None:
    """Apply an event to the job that it belongs to. Returns the ref of the job if its trigger is met."""
    for _ in range(MAX_CONFLICTS):
        match, granted = _granted(ports, found)
        if not match.met and not match.against:
            return None
        job = ports.rows.get(Job, *match.job_key)
        if job is None and not match.begins:
            return None
        if match.place is not None and job is not None:
            job = roll_up.caught_up(ports, match.row, match.place, event, job)
        ended = gather.ended(match.schedule, event, job, match.against)
        match = replace(match, against=absences.over(ports, match.schedule, job, ended))
        if not (match.met or match.against) or not _is_open(ports, match, job):
            return None
        counted = _of_period(ports, event, match, job, now)
        if isinstance(counted, Record):
            ports.ledger.put_all([Put(counted)])
            return None
        if not counted.met and not counted.against:
            return None  # a run of the period has the part
        plan = _plan(ports, event, counted, job, now)
        told = [Put(replace(plan.applied, event=each)) for each in beside]
        refused = ports.ledger.commit([*plan.writes, *told, *along, *plan.notices, *granted.expected])
        if refused is None:
            return _follow(ports, job, plan, now)
        if Create(plan.applied) in refused.writes:
            return _ref_of_met(job)
        if refused.of(ExpectOpen) or any(write in refused.writes for write in along):
            return None  # the generation was closed, or another invocation made the writes ``along``
    raise too_many_conflicts(f"applying event {event.id} to {found.row.schedule}", "it will be applied again")


@dataclass(frozen=True, slots=True)
class _Match:
    """The leaves of a schedule that an event touches: ``met`` count it, and of ``against`` it ends the absence.

    ``row`` is one of their subscriptions, and ``uses`` is what each leaf uses of other namespaces. ``place`` is the job
    of a period (T25), ``parts`` the number of the part for each leaf, and ``begin`` what the job begins with. ``name``
    is that of the event's mark, if the event belongs to several jobs. Without ``begins`` the event only joins a job
    that waits.
    """

    schedule: Schedule
    row: Subscription
    met: tuple[str, ...]
    against: tuple[str, ...]
    correlation: Mapping[str, str] | None
    uses: Mapping[str, tuple[ForeignUse, ...]]
    name: str = ""
    place: Place | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    begin: Begin | None = None
    begins: bool = True

    def mark(self, event: Event) -> Event:
        """The event under the id of its mark."""
        return of_period.marked(event, self.name)

    @property
    def job_key(self) -> tuple[str, int, str]:
        return self.row.schedule, self.row.generation, gather.gathering_key(self.correlation)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The writes that apply an event once. ``grown`` is the gathering job after them, and ``detached`` the job that
    leaves it. ``notices`` are those about the waiting job, if the event aborts it (W9)."""

    applied: AppliedEvent
    grown: Job | None
    detached: Job | None
    writes: list[Write]
    notices: list[Write]


def _match(
    ports: Ports,
    event: Event,
    rows: Sequence[Subscription],
    payload: Flattened | None,
    budget: Budget | None,
    now: Instant,
    begins: bool,
) -> Sequence[_Match] | Record:
    """What an event touches of a schedule, for each job that it belongs to; empty for nothing, and a record if the
    event should count but must not."""
    begins = begins and any(gather.counts_for(event, row) for row in rows)  # those of a generation begin together
    schedule = _document(ports, event, rows[0], budget) if rows and (begins or event.kind == "partition") else None
    if schedule is None or (schedule.per is None and not begins):
        return ()
    schedule = calendars.read_periods(ports, schedule)
    row, touched = rows[0], _touched(event, schedule, rows, payload, budget)
    if isinstance(touched, OverBudget):
        return _set_aside(event, row, str(touched), now)
    met, against = touched
    if not met and not against:
        return ()
    joined = gather.joined(schedule, event)
    if schedule.by == rounds.BY and not joined:
        return ()  # a single node that was run again alone; other nodes of the DAG do not react to it
    refusal = _refusal(ports, schedule, row.schedule, (*met, *against), event, len(joined))
    if refusal is not None:
        return _dropped(event, row, refusal, now)
    uses = {leaf: _uses_of(schedule, row.schedule, leaf) for leaf in (*met, *against)}
    if schedule.per is None:
        return [_Match(schedule, row, met, against, each.correlation, uses, each.mark) for each in joined]
    places = roll_up.places(ports, schedule, event, joined, met)
    if isinstance(places, Refused):
        return _dropped(event, row, places.why, now) if begins else ()
    return [
        _Match(schedule, row, place.leaves, (), place.correlation, uses, place.name, place, begins=begins)
        for place in places
    ]


def _of_period(ports: Ports, event: Event, match: _Match, job: Job | None, now: Instant) -> _Match | Record:
    """The match with the parts that the event is of the job of a period. It has no leaf if a run has the event already;
    a record if the event does not count. The match as it is without a period. Raises RuntimeError for a job whose time
    is over, and that its check has to end first."""
    if match.place is None:
        return match
    schedule, row, place, begin = match.schedule, match.row, replace(match.place, leaves=match.met), None
    leaves: Mapping[str, Progress] = job.leaves if job is not None else {}
    over = job is not None and not timeout.runs_anyway(schedule) and _has_timed_out(ports, job, schedule, event)
    if job is None or over:
        if job is not None and job.met_at is not None:
            raise RuntimeError(f"job {job.job_id} has timed out; event {event.id} is applied again when it has ended")
        found = roll_up.begin(
            ports, schedule, row, place, event, lambda leaf: not missing_grants(ports, schedule, row.schedule, leaf),
            now, job,
        )  # fmt: skip
        if found is None:
            return replace(match, met=())
        if isinstance(found, Refused):
            return _dropped(event, row, found.why, now)
        begin, leaves = found, found.leaves
    parts = of_period.numbers(place, event, {leaf: each.parts for leaf, each in leaves.items()})
    if not parts:
        return _dropped(event, row, f"is none of the partitions that {place.period.label} waits for", now)
    return replace(match, met=tuple(parts), parts=parts, begin=begin)


def _touched(
    event: Event, schedule: Schedule, rows: Sequence[Subscription], payload: Flattened | None, budget: Budget | None
) -> tuple[tuple[str, ...], tuple[str, ...]] | OverBudget:
    """The leaves that an event touches, as `gather.touched`, or what it costs too much to compare it with the patterns
    of this schedule. Raises `OverBudget` if it is the request that has spent its budget."""
    steps = _steps(event, rows[0].schedule, budget)
    try:
        return gather.touched(schedule, event, rows, (payload or Flattened(event.payload)).within(steps))
    except OverBudget as over_budget:
        if not steps.is_over:
            raise
        return over_budget


def _granted(ports: Ports, match: _Match) -> tuple[_Match, UsedGrants]:
    """The match without the leaves that lack a grant now, for which no event counts, and the grants of the others."""
    granted = grants.used_of(ports, [use for leaf in match.uses for use in match.uses[leaf]])
    if not granted.missing:
        return match, granted
    why = waiting_for(granted.missing).text
    logger.info("event not granted", extra={"schedule": match.row.schedule, "why": why})
    lacking = {leaf for leaf, uses in match.uses.items() if set(uses) & set(granted.missing)}
    met, against = (tuple(leaf for leaf in leaves if leaf not in lacking) for leaves in (match.met, match.against))
    return replace(match, met=met, against=against), granted


def _is_open(ports: Ports, match: _Match, job: Job | None) -> bool:
    """Whether the generation still gathers, and not for a run of a former DAG of this name."""
    if job is not None:
        return not job.closed
    return match.schedule.by != rounds.BY or _is_of_this_life(ports, match.correlation, match.row)


def _plan(ports: Ports, event: Event, match: _Match, job: Job | None, now: Instant) -> _Plan:
    """The writes that apply an event to the gathering job as it was read."""
    schedule, row = match.schedule, match.row
    over = _has_timed_out(ports, job, schedule, event)
    touches = [Touch(event, match.met, match.parts)]
    gathered = gather.gather(job, touches, schedule, row, match.correlation, now, match.against, over, match.begin)
    counted = gathered.job or (job if match.place is not None else None)
    own = counted.job_id if match.met and counted is not None else NO_JOB
    applied = AppliedEvent(row.schedule, row.generation, event, own, _expiry(schedule, now))
    seen = _arrivals(ports, event, row, match.against)
    grown, changes = _changes(job, gathered, row)
    writes = [Create(applied), *changes, *seen, *_beside(row, changes)]
    writes += [ExpectNoRun(grown)] if match.begin is not None and grown is not None else []
    dropped = gathered.dropped
    aborted = dropped if dropped is not None and dropped.kind == "ABORTED" else None
    due = notices.of_job(ports, job, "aborted", aborted.reason, now) if job is not None and aborted is not None else []
    return _Plan(applied, grown, gathered.detached, writes, due)


def _refusal(ports: Ports, schedule: Schedule, name: str, leaves: Sequence[str], event: Event, jobs: int) -> str | None:
    """Why an event does not count for a schedule, or None: its namespace may no longer use what these leaves name, such
    as an alarm, or the event lacks a correlation key, or has a value that is not listed. ``jobs`` are those to which it
    belongs."""
    found = (gather.leaf_of(schedule, leaf) for leaf in leaves)
    named = [each for leaf in found if leaf is not None for each in leaf.named()]
    if named:
        from chalicelib.flow.definitions import allowed  # few events are changes of alarms

        refusal = allowed.refusal_of(ports, name.partition(".")[0], named)
        if refusal is not None:
            return f"does not count: {refusal}"
    if jobs > MAX_JOBS:
        return of_period.TOO_MANY
    if jobs:
        return None
    unlisted = gather.unlisted(schedule, event)
    if unlisted is not None:
        return f"is for {unlisted}, which the values of the schedule do not list, and does not count"
    return f"carries no value of every correlation key ({', '.join(schedule.by)}) and does not count"


def _uses_of(schedule: Schedule, name: str, leaf: str) -> tuple[ForeignUse, ...]:
    """What a leaf uses of other namespaces. A run that the own schedule has started needs no grant any more: it had
    one."""
    found = gather.leaf_of(schedule, leaf)
    return tuple(use for use in foreign.of_leaf(name, found) if use.kind != "run") if found is not None else ()


def missing_grants(ports: Ports, schedule: Schedule, name: str, leaf: str) -> tuple[ForeignUse, ...]:
    """The grants that a leaf of a schedule lacks at present. Without them no event counts for it."""
    return grants.used_of(ports, _uses_of(schedule, name, leaf)).missing


def _is_of_this_life(ports: Ports, correlation: Mapping[str, str] | None, row: Subscription) -> bool:
    """Whether a DAG run began after this node was put. A DAG that is deleted and created again under the same name must
    not react to runs of the old one (W4)."""
    begun = rounds.parse((correlation or {})[rounds.KEY]).dag_run
    start = ids.parse_job_id(begun)
    if start is not None and start.generation >= row.generation:
        return True  # a DAG's nodes are put before its start schedule, and generations are instants
    run = ports.rows.get(Run, begun, 1)
    return run is None or run.claimed_at >= row.generation


def _has_timed_out(ports: Ports, job: Job | None, schedule: Schedule, event: Event) -> bool:
    """Whether the timeout of the waiting job had ended when the event was accepted. A pause only prolongs a timeout, so
    the schedule state with the pauses is read only if the timeout has ended without them."""
    if job is None or not timeout.is_over(job, schedule, None, event.accepted_at):
        return False
    return timeout.is_over(job, schedule, ports.rows.get(ScheduleState, job.schedule), event.accepted_at)


def _changes(job: Job | None, gathered: Gathered, row: Subscription) -> tuple[Job | None, list[Write]]:
    """The job as it will be stored, and the writes for that."""
    grown = gathered.job
    record: list[Write] = [Put(gathered.dropped)] if gathered.dropped else []
    record += claim.beside(job, gathered.detached) if job is not None and gathered.detached is not None else []
    if grown is None:
        return None, [DeleteJob(job, exact=True), *record] if job is not None and record else []
    # A job that already queues keeps its sort key. Any other job with a complete match is detached, if the schedule
    # gives each match its own job.
    if row.detached and grown.met_at is not None and grown.queued_in is None:
        detached = gather.detach(grown)
        out: list[Write] = [DeleteJob(job, exact=True)] if job is not None else []
        return detached, [*out, Create(detached), *record]
    if job is None:
        return grown, [Create(grown)]
    return grown, [Replace(grown, over=job), *record]


def _beside(row: Subscription, changes: Sequence[Write]) -> list[Write]:
    """The condition that the generation is open, for a plan that does not write the uncorrelated gathering job.

    The tombstone of a closed generation has the sort key of that job. A plan for correlated or detached jobs, or with
    applied events alone, must expect that there is no tombstone.
    """
    touched = [write.row if isinstance(write, Create | Replace) else write.job if isinstance(write, DeleteJob) else None
               for write in changes]  # fmt: skip
    sort_keys = {job.sort_key for job in touched if isinstance(job, Job)}
    return [] if gather.gathering_key(None) in sort_keys else [ExpectOpen(row.schedule, row.generation)]


def _follow(ports: Ports, before: Job | None, plan: _Plan, now: Instant) -> Ref | None:
    """Send what follows from an applied event. Returns the ref of a job whose trigger is met, for a check; else None.

    A job that a timer will meet needs a check at its ``wake_at``. Only its first event sends a hint for that, and each
    check sends the next one. So many events do not cost many hints.
    """
    notices.hint(ports, plan.notices)
    if plan.detached is not None:
        ports.hints.send([ref_of(plan.detached)], now, now)
    grown = plan.grown
    if grown is None or grown.met_at is not None or grown.wake_at is None or grown.wake_at - now > MAX_DELAY:
        return _ref_of_met(grown)
    if before is None or before.job_id != grown.job_id:
        ports.hints.send([ref_of(grown)], grown.wake_at, now)
    return None


def _ref_of_met(job: Job | None) -> Ref | None:
    return ref_of(job) if job is not None and job.met_at is not None else None


def _arrivals(ports: Ports, event: Event, row: Subscription, against: Sequence[str]) -> list[Write]:
    """The writes that store the last arrival of the feeds of absent leaves: their timers count from it (T18)."""
    writes: list[Write] = []
    for leaf in against:
        found = ports.rows.get(LastArrival, row.schedule, row.generation, leaf)
        last = found.at if found is not None else None
        if last is None or last < event.accepted_at:
            writes.append(PutLastArrival(LastArrival(row.schedule, row.generation, leaf, event.accepted_at), last))
    return writes


def _expiry(schedule: Schedule, now: Instant) -> Instant | None:
    """When an applied event expires. It must outlive its job, whose run context is built from it; so it never expires
    if the job has no timeout."""
    span = schedule.timeout_millis
    return None if span is None else now + max(APPLIED_LIFE, span + CLAIMED_LIFE)


def _is_own(event: Event, schedule: str) -> bool:
    """Whether an event is of the namespace of a schedule. One of another namespace spends the computation of the
    sender."""
    return event.kind != "event" or event.key == custom_key(schedule.partition(".")[0], event.key.split(":", 2)[2])


def _document(ports: Ports, event: Event, row: Subscription, budget: Budget | None) -> Schedule | None:
    """The document of a schedule. The ``budget`` of a request bounds those of other namespaces."""
    if budget is not None and not _is_own(event, row.schedule):
        return budget.foreign_document(ports, row)
    version = ports.rows.get(Version, row.schedule, row.version)
    return Schedule.model_validate(version.definition) if version is not None else None


def _steps(event: Event, schedule: str, budget: Budget | None) -> Steps:
    """What the patterns of a schedule may take for an event."""
    if _is_own(event, schedule):
        return Steps(MAX_STEPS, budget.own if budget is not None else None)
    return Steps(MAX_FOREIGN_STEPS, budget.foreign(schedule) if budget is not None else None)


def _set_aside(event: Event, row: Subscription, cost: str, now: Instant) -> Record:
    """The record of an event that the patterns of a schedule cost too much to compare with."""
    logger.warning("event set aside", extra={"schedule": row.schedule, "event": event.id, "why": cost})
    why = f"to compare it with the patterns of the trigger takes {cost}; use fewer operators, or run the schedule now"
    return _dropped(event, row, f"is set aside and does not count: {why}", now)


def _dropped(event: Event, row: Subscription, why: str, now: Instant) -> Record:
    """The record of an event that does not count for a schedule."""
    record_id = ids.job_id(row.schedule, row.generation, event.id)
    reason = Why.of("event_not_counted", f"event {event.id} of {event.key} {why}")
    return new_record(record_id, "DROPPED", row.schedule, row.generation, reason, now)
