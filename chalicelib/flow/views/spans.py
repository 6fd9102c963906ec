"""Views of many runs at once: the timeline of a namespace in columns, and the days of a schedule (H1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NotRequired, TypeVar
from zoneinfo import ZoneInfo

from chalicelib.core.history.durations import began, took, waited
from chalicelib.core.instants import DAY, Instant, iso, millis
from chalicelib.core.rows.run import RunSpan
from chalicelib.core.states import RunState
from chalicelib.core.views import At, FromAt, FromText, View
from chalicelib.core.why import Sees, everyone
from chalicelib.flow.views.lists import MAX_DAYS
from chalicelib.flow.views.views import RunView, run_view
from chalicelib.ports import Ports

S = TypeVar("S", bound=str)

MAX_ATTEMPTS, MAX_RECORDS = 5_000, 2_000  # rows that the days of a schedule are counted from


class TimelineView(FromAt):
    """Attempts in columns, newest first: each list but the first three has one value for each attempt. ``row`` and
    ``state`` are numbers in ``names`` and ``states``; ``workflows`` has the workflow of each name. ``at`` is when the
    wait began, in ms since 1970; ``waited``, ``starting`` and ``took`` follow each other, in ms. ``starting`` is from
    the claim to the start, and ``took`` is null for an attempt that is not over. ``count`` is how many sent events of a
    large fire it stands for. ``at_least``: there are more, before ``complete_from``."""

    to: At
    names: list[str]
    workflows: list[str]
    states: list[RunState]
    row: list[int]
    at: list[int]
    waited: list[int]
    starting: list[int]
    took: list[int | None]
    state: list[int]
    count: list[int]
    ids: NotRequired[list[str] | None]
    at_least: bool
    complete_from: At


class DayOfScheduleView(View):
    """How many runs and records of each state a schedule has on a day."""

    day: str
    counts: dict[str, int]


class DaysOfScheduleView(FromText):
    """Runs and records by day, newest first, without empty days. ``at_least``: counts before the day
    ``complete_from`` are not whole."""

    schedule: str
    zone: str
    to: str
    days: list[DayOfScheduleView]
    at_least: bool
    complete_from: str


@dataclass(frozen=True, slots=True)
class Within:
    """The attempts of a timeline, at most ``limit``: those that were claimed in ``[since, until)``. If a schedule or
    workflow is given by its full name, only its own."""

    since: Instant
    until: Instant
    limit: int
    schedule: str | None = None
    workflow: str | None = None


def _numbered(texts: Sequence[S]) -> tuple[list[S], list[int]]:
    """The texts in the order of their first use, and the number of each one among them."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), [numbers[text] for text in texts]


def timeline(
    ports: Ports, namespace: str, wanted: Within, with_ids: bool = False, sees: Sees = everyone
) -> TimelineView:
    """The attempts of a namespace in columns, newest first: a list for each field, and numbers instead of names. Those
    of a workflow may be of schedules of other namespaces, which are left out unless ``sees`` accepts them."""
    found = _claimed(ports, namespace, wanted)
    read, cut = found[: wanted.limit], len(found) > wanted.limit
    spans = [span for span in read if sees(span.schedule)]
    workflows = {span.schedule: span.workflow for span in reversed(spans)}
    names, row = _numbered([span.schedule for span in spans])
    kinds, state = _numbered([span.state for span in spans])
    waits = [waited(span) for span in spans]
    view: TimelineView = {
        "from": iso(wanted.since),
        "to": iso(wanted.until),
        "names": names,
        "workflows": [workflows[name] for name in names],
        "states": kinds,
        "row": row,
        "at": [span.claimed_at - wait for span, wait in zip(spans, waits, strict=True)],
        "waited": waits,
        "starting": [max(0, began(span) - span.claimed_at) for span in spans],
        "took": [took(span) for span in spans],
        "state": state,
        "count": [span.events for span in spans],
        "at_least": cut,
        # Attempts of the same instant may have been cut, so the first whole instant is the next one.
        "complete_from": iso(read[-1].claimed_at + 1 if cut else wanted.since),
    }
    if with_ids:
        view["ids"] = [f"{span.run_id}#{span.attempt}" for span in spans]
    return view


