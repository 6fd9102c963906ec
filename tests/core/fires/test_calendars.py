"""Fires on working days (T30), compared with a walk through all days, also while the calendar changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, iso, parse_instant
from chalicelib.core.names import Names
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.time import TimeTrigger
from tests.core.builders import NOON, brief, schedule, schedule_state
from tests.core.walk import Meaning, readings

HORIZON = 2 * MINUTE
MEANINGS = {
    "LW": Meaning(nearest=frozenset({0})),
    "15W,L-3": Meaning(nearest=frozenset({15}), from_end=frozenset({3})),
    "W#1,W#4": Meaning(working=frozenset({1, 4})),
    "W": Meaning(working=frozenset(range(1, 24))),
}
# Clocks go forward at midnight in Cairo (24 April 2026), at two in New York (8 March).
ZONES = ["UTC", "America/New_York", "Africa/Cairo", "Pacific/Kiritimati", "Australia/Lord_Howe"]
holidays = st.frozensets(st.dates(date(2026, 2, 25), date(2026, 7, 5)), max_size=60)


def named(expression: str, days: frozenset[date], **fields: Any) -> TimeTrigger:
    document = {"type": "time", "expression": expression, "calendar": "demo.france", **fields}
    trigger = TimeTrigger.model_validate(document).resolve(Names("demo", "flights", "UTC", NOON))
    tree.learn(trigger, "demo.france", calendar(days).holidays())
    return trigger


def calendar(days: frozenset[date]) -> HolidayCalendar:
    return HolidayCalendar.model_validate({"days": [str(day) for day in sorted(days)] or ["02-29"]})


def walk(meaning: Meaning, days: frozenset[date], zone: str, clock: time, left_out: Any = ()) -> list[Instant]:
    """The instants of 120 days from NOON on, by a look at each day; a time in a gap is the end of the gap."""
    found = []
    for number in range(-1, 121):
        day = date(2026, 3, 2) + timedelta(days=number)
        if meaning.on(day, days) and str(day) not in left_out:
            wall = datetime.combine(day, clock)
            shown = readings(wall, zone)
            while not shown:
                wall += timedelta(minutes=1)
                shown = readings(wall, zone)
            found.append(shown[0])
    return [at for at in found if NOON < at < NOON + 119 * DAY]


@given(
    st.sampled_from(list(MEANINGS)),
    holidays,
    st.sampled_from(ZONES),
    st.sampled_from([time(0, 30), time(2, 15), time(17, 0)]),
    st.lists(st.sampled_from(["2026-03-31", "2026-04-01", "2026-04-30", "2026-05-15"]), max_size=3),
    st.sampled_from([None, "2026-04-02T00:00:00Z"]),
    st.sampled_from([None, "2026-05-20T00:00:00Z"]),
)
@brief
def test_t30_the_fires_are_those_of_a_walk_through_all_days(
    text: str, days: frozenset[date], zone: str, clock: time, excluding: list[str], start: str | None, end: str | None
) -> None:
    bounds = {name: at for name, at in (("start", start), ("end", end)) if at is not None}
    trigger = named(f"{clock.minute} {clock.hour} {text} * *", days, zone=zone, excluding=excluding, **bounds)
    wanted = walk(MEANINGS[text], days, zone, clock, excluding)
    wanted = [at for at in wanted if start is None or at >= parse_instant(start)]
    wanted = [at for at in wanted if end is None or at <= parse_instant(end)]
    found: list[Instant] = []
    at: Instant | None = NOON
    while (at := trigger.next_due(NOON, at)) is not None and at < NOON + 119 * DAY:
        found.append(at)
    assert [iso(each) for each in found] == [iso(each) for each in wanted]


@given(
    st.sampled_from(list(MEANINGS)),
    st.lists(holidays, min_size=1, max_size=4),
    st.integers(6, 20),
    st.integers(1, 20),
)
@brief
def test_t30_a_fire_follows_the_calendar_at_its_horizon(
    text: str, changes: list[frozenset[date]], hours: int, often: int
) -> None:
    """The calendar changes after ticks. Each fire is there once: that of the calendar when the horizon reached it."""
    document = schedule({"type": "time", "expression": f"0 17 {text} * *", "calendar": "demo.france"})
    known = changes[0]
    learn(document, known)
    timer = fire_timer.first_timer(document, replace(schedule_state(), since=NOON), NOON)
    made: list[Instant] = []
    wanted: list[Instant] = []
    reached, walks = NOON, {days: walk(MEANINGS[text], days, "UTC", time(17)) for days in changes}
    for number in range(100 * 24 // hours):
        now = NOON + number * hours * HOUR
        wanted += [at for at in walks[known] if reached < at < now + HORIZON]
        reached = now + HORIZON - 1
        if timer is not None:
            emission = fire_timer.emit(timer, document, now, now + HORIZON)
            made += [fire.due_at or 0 for fire in emission.fires]
            timer = emission.timer
            if number % often == 0:
                known = changes[number % len(changes)]
                learn(document, known)
                timer = fire_timer.recounted(timer, document, now + HORIZON)
    assert [iso(at) for at in made] == [iso(at) for at in wanted]


def learn(document: Schedule, days: frozenset[date]) -> None:
    tree.learn(document.trigger, "demo.france", calendar(days).holidays())


def test_t30_a_jittered_fire_of_a_new_holiday_moves() -> None:
    """Its nominal instant is before the horizon, and its due instant after it, so it is not prepared."""
    document = schedule({"type": "time", "expression": "0 17 LW * *", "calendar": "demo.france", "jitter": "6h"})
    learn(document, frozenset())
    timer = fire_timer.first_timer(document, replace(schedule_state(), since=NOON), NOON)
    nominal = parse_instant("2026-03-31T17:00:00Z")
    assert timer is not None and timer.next == {"0": nominal}
    assert (timer.wake_at or 0) > nominal + HORIZON
    assert fire_timer.recounted(timer, document, nominal + HORIZON).next == {"0": nominal}
    learn(document, frozenset({date(2026, 3, 31)}))
    moved = fire_timer.recounted(timer, document, nominal + HORIZON)
    assert moved.next == {"0": parse_instant("2026-04-30T17:00:00Z")}
    assert (moved.wake_at or 0) >= moved.next["0"]


def test_t30_holidays_are_no_part_of_the_document() -> None:
    read, plain = named("0 17 LW * *", frozenset({date(2026, 3, 31)})), named("0 17 LW * *", frozenset())
    assert read == plain
    assert read.model_dump(mode="json") == plain.model_dump(mode="json")
    assert "holidays" not in str(read.model_dump(mode="json"))
    copied = read.unbounded()
    found = copied.next_due(NOON, NOON)
    assert found is not None and datetime.fromtimestamp(found // 1000, UTC).day == 30, "a copy knows them too"


def test_t30_fires_are_not_computed_without_the_holidays() -> None:
    trigger = TimeTrigger.model_validate({"type": "time", "expression": "0 17 LW * *", "calendar": "demo.france"})
    with pytest.raises(RuntimeError, match="expected the holidays of demo.france"):
        trigger.next_due(NOON, NOON)
