"""Apply an event to a schedule, exactly once: its marker and the gathering job change in one transaction (T16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from chalicelib.core import ids, match
from chalicelib.core.calendar import DAY, Instant
from chalicelib.core.match import Touch
from chalicelib.core.model import Schedule
from chalicelib.core.rows import HISTORY, Event, Job, Marker, Record, Subscription
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Create, NotClosed, Put, Replace, Write
from chalicelib.flow.alone import each_alone
from chalicelib.ports import Ports

# Longer than a job or a message in a dead-letter queue can live (SQS keeps 14 days), so a repeat always meets it.
MARKER_LIFE = 45 * DAY
# Losing this many races in a row for one job means that something else is wrong.
MOST_RACES = 25


def apply_to_all(ports: Ports, event: Event, rows: Iterable[Subscription], now: Instant) -> None:
    """Apply an event to the schedules of these index rows, and hint the jobs that want a check.

    Each schedule has its turn; what some of them raised is raised at the end.
    """
    touched = [list(group) for _, group in groupby(rows, key=lambda row: (row.schedule, row.generation))]
    refs: list[Ref] = []

    def one(group: list[Subscription]) -> None:
        ref = apply_event(ports, event, group, now)
        refs.extend([ref] if ref else [])

    try:
        each_alone(touched, one)
    finally:
        if refs:
            ports.hints.send(refs, now, now)


def apply_event(
    ports: Ports, event: Event, rows: Sequence[Subscription], now: Instant, along: Sequence[Write] = ()
) -> Ref | None:
    """Apply an event to the leaves of one generation of one schedule; ``along`` is written in the same transaction.

    Returns the job if its trigger is met, for a hint. A repeat, a closed generation and an event that was accepted
    before the leaf began to gather change nothing.
    """
    rows = [row for row in rows if match.counts_for(event, row)]
    version = ports.catalog.version(rows[0].schedule, rows[0].version) if rows else None
    if version is None:
        return None
    schedule = Schedule.model_validate(version.definition)
    correlation = match.correlate(schedule.by, event) if schedule.by else None
    if schedule.by and correlation is None:
        ports.ledger.put_all([Put(_uncorrelated(event, rows[0], schedule, now))])
        return None
    touch = Touch(event, tuple(row.leaf for row in rows))
    place = match.gathering_place(correlation)
    for _ in range(MOST_RACES):
        job = ports.jobs.job(rows[0].schedule, rows[0].generation, place)
        if job is not None and job.closed:
            return None
        grown = match.gather(job, [touch], schedule, rows[0], correlation, now)
        marker = _marker(event, rows[0], grown, _marker_end(schedule, now))
        refused = ports.ledger.commit(_plan(job, grown, marker, along))
        if refused is None:
            return ref_of(grown) if grown.met_at is not None else None
        if Create(marker) in refused.writes:
            return ref_of(job) if job is not None and job.met_at is not None else None
    raise RuntimeError(f"event {event.id} lost {MOST_RACES} races for {rows[0].schedule}; its message will come again")


def ref_of(job: Job) -> Ref:
    return Ref("job", (job.schedule, ids.base36(job.generation), job.place))


def _plan(job: Job | None, grown: Job, marker: Marker, along: Sequence[Write]) -> list[Write]:
    # With correlation keys the tombstone stands beside the jobs, not over them, and is asked for by itself.
    beside = [NotClosed(grown.schedule, grown.generation)] if grown.correlation else []
    return [Create(marker), Create(grown) if job is None else Replace(grown), *beside, *along]


def _marker(event: Event, row: Subscription, job: Job, expires_at: Instant | None) -> Marker:
    return Marker(row.schedule, row.generation, event, job.job_id, expires_at)


def _marker_end(schedule: Schedule, now: Instant) -> Instant | None:
    """A marker outlives its job, whose run is told by it what fired it; of a job without a timeout it never expires."""
    span = schedule.timeout_millis
    return None if span is None else now + max(MARKER_LIFE, span + 15 * DAY)


def _uncorrelated(event: Event, row: Subscription, schedule: Schedule, now: Instant) -> Record:
    record_id = ids.job_id(row.schedule, row.generation, event.id)
    keys = ", ".join(schedule.by)
    reason = (
        f"event {event.id} of {event.key} carries no value of every correlation key ({keys}) and counts for nothing"
    )
    return Record(record_id, "DROPPED", row.schedule, row.generation, reason, now, expires_at=now + HISTORY)