def _claimed(ports: Ports, namespace: str, wanted: Within) -> tuple[RunSpan, ...]:
    """The attempts, and one more if there are more than wanted."""
    if wanted.schedule is not None:
        scope, names = "schedule", [wanted.schedule]
    elif wanted.workflow is not None:
        scope, names = "workflow", [wanted.workflow]
    else:
        days = range((wanted.until - 1) // DAY, wanted.since // DAY - 1, -1)
        scope, names = "day", [f"{namespace}#{iso(day * DAY)[:10]}" for day in days]
    return ports.runs.spans(scope, names, wanted.since, wanted.until, wanted.limit + 1)


def days(ports: Ports, schedule: str, first: date, last: date, zone: ZoneInfo) -> DaysOfScheduleView:
    """How many runs and records of each state a schedule has on each day of a zone, both days included.

    A run counts once, in the state of its last attempt, on the day of that attempt's claim. Days without any are left
    out."""
    since, until = _midnight(first, zone), _midnight(last + timedelta(days=1), zone)
    attempts = ports.runs.spans("schedule", [schedule], since, until, MAX_ATTEMPTS + 1)
    records = ports.runs.records_between(schedule, since, until, MAX_RECORDS + 1)
    oldest = [attempts[-1].claimed_at] if len(attempts) > MAX_ATTEMPTS else []
    oldest += [records[-1].recorded_at] if len(records) > MAX_RECORDS else []
    counts: dict[str, Counter[str]] = {}
    for attempt in _last_attempts(attempts[:MAX_ATTEMPTS]):
        counts.setdefault(_day(attempt.claimed_at, zone), Counter())[attempt.state] += attempt.events
    for record in records[:MAX_RECORDS]:
        counts.setdefault(_day(record.recorded_at, zone), Counter())[record.kind] += record.count
    # The day on which the reading ended may lack rows; the day after it is whole.
    complete = date.fromisoformat(_day(max(oldest), zone)) + timedelta(days=1) if oldest else first
    return {
        "schedule": schedule,
        "zone": zone.key,
        "from": first.isoformat(),
        "to": last.isoformat(),
        "days": [{"day": day, "counts": dict(sorted(counts[day].items()))} for day in sorted(counts, reverse=True)],
        "at_least": bool(oldest),
        "complete_from": complete.isoformat(),
    }


def _last_attempts(newest_first: Iterable[RunSpan]) -> Iterator[RunSpan]:
    seen: set[str] = set()
    for attempt in newest_first:
        if attempt.run_id not in seen:
            seen.add(attempt.run_id)
            yield attempt


def _midnight(day: date, zone: ZoneInfo) -> Instant:
    return millis(datetime(day.year, day.month, day.day, tzinfo=zone))


def _day(instant: Instant, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(instant / 1000, zone).date().isoformat()


NEWEST = 500  # rows that are counted
SHOWN = 8  # of those that failed


class OutcomesView(View):
    """The newest attempts of a namespace, by state: ``runs`` of them, the oldest from ``since``. Each sent event of a
    large fire counts. ``failed`` are the last ones that failed. ``more``: there are older ones."""

    runs: int
    more: bool
    since: At | None
    states: dict[str, int]
    failed: list[RunView]


def outcomes(ports: Ports, namespace: str) -> OutcomesView:
    """The newest attempts of the last two weeks by state, from `NEWEST` rows, and in full the last `SHOWN` of them that
    failed. ``more``: there are older ones. The reads are eventually consistent."""
    now = ports.clock.now()
    days = [f"{namespace}#{iso(now - back * DAY)[:10]}" for back in range(MAX_DAYS)]
    found = ports.runs.spans("day", days, now - MAX_DAYS * DAY, now + DAY, NEWEST + 1)
    newest = found[:NEWEST]
    failed = [(span.run_id, span.attempt) for span in newest if span.state == "FAILED"][:SHOWN]
    rows = {(run.run_id, run.attempt): run for run in ports.runs.several(failed, strong=False)}
    counts: Counter[str] = Counter()
    for span in newest:
        counts[span.state] += span.events
    return {
        "runs": counts.total(),
        "more": len(found) > NEWEST,
        "since": iso(newest[-1].claimed_at) if newest else None,
        "states": dict(sorted(counts.items())),
        "failed": [run_view(rows[name], prices=ports.settings.prices) for name in failed if name in rows],
    }
