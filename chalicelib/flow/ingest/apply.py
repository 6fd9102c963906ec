"""Apply an event to a schedule, exactly once: its marker and the gathering job change in one transaction (T16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events import correlation as event_correlation
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.jobs import claim, gather, timeout
from chalicelib.core.jobs.gather import Gathered, Touch
from chalicelib.core.rows.event import AppliedEvent, Event, LastArrival
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import HISTORY, WAKE, Subscription
from chalicelib.core.writes import Create, DeleteJob, ExpectOpen, Put, PutLastArrival, Replace, Write
from chalicelib.flow import wake
from chalicelib.flow.each import run_each
from chalicelib.flow.notices import notices
from chalicelib.ports import MAX_DELAY, MAX_RACES, Ports

# Longer than a job or a message in a dead-letter queue can live (SQS keeps 14 days), so a repeat always meets it.
MARKER_LIFE = 45 * DAY
NO_JOB = "-"  # what a marker names when its event speaks against a leaf, and belongs to no job


def apply_to_all(ports: Ports, event: Event, rows: Iterable[Subscription], now: Instant) -> None:
    """Apply an event to the schedules of these index rows, and hint the jobs that want a check.

    Each schedule has its turn; what some of them raised is raised at the end.
    """
    touched = [list(group) for _, group in groupby(sorted(rows, key=_whose), key=_whose)]
    refs: list[Ref] = []

    def one(group: list[Subscription]) -> None:
        gathering = [row for row in group if row.leaf != WAKE]
        ref = apply_event(ports, event, gathering, now)
        refs.extend([ref] if ref else [])
        if len(gathering) < len(group):
            wake.constrained(ports, group[0].schedule, group[0].generation)

    try:
        run_each(touched, one)
    finally:
        if refs:
            ports.hints.send(refs, now, now)


def _whose(row: Subscription) -> tuple[str, int]:
    return row.schedule, row.generation


def apply_event(
    ports: Ports, event: Event, rows: Sequence[Subscription], now: Instant, along: Sequence[Write] = ()
) -> Ref | None:
    """Apply an event to the leaves of one generation of one schedule; ``along`` is written in the same transaction.

    Returns the job if its trigger is met, for a hint. A repeat, a closed generation and an event that was accepted
    before the leaf began to gather change nothing.
    """
    rows = [row for row in rows if event_correlation.counts_for(event, row)]
    version = ports.catalog.version(rows[0].schedule, rows[0].version) if rows else None
    if version is None:
        return None
    schedule = Schedule.model_validate(version.definition)
    met, against = gather.touched(schedule, event, rows)
    if not met and not against:
        return None
    correlation = event_correlation.correlate(schedule.by, event) if schedule.by else None
    if schedule.by and correlation is None:
        if schedule.by == rounds.BY:
            return None  # a run that is nobody's business but its own: that of one node, run again alone
        ports.ledger.put_all([Put(_uncorrelated(event, rows[0], schedule, now))])
        return None
    sort_key = event_correlation.gathering_key(correlation)
    for _ in range(MAX_RACES):
        job = ports.jobs.job(rows[0].schedule, rows[0].generation, sort_key)
        if job is not None and job.closed:
            return None
        if job is None and schedule.by == rounds.BY and not _is_of_this_life(ports, correlation, rows[0]):
            return None
        over = _has_timed_out(ports, job, schedule, event)
        gathered = gather.gather(job, [Touch(event, met)], schedule, rows[0], correlation, now, against, over)
        marker = _marker(event, rows[0], gathered.job if met else None, _marker_end(schedule, now))
        seen = _arrivals(ports, event, rows[0], against)
        grown, changes = _changes(job, gathered, rows[0])
        notices_due = _notes(ports, job, gathered, now)
        plan = [Create(marker), *changes, *seen, *_beside(rows[0], changes), *along, *notices_due]
        refused = ports.ledger.commit(plan)
        if refused is None:
            notices.hint(ports, notices_due)
            if gathered.detached is not None:
                ports.hints.send([ref_of(gathered.detached)], now, now)
            return _follow(ports, job, grown, now)
        if Create(marker) in refused.writes:
            return ref_of(job) if job is not None and job.met_at is not None else None
        if refused.of(ExpectOpen) or any(write in refused.writes for write in along):
            return None  # closed meanwhile; or what this event came with is somebody else's by now
    raise RuntimeError(f"event {event.id} lost {MAX_RACES} races for {rows[0].schedule}; its message will come again")


def _is_of_this_life(ports: Ports, correlation: Mapping[str, str] | None, row: Subscription) -> bool:
    """Whether a run of a DAG was begun since this node is there. A DAG that was deleted and comes again is another one,
    which has nothing to do with the runs of the one before, though the same names may stand for both (W4)."""
    begun = rounds.parse((correlation or {})[rounds.KEY]).dag_run
    start = ids.parse_job_id(begun)
    if start is not None and start.generation >= row.generation:
        return True  # the nodes are put before the start, and generations are instants
    run = ports.runs.run(begun, 1)
    return run is None or run.claimed_at >= row.generation


def _has_timed_out(ports: Ports, job: Job | None, schedule: Schedule, event: Event) -> bool:
    """Whether the timeout of the waiting job was over when an event was accepted. A pause can only move it to later, so
    the pauses of the gate are read where it would be over without them."""
    if job is None or not timeout.is_over(job, schedule, None, event.accepted_at):
        return False
    return timeout.is_over(job, schedule, ports.catalog.schedule_state(job.schedule), event.accepted_at)


def _notes(ports: Ports, job: Job | None, gathered: Gathered, now: Instant) -> list[Write]:
    """Who is to be told that the job which was there is aborted (W9)."""
    if job is None or gathered.dropped is None or gathered.dropped.kind != "ABORTED":
        return []
    return notices.of_job(ports, job, "aborted", gathered.dropped.reason, now)


def _changes(job: Job | None, gathered: Gathered, row: Subscription) -> tuple[Job | None, list[Write]]:
    """The job as it is stored, and the writes that make it so."""
    grown = gathered.job
    record: list[Write] = [Put(gathered.dropped)] if gathered.dropped else []
    record += claim.beside(job, gathered.detached) if job is not None and gathered.detached is not None else []
    if grown is None:
        return None, [DeleteJob(job, exact=True), *record] if job is not None and record else []
    # Whoever queues already is settled; everybody else whose match is complete makes room, if that is wanted.
    if row.detached and grown.met_at is not None and grown.queued_in is None:
        detached = gather.detach(grown)
        out: list[Write] = [DeleteJob(job, exact=True)] if job is not None else []
        return detached, [*out, Create(detached), *record]
    if job is None:
        return grown, [Create(grown)]
    return grown, [Replace(grown, over=job), *record]


def _beside(row: Subscription, changes: Sequence[Write]) -> list[Write]:
    """The tombstone of a closed generation lies in the place of the one gathering job. A plan that does not touch that
    place (correlated jobs, those set apart, mere marks) asks for its absence."""
    touched = [write.row if isinstance(write, Create | Replace) else write.job if isinstance(write, DeleteJob) else None
               for write in changes]  # fmt: skip
    places = {job.sort_key for job in touched if isinstance(job, Job)}
    return [] if event_correlation.gathering_key(None) in places else [ExpectOpen(row.schedule, row.generation)]


def _follow(ports: Ports, before: Job | None, grown: Job | None, now: Instant) -> Ref | None:
    """A job that is met wants a check. One that time will meet wants one then: its first event sends the hint, and the
    check that it brings sends the next, so a stream of events costs no stream of hints."""
    if grown is None:
        return None
    if grown.met_at is not None:
        return ref_of(grown)
    soon = grown.wake_at is not None and grown.wake_at - now <= MAX_DELAY
    if soon and grown.wake_at is not None and (before is None or before.job_id != grown.job_id):
        ports.hints.send([ref_of(grown)], grown.wake_at, now)
    return None


def _arrivals(ports: Ports, event: Event, row: Subscription, against: Sequence[str]) -> list[Write]:
    """When the feed of an absent leaf came last, for the instant at which its absence would be told (T18)."""
    writes: list[Write] = []
    for leaf in against:
        last = ports.jobs.last_arrival(row.schedule, row.generation, leaf)
        if last is None or last < event.accepted_at:
            writes.append(PutLastArrival(LastArrival(row.schedule, row.generation, leaf, event.accepted_at), last))
    return writes


def _marker(event: Event, row: Subscription, job: Job | None, expires_at: Instant | None) -> AppliedEvent:
    return AppliedEvent(row.schedule, row.generation, event, job.job_id if job else NO_JOB, expires_at)


def _marker_end(schedule: Schedule, now: Instant) -> Instant | None:
    """A marker outlives its job, whose run is told by it what fired it; of a job without a timeout it never expires."""
    span = schedule.timeout_millis
    return None if span is None else now + max(MARKER_LIFE, span + 15 * DAY)


def _uncorrelated(event: Event, row: Subscription, schedule: Schedule, now: Instant) -> Record:
    record_id = ids.job_id(row.schedule, row.generation, event.id)
    keys: Mapping[str, None] = dict.fromkeys(schedule.by)
    reason = (
        f"event {event.id} of {event.key} carries no value of every correlation key ({', '.join(keys)}) "
        "and counts for nothing"
    )
    return Record(record_id, "DROPPED", row.schedule, row.generation, reason, now, expires_at=now + HISTORY)
