"""What a repair reads of the tables: everything that waits or runs, and everything since an instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from chalicelib.core import states
from chalicelib.core.fires import bundles, fire
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import AppliedEvent, CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import TABLES
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.flow.ingest.apply import NO_JOB
from sluice.operations.archive.export import pages_of
from sluice.operations.ports import Copies, StoredCopy

Outbox = Partition | CountedObject | PostedEvent


@dataclass
class Stock:
    """``runs`` are those that have not ended, and those since the instant; ``ended`` are the ids of jobs that have a
    run or a record. ``applied`` are the applied events of each job that is none of these, and of those since.
    ``in_bundles`` are the numbers of the events of each fire that wait in a bundle, that its run shows as sent, or that
    its record may count. ``sizes`` has how many events each fire of a generation has, by its nominal instant, as one of
    its rows says. ``backfills`` have not ended, or since; ``reprocesses`` have not ended."""

    since: Instant
    schedule_states: dict[str, ScheduleState] = field(default_factory=dict)
    timers: list[Timer] = field(default_factory=list)
    outboxes: dict[str, Outbox] = field(default_factory=dict)
    jobs: dict[tuple[str, int, str], Job] = field(default_factory=dict)
    tombstones: list[Job] = field(default_factory=list)
    applied: dict[str, list[AppliedEvent]] = field(default_factory=lambda: defaultdict(list))
    limits: dict[str, LimitState] = field(default_factory=dict)
    waiters: list[StoredCopy] = field(default_factory=list)
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    in_bundles: dict[str, list[Collection[int]]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[tuple[str, int], dict[Instant, int]] = field(default_factory=lambda: defaultdict(dict))
    backfills: list[Backfill] = field(default_factory=list)
    reprocesses: list[Reprocess] = field(default_factory=list)

    @classmethod
    def read(cls, copies: Copies, since: Instant) -> Stock:
        stock = cls(since)
        for table in TABLES:
            for copy in pages_of(copies, table):
                stock._take(copy)
        return stock

    def _take(self, copy: StoredCopy) -> None:
        row = copy.row
        if isinstance(row, Job | AppliedEvent | Run | Record):
            self._take_work(row)
        match row:
            case ScheduleState():
                self.schedule_states[row.schedule] = row
            case Timer():
                self.timers.append(row)
            case Partition() | CountedObject() | PostedEvent():
                if row.event.accepted_at >= self.since or row.wake_at is not None:
                    self.outboxes[row.event.id] = row
            case LimitState():
                self.limits[row.limit_name] = row
            case Waiter():
                self.waiters.append(copy)
            case Backfill():
                if row.ended_at is None or row.ended_at >= self.since:
                    self.backfills.append(row)
            case Reprocess() if row.ended_at is None:
                self.reprocesses.append(row)

    def _take_work(self, row: Job | AppliedEvent | Run | Record) -> None:
        place = bundles.place_of(_id_of(row))
        if place is not None:
            self.in_bundles[place[0]].append(_numbers_in(row, range(place[1], place[1] + place[2])))
        if isinstance(row, Job | Run) and (size := _size_in(row)) is not None and size[0] >= self.since - DAY:
            self.sizes[row.schedule, row.generation][size[0]] = size[1]
        match row:
            case Job():
                (self.tombstones.append(row) if row.closed else self.keep(row))
            case AppliedEvent():
                if row.event_job != NO_JOB:
                    self.applied[row.event_job].append(row)
            case Run():
                self.ended.add(row.run_id)
                lately = max(row.claimed_at, row.state_at or 0) >= self.since
                if lately or row.state == "RETRYING" or not states.is_terminal(row.state):
                    self.runs[row.run_id, row.attempt] = row
            case Record() if row.kind != "LATE":
                self.records.add(row.id)

    def keep(self, job: Job) -> None:
        self.jobs[job.schedule, job.generation, job.sort_key] = job

    def drop(self, job: Job) -> None:
        self.jobs.pop((job.schedule, job.generation, job.sort_key), None)

    def has(self, job: Job) -> bool:
        """Whether a job waits, has run, or is on record."""
        known = job.job_id in self.ended or job.job_id in self.records
        return known or any(each.job_id == job.job_id for each in self.of(job.schedule))

    def has_in_bundle(self, fire_id: str, number: int) -> bool:
        """Whether an event of a fire waits in a bundle, was sent in it, or is on record with it."""
        return any(number in numbers for numbers in self.in_bundles.get(fire_id, ()))

    def of(self, schedule: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.schedule == schedule]

    def events(self) -> dict[str, Event]:
        """The events that are known, by id: of registries, and of the marks that they were applied."""
        found = {row.event.id: row.event for rows in self.applied.values() for row in rows}
        return found | {outbox.event.id: outbox.event for outbox in self.outboxes.values()}


def _size_in(row: Job | Run) -> tuple[Instant, int] | None:
    """The nominal instant of the fire of a row, and how many events it has; None if the row does not say it."""
    if isinstance(row, Run):
        return (row.nominal_at, row.spread[1] if row.spread else 1) if row.nominal_at is not None else None
    if not row.traits.timed:
        return None
    return (fire.nominal_of(row), row.own_shape[0]) if row.own_shape else None


def _numbers_in(row: Job | AppliedEvent | Run | Record, all_of: range) -> Collection[int]:
    """The numbers of the events of a bundle that one of its rows accounts for. The bundle itself does not say that its
    other events were sent: their run may be lost."""
    match row:
        case Job():
            return frozenset(bundles.numbers(row))
        case Run():
            return bundles.sent_in(row)
        case _:
            return all_of


def _id_of(row: Job | AppliedEvent | Run | Record) -> str:
    match row:
        case Job():
            return row.job_id
        case Run():
            return row.run_id
        case Record():
            return row.id
        case _:
            return ""
