"""The periods of many schedules by day: what became of each, in one answer (L23).

The ends of past runs are read from the row of each schedule (`flow/history/period_ends.py`), and the runs since then
from the list of the namespace's runs. So the view costs what waits and what is new, and not what has run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import NamedTuple

from chalicelib.core import ids
from chalicelib.core.backfills import period_ends
from chalicelib.core.backfills.backfill import datasets_of
from chalicelib.core.backfills.period_ends import Ends, after, has_periods, newest_first
from chalicelib.core.backfills.periods import PeriodState, Values, period_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, Instant, iso, millis
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.triggers import tree
from chalicelib.core.views import At, Sentence, View
from chalicelib.flow import lookup, many
from chalicelib.flow.backfills.periods import MAX_ATTEMPTS, planned_of
from chalicelib.flow.backfills.sources import source_of
from chalicelib.flow.views import periods
from chalicelib.flow.views.schedule_list import AT_ONCE, Wanted, rows_of
from chalicelib.ports import Page, Ports

MAX_SCHEDULES = 100  # of a page, and the default
RECENT, MAX_DAYS = 31, 400  # days of a request: the default, and the most
MAX_NEW = 2_000  # new attempts of a namespace that are looked through; with more, each schedule lists its own
RECENT_ROW = 2 * period_ends.AGAIN  # of rows that are older, each schedule lists its own new attempts,
MAX_TOGETHER = 100  # side by side, if they are less than that
MAX_WORK = 10_000  # attempts and jobs that one request reads, and
MAX_EXPECTED = 100_000  # periods that it computes, before it ends its page
# The states of periods as letters. A day has the first of these that one of its periods has.
LETTERS: Mapping[PeriodState, str] = {"failed": "f", "missing": "m", "running": "r", "waiting": "w", "succeeded": "s"}
NO_PERIOD = "."


class PeriodsByDayView(View):
    """What became of the periods of a schedule, by day. ``days`` has a letter for each day from ``from`` to ``to``:
    ``f`` failed, ``m`` missing, ``r`` running, ``w`` waiting, ``s`` succeeded, ``.`` no period. A day whose periods
    differ has the first of these letters, and ``mixed`` has how many of its periods are in which state. A period
    belongs to the day on which it begins, in its own zone; a fire in the zone of the request. ``why`` says why a
    schedule has no periods here. A period before ``complete_from`` that is missing may have run."""

    schedule: str
    days: str
    mixed: dict[str, dict[PeriodState, int]]
    why: Sentence | None
    complete_from: At


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a matrix, both ends included, and the zone of fires."""

    first: date
    last: date
    zone: tzinfo

    @property
    def count(self) -> int:
        return (self.last - self.first).days + 1

    def named(self, number: int) -> str:
        return (self.first + timedelta(days=number)).isoformat()

    @property
    def since(self) -> Instant:
        """The first instant of the first day in any zone."""
        return max(0, millis(datetime.combine(self.first, datetime.min.time(), UTC)) - DAY)

    @property
    def until(self) -> Instant:
        """The end of the last day in any zone."""
        return millis(datetime.combine(self.last, datetime.min.time(), UTC)) + 2 * DAY


class _Of(NamedTuple):
    """A period: the number of its day, its values, and its end; None for a fire."""

    day: int
    values: Values
    end: Instant | None


def page(
    ports: Ports, namespace: str, wanted: Wanted | Sequence[str], days: Days, limit: int, cursor: str | None
) -> Page[PeriodsByDayView]:
    """A page of schedules by name: those of these names, or all that are wanted, without those of DAGs and messages.
    The cursor is the full name of the last one that was passed. A page may hold fewer than ``limit``, even none, and
    still have a next one, because a request reads a bounded number of rows. Raises ``not_found`` (404) for an unknown
    namespace, app or schedule, and ``invalid`` (400) for the name of a schedule of a DAG."""
    found, following = _chosen(ports, namespace, wanted, limit, cursor)
    read = _ahead(ports, [schedule for _, schedule in found.values()], found)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = list(pool.map(partial(_waiting, read), found.values()))
    past, matrix = _Past.read(read, namespace, found, days.since), _Matrix(read, days)
    items: list[PeriodsByDayView] = []
    for (name, (_, schedule)), jobs in zip(found.items(), waiting, strict=True):
        items.append(matrix.row(name, schedule, jobs, past))
        if matrix.is_full and len(items) < len(found):
            return Page(tuple(items), name)
    return Page(tuple(items), following)


