"""The periods of a schedule, and what became of each (L23).

Expected are the periods of ``per``, those of a dataset's calendar, or the instants of a time trigger. For a schedule
whose ``by`` has more keys than the period, such as a region, each combination of their values that is registered is
expected in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chalicelib.core import ids
from chalicelib.core.backfills import backfill
from chalicelib.core.backfills.periods import PeriodState, PeriodStatus, Values
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError, bad_cursor
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import DAY, Instant, parse_instant
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import tree
from chalicelib.core.views import At, Code, Sentence, View, shown
from chalicelib.flow import lookup, many
from chalicelib.flow.backfills.periods import known, of_dag_runs
from chalicelib.flow.backfills.sources import Source, source_of
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.views.views import PeriodView
from chalicelib.ports import Page, Ports

RECENT = 31  # days of fires that are shown by default; one day of those that are more than 24 a day


class PeriodOfScheduleView(View):
    """What became of one period of a schedule. ``at`` is when it begins; ``period`` is null for the instant of a time
    trigger, and ``values`` are those of ``by``, or null. ``why`` says what it waits for, or why it failed. ``runs`` are
    newest first, and ``attempts`` those of the newest one. ``revision`` counts the runs. ``since`` is when it began to
    wait or run, or when it ended. ``ready_at`` is when its partition was ready: null if it is not registered, or if
    ``by`` does not name a partition."""

    at: At
    period: PeriodView | None
    values: dict[str, str] | None
    state: PeriodState
    why: Sentence | None
    code: Code | None
    job_id: str | None
    runs: list[str]
    attempts: int
    revision: int
    since: At | None
    ready_at: At | None


@dataclass(frozen=True, slots=True)
class Expected:
    """A period that a schedule should have run. ``values`` are those of ``by``, or the nominal instant."""

    at: Instant
    values: Values
    period: Period | None = None

    @property
    def position(self) -> str:
        return json.dumps([self.at, self.values])


def page(
    ports: Ports, name: str, since: Instant | None, until: Instant, limit: int, cursor: str | None
) -> tuple[Page[PeriodOfScheduleView], Instant]:
    """A page of the periods that begin in ``[since, until)``, oldest first, and the instant before which older runs
    were not read. Without ``since`` they begin with the first registered partition, or with the fires of the last
    `RECENT` days. Periods that are not over are left out, unless there is work for them. Raises `SluiceError`
    (``invalid``) for a schedule without periods."""
    schedule_state, schedule = lookup.existing(ports, name)
    begin, is_dag = _position(cursor), ids.is_dag_graph(schedule.workflow)
    limit = min(limit, dag_runs.MAX_SHOWN) if is_dag else limit
    if tree.recurrences(schedule.trigger) and not schedule.keys:
        source, first = None, since if since is not None else _recent(schedule, until)
        timer = ports.rows.get(Timer, schedule_state.schedule)
        expected = fires_of(schedule, timer.anchor if timer else None, max(first, begin[0]), until)
    else:
        source = source_of(ports, schedule, with_first=since is None)
        first = since if since is not None else source.first if source.first is not None else until
        expected = expected_of(source, schedule.keys, max(first, begin[0]), until)
    rest = (each for each in expected if (each.at, each.values) > begin)
    found = list(islice(rest, limit + 1))
    shown_now = found[:limit]
    seen = known(ports, schedule_state, schedule, max(0, shown_now[0].at - DAY) if shown_now else until)
    now = ports.clock.now()
    ready = _ready(ports, source, schedule.by, shown_now) if schedule.per is None else {}
    statuses = [seen.of(each.values) for each in shown_now]
    items = tuple(
        _view(each, status, schedule.keys, ready.get(each.values))
        for each, status in zip(shown_now, of_dag_runs(ports, statuses) if is_dag else statuses, strict=True)
        if status.state != "missing" or each.period is None or each.period.end <= now
    )
    return Page(items, shown_now[-1].position if len(found) > limit else None), seen.complete_from


def expected_of(source: Source, by: Values, since: Instant, until: Instant) -> Iterator[Expected]:
    """The periods from ``since`` on in their order, each with every combination of the other values."""
    for period in source.names.calendar.between(since, until) if since < until else ():
        written = source.names.write(period)
        for other in source.others:
            rest = iter(other)
            values = tuple(written[key] if key in written else next(rest) for key in by)
            yield Expected(period.start, values, period)


def fires_of(schedule: Schedule, anchor: Instant | None, since: Instant, until: Instant) -> Iterator[Expected]:
    """The fires in ``[since, until)``. Intervals count from ``anchor``. Raises ``invalid`` for too many."""
    if since >= until:
        return
    try:
        instants = backfill.instants(schedule, anchor, since, until)
    except SluiceError as error:
        raise SluiceError(
            error.code, f"expected at most {backfill.MAX_ENTRIES} periods", "from", "begin later"
        ) from None
    for text in instants:
        yield Expected(parse_instant(text), (text,))


def _recent(schedule: Schedule, until: Instant) -> Instant:
    daily = upcoming.per_day(schedule)
    return max(0, until - (DAY if daily is not None and daily > 24 else RECENT * DAY))


def _ready(ports: Ports, source: Source | None, by: Values, expected: Sequence[Expected]) -> dict[Values, Instant]:
    """When the partition of each period was ready, by the values of ``by``; those of which it is known."""
    if source is None or set(by) != set(source.dataset.keys):
        return {}
    order = [by.index(key) for key in source.dataset.keys]
    of = {tuple(each.values[place] for place in order): each.values for each in expected}
    rows: Iterable[Partition] = many.rows(ports, Partition, [(source.name, values) for values in of], strong=False)
    return {of[row.values]: row.event.instant for row in rows}


def _view(expected: Expected, status: PeriodStatus, by: Values, ready: Instant | None) -> PeriodOfScheduleView:
    return shown(
        PeriodOfScheduleView,
        _Row(expected.at, status.at, ready),
        period=shown(PeriodView, expected.period) if expected.period is not None else None,
        values=dict(zip(by, expected.values, strict=True)) if by else None,
        state=status.state,
        why=status.why or None,
        code=status.why.code or None,
        job_id=status.job,
        runs=list(status.runs),
        attempts=status.attempts,
        revision=status.revision,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The instants of a view."""

    at: Instant
    since: Instant | None
    ready_at: Instant | None


def _position(cursor: str | None) -> tuple[Instant, Values]:
    """The last period of the page before. Raises ``bad_cursor``."""
    if cursor is None:
        return 0, ()
    try:
        at, values = json.loads(cursor)
        return int(at), tuple(map(str, values))
    except (ValueError, TypeError):
        raise bad_cursor() from None
