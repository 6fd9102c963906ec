"""The whole rows that one check of a timer makes: fires, the timer after them, records, the next check (E2, T5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.timer import Emission
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.triggers.time import TimeTrigger
from tests.core.builders import ELAPSED, NAME, NOON, any_of, schedule, schedule_state
from tests.support.reasons import says

TEN_MINUTES: dict[str, Any] = {"type": "time", "expression": "@every 10m"}
EVERY_MINUTE: dict[str, Any] = {"type": "time", "expression": "@every 1m"}
EVERY_SECOND: dict[str, Any] = {"type": "time", "expression": "@every 1s"}
TEN = NOON + 10 * MINUTE
BEGUN = Timer(NAME, 7, 1, NOON, {"0": TEN}, wake_at=TEN)


def fire(nominal: Instant, due: Instant, index: int = 0, **fields: Any) -> Job:
    return Job(
        schedule=NAME,
        generation=7,
        sort_key=f"FIRE#2026-03-02T12:{(nominal - NOON) // MINUTE:02}:00.000Z#0#{index}",
        job_id=ids.job_id(NAME, 7, f"fire:{nominal}:0:{index}"),
        kind="fire",
        state="PENDING_CONSTRAINTS",
        created_at=due,
        due_at=due,
        index=index,
        accepted_at=due,
        leaf="0",
        wake_at=due,
        **fields,
    )


def first(document: dict[str, Any], **fields: Any) -> Timer:
    made = fire_timer.first_timer(schedule(document, **fields), schedule_state(), NOON)
    assert made is not None
    return made


# -- the events of one fire ----------------------------------------------------------------------------------------


def test_e2_events_not_due_yet_are_written_at_the_next_check() -> None:
    four = schedule(TEN_MINUTES, spread={"count": 4, "over": "2m"})
    assert first(TEN_MINUTES, spread={"count": 4, "over": "2m"}) == BEGUN
    ends, half = TEN + 2 * MINUTE, 30 * SECOND

    step = fire_timer.emit(BEGUN, four, TEN, TEN + MINUTE)
    assert step == Emission(
        (
            fire(TEN, TEN, shape=(4, 2 * MINUTE), window_end=ends),
            fire(TEN, TEN + half, 1, nominal_at=TEN, shape=(4, 2 * MINUTE), window_end=ends),
        ),
        Timer(
            NAME, 7, 1, NOON, {"0": TEN + 10 * MINUTE}, begun=((TEN, TEN, 2),), rev=2, wake_at=TEN + MINUTE
        ),
        (),
    )  # fmt: skip

    step = fire_timer.emit(step.timer, four, TEN + MINUTE, TEN + 2 * MINUTE)
    assert step == Emission(
        (
            fire(TEN, TEN + 2 * half, 2, nominal_at=TEN, shape=(4, 2 * MINUTE), window_end=ends),
            fire(TEN, TEN + 3 * half, 3, nominal_at=TEN, shape=(4, 2 * MINUTE), window_end=ends),
        ),
        Timer(NAME, 7, 1, NOON, {"0": TEN + 10 * MINUTE}, rev=3, wake_at=TEN + 10 * MINUTE),
        (),
    )


def test_e2_events_all_at_once_have_no_window() -> None:
    step = fire_timer.emit(BEGUN, schedule(TEN_MINUTES, spread={"count": 2}), TEN, TEN + 1)
    assert step.fires == (fire(TEN, TEN, shape=(2, 0)), fire(TEN, TEN, 1, shape=(2, 0)))


def test_t1_a_jittered_fire_has_a_deterministic_due_instant() -> None:
    document = TEN_MINUTES | {"jitter": "5m"}
    rule = schedule(document).trigger
    assert isinstance(rule, TimeTrigger)
    due = rule.jittered(NOON, TEN, f"{NAME}#0")
    assert due > TEN
    timer = first(document)
    assert timer.wake_at == due
    assert fire_timer.emit(timer, schedule(document), NOON, due).fires == ()
    assert fire_timer.emit(timer, schedule(document), NOON, due + 1).fires == (fire(TEN, due, nominal_at=TEN),)


def test_e2_windows_that_overlap_stop_no_fire() -> None:
    """Each fire has a second event two hours later, so no fire of these two hours is written completely."""
    slow, end = {"count": 2, "over": "4h"}, NOON + 2 * HOUR
    step = fire_timer.emit(first(EVERY_MINUTE, spread=slow), schedule(EVERY_MINUTE, spread=slow), NOON, end)
    assert [at.due_at for at in step.fires] == [NOON + minute * MINUTE for minute in range(1, 120)]
    assert step.timer.begun == tuple((NOON + m * MINUTE, NOON + m * MINUTE, 1) for m in range(1, 120))
    assert (step.timer.next, step.timer.wake_at) == ({"0": end}, end)
    assert step.more is False


# -- what is prepared late -----------------------------------------------------------------------------------------


def test_c10_fire_prepared_late_has_its_whole_timeout_from_then() -> None:
    now = NOON + 3 * MINUTE
    step = fire_timer.emit(first(EVERY_MINUTE), schedule(EVERY_MINUTE), now, now + 1)
    assert step.fires == (
        fire(NOON + MINUTE, NOON + MINUTE, prepared_at=now),
        fire(NOON + 2 * MINUTE, NOON + 2 * MINUTE),
        fire(NOON + 3 * MINUTE, NOON + 3 * MINUTE),
    )


def test_t5_skipped_fires_are_on_record_and_count_as_repeats() -> None:
    hourly = {"type": "time", "expression": "@every 1h", "repeats": 30}
    timer = replace(first(hourly), fired={"0": 2}, rev=4)
    now = NOON + DAY + 2 * HOUR + 1
    step = fire_timer.emit(timer, schedule(hourly), now, now + MINUTE)
    reason = (
        "2 fires from 2026-03-02T13:00:00.000Z to 2026-03-02T14:00:00.001Z were missed by more than a day"
        " and are skipped"
    )
    record_id = ids.job_id(NAME, 7, f"skipped:0:{NOON + HOUR}:4")
    assert step.skipped == (
        Record(record_id, "SKIPPED", NAME, 7, says(reason), now, count=2, expires_at=now + 180 * DAY),
    )  # fmt: skip
    assert [at.due_at for at in step.fires] == [NOON + hour * HOUR for hour in range(3, 27)]
    assert step.timer == replace(timer, next={"0": NOON + 27 * HOUR}, fired={"0": 28}, rev=5, wake_at=NOON + 27 * HOUR)


def test_t5_a_timer_whose_repeats_were_all_missed_is_used_up() -> None:
    hourly = {"type": "time", "expression": "@every 1h", "repeats": 4}
    late = NOON + 3 * DAY
    step = fire_timer.emit(replace(first(hourly), fired={"0": 1}), schedule(hourly), late, late + MINUTE)
    assert (step.fires, [record.count for record in step.skipped]) == ((), [3])
    assert step.timer == Timer(NAME, 7, 1, NOON, {}, fired={"0": 4}, rev=2)


def test_t5_what_one_check_cannot_count_is_continued_at_once() -> None:
    """Fires of a cron expression with repeats can only be counted one by one, and before that none is prepared."""
    minutely = {"type": "time", "expression": "* * * * *", "repeats": 20_000}
    late = NOON + 9 * DAY
    step = fire_timer.emit(first(minutely), schedule(minutely), late, late + MINUTE)
    assert (step.fires, [record.count for record in step.skipped]) == ((), [10_000])
    following = NOON + 10_001 * MINUTE
    assert step.timer == Timer(NAME, 7, 1, NOON, {"0": following}, fired={"0": 10_000}, rev=2, wake_at=following)
    assert step.more is True


# -- repeats -------------------------------------------------------------------------------------------------------


def test_t1_repeats_are_counted_across_checks_until_used_up() -> None:
    both = any_of(EVERY_MINUTE | {"repeats": 3}, EVERY_MINUTE)
    step = fire_timer.emit(first(both), schedule(both), NOON, NOON + 2 * MINUTE + 1).timer
    assert step.fired == {"0": 2}, "a leaf without repeats is not counted"
    assert step.next == {"0": NOON + 3 * MINUTE, "1": NOON + 3 * MINUTE}
    last = fire_timer.emit(step, schedule(both), NOON + 2 * MINUTE, NOON + 5 * MINUTE)
    assert [(at.leaf, at.due_at) for at in last.fires] == [
        ("0", NOON + 3 * MINUTE),
        ("1", NOON + 3 * MINUTE),
        ("1", NOON + 4 * MINUTE),
    ]
    assert (last.timer.fired, last.timer.next) == ({"0": 3}, {"1": NOON + 5 * MINUTE})


# -- whether the next check is due at once -------------------------------------------------------------------------


def test_e1_full_portion_is_continued_at_once_if_fires_are_left() -> None:
    timer, document = first(EVERY_SECOND), schedule(EVERY_SECOND)
    full = fire_timer.emit(timer, document, NOON, NOON + 502 * SECOND)
    assert (len(full.fires), full.more) == (500, True)
    just = fire_timer.emit(timer, document, NOON, NOON + 501 * SECOND)
    assert (len(just.fires), just.more) == (500, False), "the next fire is due at the horizon"
    less = fire_timer.emit(timer, document, NOON, NOON + 500 * SECOND)
    assert (len(less.fires), less.more) == (499, False)


def test_t13_a_span_is_prepared_before_the_horizon_and_not_at_it() -> None:
    timer, due = first(ELAPSED), NOON + 4 * HOUR
    assert fire_timer.emit(timer, schedule(ELAPSED), NOON, due).fires == ()
    [row] = fire_timer.emit(timer, schedule(ELAPSED), NOON, due + 1).fires
    assert row == replace(fire(due, due), sort_key="FIRE#2026-03-02T16:00:00.000Z#0#0")


def test_t13_a_span_due_again_before_the_horizon_waits_for_check() -> None:
    """A run that starts before then postpones the second fire, so it is not prepared at once."""
    step = fire_timer.emit(first(ELAPSED), schedule(ELAPSED), NOON, NOON + 3 * DAY)
    assert (len(step.fires), step.timer.wake_at, step.more) == (1, NOON + 8 * HOUR, False)


@pytest.mark.parametrize(
    ("end", "upcoming", "wakes_at"),
    [
        (NOON + 4 * HOUR, {"0": NOON + 4 * HOUR}, NOON + 4 * HOUR),
        (NOON + 4 * HOUR - 1, {}, NOON + 4 * HOUR + 999),  # to end the schedule
    ],
)
def test_t13_a_span_is_due_up_to_and_including_the_schedule_end(
    end: Instant, upcoming: dict[str, Instant], wakes_at: Instant
) -> None:
    assert first(ELAPSED, ttl=iso(end)) == Timer(NAME, 7, 1, NOON, upcoming, wake_at=wakes_at)


# -- the first timer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "upcoming", "wakes_at"),
    [
        ({"due_time": iso(NOON)}, {"0": NOON}, NOON),  # the present instant is valid
        ({"due_time": iso(NOON), "expression": "@every 1h"}, {"0": NOON}, NOON),
        ({"due_time": iso(NOON + 1)}, {"0": NOON + 1}, NOON + 1),
        ({"due_time": iso(NOON - 1)}, {}, NOON),  # complete before it began, as the first check finds
        ({"expression": "0 12 * * *"}, {"0": NOON + DAY}, NOON + DAY),  # the fire of this instant is in the past
    ],
)
def test_t3_a_due_time_may_be_the_start_but_fire_comes_after_it(
    document: dict[str, Any], upcoming: dict[str, Instant], wakes_at: Instant
) -> None:
    assert first({"type": "time", **document}) == Timer(NAME, 7, 1, NOON, upcoming, wake_at=wakes_at)