def _chosen(
    ports: Ports, namespace: str, wanted: Wanted | Sequence[str], limit: int, cursor: str | None
) -> tuple[dict[str, many.Found], str | None]:
    """The schedules of a page, and the cursor of the next one."""
    if isinstance(wanted, Wanted):
        listed = rows_of(ports, namespace, wanted, limit + 1, cursor)  # one more, to know whether there is another page
        rows, following = listed.items[:limit], listed.cursor
        if len(listed.items) > limit:
            following = rows[-1]["name"]
        return many.schedules(ports, [row["name"] for row in rows if row["dag"] is None]), following
    lookup.require(ports, "namespace", namespace)
    for name in wanted:
        if ids.is_of_dag(name):  # its start succeeds when a DAG run begins, so its row would not say what became of it
            hint = f"GET .../schedules/{name.rpartition('.')[2]}/periods reads its runs"
            raise invalid("schedules", "schedules that belong to no DAG", name, hint)
    rest = [name for name in sorted(set(wanted)) if name > (cursor or "")]
    found = many.schedules(ports, rest[:limit])
    for name in rest[:limit]:
        if name not in found:
            raise lookup.missing(ports, "schedule", name)
    return found, rest[limit - 1] if len(rest) > limit else None


def _ahead(ports: Ports, schedules: Sequence[Schedule], names: Iterable[str]) -> Ports:
    """The ports with the datasets and the timers of schedules read ahead."""
    keys = [kinds.key(Timer, name) for name in names]
    keys += [kinds.key(Definition, "dataset", name) for each in schedules for name in datasets_of(each)]
    return ports.prefetch.read(ports, list(dict.fromkeys(keys)), strong=False)


def _waiting(ports: Ports, pair: many.Found) -> list[Values]:
    """The periods of a schedule with a job, or that a backfill has yet to run. They are read before the runs: a job
    that is claimed meanwhile has a run then."""
    state, schedule = pair
    if not has_periods(schedule):
        return []
    jobs = lookup.every(partial(ports.jobs.jobs, state.schedule, state.generation))
    of_jobs = [period_of(job, schedule.keys) for job in jobs if not job.closed]
    planned = planned_of(ports, state.schedule, schedule.keys)
    return [period for period in of_jobs if period is not None] + list(planned)


@dataclass(frozen=True, slots=True)
class _Past:
    """The rows of schedules that have one for their present keys. ``newer`` has the attempts that a row does not count,
    newest first, for those schedules of which they were read together."""

    ports: Ports
    since: Instant
    rows: Mapping[str, PeriodEnds]
    newer: Mapping[str, Sequence[Run]]

    @classmethod
    def read(cls, ports: Ports, namespace: str, found: Mapping[str, many.Found], since: Instant) -> _Past:
        now = ports.clock.now()
        stored = many.rows(ports, PeriodEnds, [(name,) for name in found], strong=False)
        rows = {row.schedule: row for row in stored if row.by == found[row.schedule][1].keys}
        recent = {name: row for name, row in rows.items() if row.complete_to >= now - RECENT_ROW}
        begin = min((row.complete_to for row in recent.values()), default=now)
        names = ports.runs.claimed(namespace, begin, now + DAY, MAX_NEW + 1) if recent else ()
        together = recent if len(names) <= MAX_NEW else {}
        wanted = [name for name in names if _schedule_of(name[0]) in together]
        again = {name for row in together.values() for name in row.active}
        newer: dict[str, list[Run]] = {name: [] for name in together}
        for run in newest_first(ports.runs.several(list({*wanted, *again}), strong=False)):
            if run.claimed_at >= rows[run.schedule].complete_to or (run.run_id, run.attempt) in again:
                newer[run.schedule].append(run)
        return cls(ports, since, rows, newer | _idle(ports, rows.keys() - recent.keys(), rows, now))

    def of(self, name: str, by: Values) -> tuple[PeriodEnds | None, Sequence[Run], Instant]:
        """The row of a schedule, the attempts that it does not count, newest first, and from when on all are known. A
        fire has no run before its day, but a period may have one: its partition may come long before it begins."""
        row, most = self.rows.get(name), MAX_ATTEMPTS + 1
        if row is not None and name in self.newer:
            return row, self.newer[name], row.complete_from
        first, runs = 0 if by else self.since, self.ports.runs
        since = row.complete_to if row is not None else first
        found = runs.attempts_between(name, since, self.ports.clock.now() + DAY, most)
        if len(found) == most:  # what is older is not known, so the ends before it are none, either
            return None, found[:-1], found[-1].claimed_at + 1
        if row is None:
            return None, found, since
        return row, newest_first([*found, *runs.several(row.active, strong=False)]), row.complete_from


