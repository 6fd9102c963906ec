"""A fixed number of fires: ISO 8601 `R4/PT3S` fires four times, three seconds apart, and then no more (T1, R4/PT3S)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import DAY, HOUR, SECOND, Instant
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.time import expressions, wording
from tests.core.builders import NOON, TICK, any_of, brief, schedule, schedule_state

FOUR: dict[str, Any] = {"type": "time", "expression": "R4/PT3S"}


def timer(document: dict[str, Any], now: Instant = NOON) -> Timer:
    made = fire_timer.first_timer(schedule(document), schedule_state(), now)
    assert made is not None
    return made


def all_fires(expression: str, anchor: Instant, after: Instant) -> list[Instant]:
    found: list[Instant] = []
    while (fire := expressions.next_fire(expression, "UTC", anchor, found[-1] if found else after)) is not None:
        found.append(fire)
    return found


def test_t1_a_repeated_interval_fires_n_times_from_its_anchor() -> None:
    assert all_fires("R4/PT3S", NOON, NOON) == [NOON + seconds * SECOND for seconds in (3, 6, 9, 12)]
    assert all_fires("R4/PT3S", NOON, NOON + 9 * SECOND) == [NOON + 12 * SECOND]
    assert all_fires("R4/PT3S", NOON, NOON + 12 * SECOND) == []
    assert all_fires("R4/PT3S", NOON, NOON - DAY)[0] == NOON + 3 * SECOND, "nothing fires before its anchor"


@given(st.integers(1, 30), st.integers(1, 5_000), st.integers(-10_000, 200_000))
@brief
def test_t1_repeats_after_any_instant_are_those_remaining(count: int, seconds: int, offset: int) -> None:
    every = [NOON + number * seconds * SECOND for number in range(1, count + 1)]
    after = NOON + offset * SECOND
    assert all_fires(f"R{count}/PT{seconds}S", NOON, after) == [fire for fire in every if fire > after]


@pytest.mark.parametrize("expression", ["R1/PT1S", "r4/pt3s", " R4/PT3S ", "R999999999/P1W", "R2/PT1H30M", "R/PT3S"])
def test_t1_a_repeated_interval_is_accepted_in_any_spelling(expression: str) -> None:
    expressions.parse(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "R0/PT3S",
        "R4/PT0S",
        "R4/PT0.5S",
        "R4/",
        "R4",
        "R/P1M",
        "R-1/PT3S",
        "R4/3s",
        "R4/PT3S/x",
        "R4/0001-01-01T00:00:00+14:00/PT3S",
        "R4/noon/PT3S",
        "R1234567890/PT3S",
    ],
)
def test_t1_an_invalid_repeated_interval_is_refused_by_its_field(expression: str) -> None:
    with pytest.raises(ValidationError) as caught:
        schedule(FOUR | {"expression": expression})
    error = errors.from_validation(caught.value)
    assert error.field == "trigger.expression"
    assert error.message.startswith("expected ")


def test_t1_a_repeated_interval_is_described_with_its_number() -> None:
    assert wording.describe("R4/PT3S") == "every 3 seconds, four times"
    assert [expressions.repeats(text) for text in ("R4/PT3S", "@every 3s", "0 5 * * *")] == [4, None, None]


def test_l10_a_timer_with_used_up_repeats_is_never_due() -> None:
    emission = fire_timer.emit(timer(FOUR), schedule(FOUR), NOON, NOON + 75 * SECOND)
    assert [fire.due_at for fire in emission.fires] == [NOON + seconds * SECOND for seconds in (3, 6, 9, 12)]
    assert (emission.timer.next, emission.timer.wake_at, emission.timer.rev) == ({}, None, 2)


def test_l10_a_used_up_leaf_does_not_stop_the_others() -> None:
    both = any_of(FOUR, TICK)
    emission = fire_timer.emit(timer(both), schedule(both), NOON, NOON + 75 * SECOND)
    assert emission.timer.next == {"1": NOON + 80 * SECOND}
    again = fire_timer.emit(emission.timer, schedule(both), NOON + 75 * SECOND, NOON + 81 * SECOND)
    assert [fire.leaf for fire in again.fires] == ["1"]


def test_t5_repeats_missed_by_over_a_day_are_skipped_and_counted() -> None:
    late = NOON + 3 * DAY
    emission = fire_timer.emit(timer(FOUR), schedule(FOUR), late, late + 75 * SECOND)
    assert (emission.fires, emission.timer.wake_at) == ((), None)
    assert [(record.kind, record.count) for record in emission.skipped] == [("SKIPPED", 4)]


def test_t5_some_missed_repeats_are_skipped_and_some_caught_up() -> None:
    hours = FOUR | {"expression": "R40/PT1H"}
    late = NOON + DAY + 10 * HOUR + 1
    emission = fire_timer.emit(timer(hours), schedule(hours), late, late + 75 * SECOND)
    assert emission.skipped[0].count + len(emission.fires) == 34
    assert emission.fires[0].due_at == NOON + 11 * HOUR
    assert emission.timer.next == {"0": NOON + 35 * HOUR}


def test_l11_a_preview_ends_with_the_last_fire() -> None:
    assert len(upcoming.preview(schedule(FOUR), NOON, 10)) == 4
    assert upcoming.preview(schedule(FOUR), NOON + 10 * SECOND, 10, timer(FOUR)) == [NOON + 12 * SECOND]
