"""The next step of a timer: its fires, and the writes that move it or complete its schedule (E1, T6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, SECOND
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.schedules.timer_step import TimerStep, next_step, unknown_zones
from chalicelib.core.writes import ExpectMode, Put, Replace
from tests.core.builders import NAME, NOON, TICK, schedule, schedule_state

TWICE: dict[str, Any] = {**TICK, "repeats": 2}
HORIZON = NOON + 75 * SECOND


def timer(document: dict[str, Any] = TICK) -> Timer:
    made = fire_timer.first_timer(schedule(document), schedule_state(), NOON)
    assert made is not None
    return made


def step(one: Timer, document: dict[str, Any] = TICK, now: int = NOON, **state: Any) -> TimerStep | None:
    return next_step(one, schedule(document), schedule_state(**state), now, now + 75 * SECOND)


def used_up() -> Timer:
    return replace(timer(TWICE), next={}, fired={"0": 2}, wake_at=None)


def test_e1_a_step_has_the_fires_and_moves_the_timer() -> None:
    made = step(timer())
    assert made is not None
    assert made.schedule == NAME
    assert [fire.due_at for fire in made.fires] == [NOON + number * 10 * SECOND for number in range(1, 8)]
    [moved] = made.plan
    assert isinstance(moved, Replace) and isinstance(moved.row, Timer)
    assert (moved.row.rev, moved.row.wake_at, made.again) == (2, NOON + 80 * SECOND, None)


def test_e1_a_timer_without_a_fire_in_the_horizon_has_no_step() -> None:
    assert step(replace(timer(), next={"0": HORIZON}, wake_at=HORIZON)) is None


def test_t5_missed_fires_are_put_on_record_as_the_timer_moves() -> None:
    made = step(timer(), now=NOON + 2 * DAY)
    assert made is not None and made.emission is not None
    [moved, record] = made.plan
    assert isinstance(moved, Replace)
    assert record == Put(made.emission.skipped[0])


def test_t6_the_step_with_the_last_fire_completes_the_schedule() -> None:
    made = step(timer(TWICE), TWICE)
    assert made is not None
    assert len(made.fires) == 2
    assert len(made.plan) > 1


def test_t6_a_used_up_timer_completes_without_a_fire() -> None:
    made = step(used_up(), TWICE)
    assert made is not None
    assert made.fires == ()
    assert len(made.plan) > 1


def test_l4_after_the_last_fire_a_paused_schedule_stays_paused() -> None:
    made = step(timer(TWICE), TWICE, mode="backlog")
    assert made is not None
    paused = schedule_state(mode="backlog")
    assert [write for write in made.plan if isinstance(write, ExpectMode)] == [ExpectMode(paused, ("backlog",))]


def test_t2_a_known_zone_never_stops_a_timer() -> None:
    assert unknown_zones(timer(), schedule(TICK), schedule_state()) == ()
    assert unknown_zones(used_up(), schedule(TWICE), schedule_state()) == ()