def _idle(ports: Ports, names: Iterable[str], rows: Mapping[str, PeriodEnds], now: Instant) -> dict[str, list[Run]]:
    """The attempts that old rows do not count. These schedules have hardly run since: a run makes a row due."""
    wanted = list(names)

    def read(name: str) -> list[Run]:
        found = ports.runs.attempts_between(name, rows[name].complete_to, now + DAY, MAX_TOGETHER)
        return newest_first([*found, *ports.runs.several(rows[name].active, strong=False)])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(wanted, pool.map(read, wanted), strict=True))
    return {name: attempts for name, attempts in found.items() if len(attempts) < MAX_TOGETHER}


def _schedule_of(run_id: str) -> str:
    named = ids.parse_job_id(run_id)
    return named.schedule if named is not None else ""


class _Matrix:
    """Makes the rows of a page. Schedules with the same calendar share what is computed from it."""

    def __init__(self, ports: Ports, days: Days) -> None:
        self._ports, self._days, self._now = ports, days, ports.clock.now()
        self._calendars: dict[str, tuple[_Of, ...]] = {}
        self._work = self._expected = 0

    @property
    def is_full(self) -> bool:
        return self._work > MAX_WORK or self._expected > MAX_EXPECTED

    def row(self, name: str, schedule: Schedule, waiting: Sequence[Values], past: _Past) -> PeriodsByDayView:
        """The row of a schedule. The runs of one without periods on these days are not read."""
        why, complete_from = None, 0
        states: Mapping[Values, PeriodState] = {}
        try:
            expected = self._expected_of(name, schedule)
        except SluiceError as error:
            why, expected = error.said, ()
        if expected:
            row, attempts, complete_from = past.of(name, schedule.keys)
            ends, active = after(Ends.of_text(row.ends) if row is not None else Ends(), attempts, schedule.keys)
            states = period_ends.states(ends, active, waiting)
            self._work += len(waiting) + len(attempts)
        self._expected += len(expected)
        counts: list[Counter[PeriodState]] = [Counter() for _ in range(self._days.count)]
        for day, values, end in expected:
            state = states.get(values, "missing")
            if state != "missing" or end is None or end <= self._now:
                counts[day][state] += 1
        return {
            "schedule": name,
            "days": "".join(map(_letter, counts)),
            "mixed": {self._days.named(day): dict(count) for day, count in enumerate(counts) if len(count) > 1},
            "why": why,
            "complete_from": iso(complete_from),
        }

    def _expected_of(self, name: str, schedule: Schedule) -> tuple[_Of, ...]:
        """The periods of a schedule on these days. Raises ``invalid`` if it has none, or too many."""
        until = min(self._days.until, self._now)
        if not schedule.keys and (rules := tree.recurrences(schedule.trigger)):
            timer = self._ports.rows.get(Timer, name)
            anchor = timer.anchor if timer is not None else None
            key = repr((rules, anchor if any(rule.counts_from_anchor for rule in rules) else None))
            if key not in self._calendars:
                fires = periods.fires_of(schedule, anchor, self._days.since, until)
                self._calendars[key] = tuple(self._on_days((self._day_of(each.at), each) for each in fires))
            return self._calendars[key]
        key = repr((schedule.keys, schedule.per, schedule.zone, datasets_of(schedule)))
        if key not in self._calendars:
            source = source_of(self._ports, schedule, with_first=False)
            found = periods.expected_of(source, schedule.keys, self._days.since, until)
            self._calendars[key] = tuple(
                self._on_days((each.period.wall.date(), each) for each in found if each.period is not None)
            )
        return self._calendars[key]

    def _on_days(self, found: Iterator[tuple[date, periods.Expected]]) -> Iterator[_Of]:
        for day, each in found:
            number = (day - self._days.first).days
            if 0 <= number < self._days.count:
                yield _Of(number, each.values, each.period.end if each.period is not None else None)

    def _day_of(self, at: Instant) -> date:
        return datetime.fromtimestamp(at / 1000, self._days.zone).date()


def _letter(count: Counter[PeriodState]) -> str:
    return next((letter for state, letter in LETTERS.items() if state in count), NO_PERIOD)
