"""A fire whose events are in bundles: what has become of its events, in numbers and one by one (E2).

What one request reads is bounded: a fire may have 100,000 events, in 20,000 bundles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.core.errors import bad_cursor, not_found
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import iso, iso_or_none
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.runs import fires, sends
from chalicelib.core.runs.fires import Bundle, EventOfFire, EventState, FireState
from chalicelib.core.views import At, Code, Sentence, View
from chalicelib.flow import lookup, many
from chalicelib.flow.views.lineage import last_attempts
from chalicelib.flow.views.views import SendsView, sends_view
from chalicelib.ports import Page, Ports, every_page

MAX_BUNDLES = 4_000  # that one request reads, each with its job, its run and its record
MAX_OWN = 2_000  # events with rows of their own, which one request reads
MAX_JOBS = 5_000  # waiting jobs of the schedule, among which those of such events are searched
PAGE = 500
AT_ONCE = 40  # bundles of a list of events

Place = tuple[int, int]  # the number of the first event of a bundle, and how many events were written in it


class CountsOfFireView(View):
    """How many events of a fire are in each state. ``unknown`` are those of which no row says what became."""

    sent: int
    failed: int
    waiting: int
    retrying: int
    dropped: int
    unknown: int


class StateOfFireView(CountsOfFireView):
    """A large fire: how many ``events`` it has, and what has become of them. ``state`` is WAITING before the first
    send, and SENDING while events wait after it. Then it is that of the worst events: FAILED, DROPPED or SENT. With
    ``at_least``, not all rows were read, and ``unknown`` has the events of the others."""

    id: str
    schedule: str
    workflow: str | None
    nominal_at: At
    events: int
    state: FireState
    sends: SendsView | None
    at_least: bool


class EventInFireView(View):
    """An event of a large fire, by its number from 0 on. ``id`` is that of its job and of its run."""

    id: str
    index: int
    due_at: At | None
    state: EventState
    reason: Sentence
    code: Code | None


@dataclass(slots=True)
class _Read:
    """The rows of a fire that one request reads, bundle by bundle, of the events from number ``begin`` on. At most
    ``left`` events more have rows of their own that it reads; the others are those from number ``end`` on."""

    ports: Ports
    row: Fire
    begin: int = 0
    left: int = field(default_factory=lambda: MAX_OWN)
    end: int | None = None
    cut: bool = False
    plan: Plan | None = None
    runs: list[Run] = field(default_factory=list)
    searched: dict[str, Job] | None = None

    def bundles(self, places: Sequence[Place]) -> list[Bundle]:
        """The rows of these bundles. Jobs are read first: what has become of one since is in its run or record."""
        row, ports = self.row, self.ports
        names = [bundles.bundle_id(row.id, *place) for place in places]
        keys = [(row.schedule, row.generation, bundles.sort_key(row, *place)) for place in places]
        jobs = {job.job_id: job for job in many.rows(ports, Job, keys, strong=False) if not job.closed}
        records = {record.id: record for record in many.rows(ports, Record, ((name,) for name in names), strong=False)}
        runs = {run.run_id: run for run in ports.runs.several([(name, 1) for name in names], strong=False)}
        self.runs += runs.values()
        found: list[Bundle] = []
        for name, (first, count) in zip(names, places, strict=True):
            bundle = Bundle(first, count, jobs.get(name), runs.get(name), records.get(name))
            found.append(replace(bundle, left=fires.left_of(row, bundle)))
        self.plan = self.plan or next((bundle.plan for bundle in found if bundle.plan is not None), None)
        return self._with_own(found)

    def _with_own(self, found: Sequence[Bundle]) -> list[Bundle]:
        """The bundles with the rows of the events that have left them."""
        numbers = [number for bundle in found for number in sorted(bundle.left) if number >= self.begin]
        if len(numbers) > self.left:
            self.cut, self.end = True, min(numbers[self.left], numbers[self.left] if self.end is None else self.end)
        numbers = numbers[: self.left]
        self.left -= len(numbers)
        if not numbers:
            return list(found)
        plans = {number: bundle.plan or self.plan for bundle in found for number in bundle.left}
        names = {number: bundles.event_id(self.row.id, number) for number in numbers}
        waits = self._first_tries(names, plans)
        records = many.rows(self.ports, Record, ((name,) for name in names.values()), strong=False)
        own: dict[str, Run | Record] = {record.id: record for record in records}
        own |= {run.run_id: run for run in last_attempts(self.ports, list(names.values())).values()}
        waits |= self._redrives(own)
        if any(name not in own and name not in waits for name in names.values()):
            waits = self._search() | waits
        return [self._with(bundle, names, own, waits) for bundle in found]

    def _with(
        self, bundle: Bundle, names: Mapping[int, str], own: Mapping[str, Run | Record], waits: Mapping[str, Job]
    ) -> Bundle:
        mine = {number: names[number] for number in bundle.left if number in names}
        rows = {number: own[name] for number, name in mine.items() if name in own}
        jobs = {number: waits[name] for number, name in mine.items() if name in waits}
        jobs = {number: job for number, job in jobs.items() if _goes_on(job, rows.get(number))}
        return replace(bundle, own=rows, waits=jobs)

    def _first_tries(self, names: Mapping[int, str], plans: Mapping[int, Plan | None]) -> dict[str, Job]:
        """The jobs of events that were not sent yet, or are tried again."""
        keys = [
            (self.row.schedule, self.row.generation, sort_keys.detached(plan.due(number), name))
            for number, name in names.items()
            if (plan := plans[number]) is not None
        ]
        return {job.job_id: job for job in many.rows(self.ports, Job, keys, strong=False) if not job.closed}

    def _redrives(self, own: Mapping[str, Run | Record]) -> dict[str, Job]:
        """The jobs that deliver failed events again. They are in the present generation."""
        failed = [run for run in own.values() if isinstance(run, Run) and run.state == "FAILED"]
        state = self.ports.rows.get(ScheduleState, self.row.schedule) if failed else None
        if state is None:
            return {}
        keys = [
            (run.schedule, state.generation, sort_keys.redrive(run.run_id, run.attempt + 1)) for run in failed
        ]  # fmt: skip
        return {job.job_id: job for job in many.rows(self.ports, Job, keys, strong=False) if not job.closed}

    def _search(self) -> dict[str, Job]:
        """The waiting jobs of single events of the fire: a pause may have changed the instants of their keys."""
        if self.searched is None:
            self.searched = {}
            read = 0
            for page in every_page(self._jobs, PAGE):
                own = (job for job in page.items if bundles.fire_of(job.job_id) == self.row.id)
                self.searched |= {job.job_id: job for job in own if not job.closed and not job.is_bundle}
                read += len(page.items)
                if read >= MAX_JOBS:
                    self.cut |= page.cursor is not None
                    break
        return self.searched

    def _jobs(self, limit: int, cursor: str | None) -> Page[Job]:
        return self.ports.jobs.jobs(self.row.schedule, self.row.generation, limit, cursor)


def _goes_on(job: Job, row: Run | Record | None) -> bool:
    """Whether a job waits that was read before the row of its event: that row may be its end."""
    return row is None or (isinstance(row, Run) and job.attempt > row.attempt)


def existing(ports: Ports, fire_id: str) -> Fire:
    """The row of a fire. Raises ``not_found`` (404) if no fire with bundles has this id."""
    row = ports.rows.get(Fire, fire_id)
    if row is None:
        hint = "the run of an event of a large fire names its fire; the events of other fires have runs of their own"
        raise not_found("fire", fire_id, hint)
    return row


def of_fire(ports: Ports, fire_id: str) -> StateOfFireView:
    """What has become of the events of a fire. Raises ``not_found`` (404)."""
    row = existing(ports, fire_id)
    read, ahead = _Read(ports, row), len(_ahead(ports, row))
    places = fires.written(row)
    counts: Counter[EventState] = Counter({"WAITING": ahead})
    counts["UNKNOWN"] = sum(count for _, count in places[MAX_BUNDLES:])
    alone: list[EventOfFire] = []
    for start in range(0, min(len(places), MAX_BUNDLES), PAGE):
        for bundle in read.bundles(places[start : min(start + PAGE, MAX_BUNDLES)]):
            found = list(fires.events(bundle, read.plan))
            counts.update(one.state for one in found)
            alone += [one for one in found if one.row is not None]
    return {
        "id": row.id,
        "schedule": row.schedule,
        "workflow": _workflow(ports, row, read.runs),
        "nominal_at": iso(row.nominal_at),
        "events": row.written + ahead,
        "state": fires.state_of(counts),
        "sent": counts["SENT"],
        "failed": counts["FAILED"],
        "waiting": counts["WAITING"],
        "retrying": counts["RETRYING"],
        "dropped": counts["DROPPED"],
        "unknown": counts["UNKNOWN"],
        "sends": _sends(read.runs, alone),
        "at_least": read.cut or len(places) > MAX_BUNDLES,
    }


def _sends(runs: Iterable[Run], alone: Iterable[EventOfFire]) -> SendsView | None:
    """The sends of all events, in bundles and alone."""
    known: Mapping[str, Any] = {}
    for run in runs:
        known = sends.joined(known, run.sends or {})
    own = fires.sends_of(alone)
    known = sends.of(own, known or None) if own else known
    return sends_view(known) if known else None


def _workflow(ports: Ports, row: Fire, runs: Sequence[Run]) -> str | None:
    """The workflow of the runs of a fire; before the first of them, that of its schedule."""
    if runs:
        return runs[0].workflow
    schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, row.schedule))
    return schedule.workflow if schedule is not None else None


def _ahead(ports: Ports, row: Fire) -> list[EventOfFire]:
    """The events of a fire that are not written yet, and will be."""
    timer = ports.rows.get(Timer, row.schedule)
    if timer is None or timer.generation != row.generation:
        return []
    one = next((one for one in fire.begun(timer) if one.nominal == row.nominal_at), None)
    schedule = lookup.definition_of(ports, timer) if one is not None else None
    if one is None or schedule is None:
        return []
    shape = fire.shape_in(timer, schedule, one.nominal)
    return [
        EventOfFire(number, "WAITING", fires.NOT_WRITTEN, fire.due_of(shape, one, number))
        for number in range(row.written, shape.events)
    ]


def events_of(
    ports: Ports, fire_id: str, wanted: str | None, limit: int, cursor: str | None
) -> Page[EventInFireView]:  # fmt: skip
    """A page of the events of a fire by number; with ``wanted`` those in a state. A request reads a bounded number of
    bundles, so a page may hold fewer than ``limit``, even none, and still have a next one. Raises ``not_found`` (404)
    and ``bad_cursor``."""
    row = existing(ports, fire_id)
    following = _number(cursor)
    found: list[EventInFireView] = []
    for one in _from(_Read(ports, row, following)):
        if one is None or len(found) == limit:
            return Page(tuple(found), str(following))
        if wanted in (None, one.state):
            found.append(_view(row, one))
        following = one.number + 1
    return Page(tuple(found))


def _from(read: _Read) -> Iterator[EventOfFire | None]:
    """The events from a number on; None where the request has read enough."""
    row = read.row
    rest = [place for place in fires.written(row) if sum(place) > read.begin]
    for start in range(0, len(rest), AT_ONCE):
        if start >= MAX_BUNDLES:
            yield None
            return
        for bundle in read.bundles(rest[start : start + AT_ONCE]):
            for one in fires.events(bundle, read.plan):
                if read.end is not None and one.number >= read.end:
                    yield None
                    return
                if one.number >= read.begin:
                    yield one
    yield from (one for one in _ahead(read.ports, row) if one.number >= read.begin)


def _number(cursor: str | None) -> int:
    if cursor is not None and not re.fullmatch("[0-9]{1,9}", cursor):
        raise bad_cursor()
    return int(cursor or 0)


def _view(row: Fire, one: EventOfFire) -> EventInFireView:
    return {
        "id": bundles.event_id(row.id, one.number),
        "index": one.number,
        "due_at": iso_or_none(one.due),
        "state": one.state,
        "reason": one.reason,
        "code": one.reason.code or None,
    }
