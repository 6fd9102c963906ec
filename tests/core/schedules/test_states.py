"""How a schedule state changes: the mode that a document requests, when the mode began, and what the change wakes
(L2-L4, L6, L18).
"""

from __future__ import annotations

from typing import Any, get_args

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, MINUTE, iso
from chalicelib.core.jobs.check import Launch, Wait, decide
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.states import Mode
from chalicelib.core.writes import CloseGeneration, Delete
from tests.core.builders import NAME, NOON, PARTITION, TICK, WEATHER, end_of, facts, job, met, schedule, schedule_state

ME = "alice"
LATER = NOON + HOUR
ALIVE: tuple[Mode, ...] = ("enabled", "hold", "backlog", "drain", "completed", "disabled")
PAUSES: tuple[PauseMode, ...] = get_args(PauseMode)
DESCRIBED = schedule(TICK, description="the nightly one")


def put(new: Schedule, before: ScheduleState, enabled: bool | None = None, carry: bool = False) -> ScheduleState:
    after, _ = lifecycle.put(NAME, new, schedule(TICK), before, enabled, LATER, ME, carry)
    return after


# -- the mode that a document requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "enabled", "after"),
    [
        *((mode, None, mode) for mode in ALIVE if mode != "completed"),
        *((mode, False, "disabled") for mode in ALIVE),
        *((mode, True, mode) for mode in ("enabled", "hold", "backlog", "drain")),
        ("disabled", True, "enabled"),
    ],
)
@pytest.mark.parametrize("new", [DESCRIBED, schedule(WEATHER)])
def test_l2_a_document_always_disables_and_enables_not_active(
    before: Mode, enabled: bool | None, after: Mode, new: Schedule
) -> None:
    """A paused schedule counts as enabled: only a resume ends the pause."""
    assert put(new, schedule_state(mode=before), enabled).mode == after


@pytest.mark.parametrize("enabled", [None, True])
@pytest.mark.parametrize(
    ("new", "after"),
    [
        (DESCRIBED, "completed"),
        (schedule(TICK, priority=9), "completed"),
        (schedule(TICK, ttl=iso(NOON + DAY)), "completed"),
        (schedule(WEATHER), "enabled"),  # another trigger begins again
    ],
)
def test_l10_another_trigger_restarts_a_completed_schedule(new: Schedule, after: Mode, enabled: bool | None) -> None:
    for carry in (False, True):
        assert put(new, schedule_state(mode="completed"), enabled, carry).mode == after


@pytest.mark.parametrize("before", ALIVE)
def test_l3_a_document_that_disables_closes_generation_always(before: Mode) -> None:
    made = schedule(TICK)
    after, plan = lifecycle.put(NAME, made, made, schedule_state(mode=before), False, LATER, ME)
    closes = any(isinstance(write, CloseGeneration) for write in plan)
    assert closes is (before != "disabled"), "what is disabled already goes on being that"
    assert (after.generation == LATER) is closes
    timers = [write for write in plan if isinstance(write, Delete) and isinstance(write.row, Timer)]
    assert len(timers) == (before not in ("disabled", "drain"))


# -- when the mode began -------------------------------------------------------------------------------------------


def test_l4_a_mode_begins_when_it_changes() -> None:
    born, _ = lifecycle.put(NAME, DESCRIBED, None, None, True, NOON, ME)
    held, _ = lifecycle.pause(born, DESCRIBED, "hold", False, NOON + 1, ME)
    resumed, _ = lifecycle.resume(held, DESCRIBED, NOON + 2, ME)
    completed, _ = lifecycle.complete(resumed, NOON + 3)
    enabled, _ = lifecycle.enable(completed, DESCRIBED, NOON + 4, ME)
    disabled, _ = lifecycle.disable(enabled, DESCRIBED, NOON + 5, ME)
    story = (born, held, resumed, completed, enabled, disabled)
    assert [each.mode_at for each in story] == list(range(NOON, NOON + 6))


@pytest.mark.parametrize("mode", ALIVE)
@pytest.mark.parametrize(
    ("new", "carry"), [(DESCRIBED, False), (schedule(TICK, priority=9), True), (schedule(WEATHER), False)]
)
def test_l4_an_update_that_keeps_the_mode_keeps_when_it_began(mode: Mode, new: Schedule, carry: bool) -> None:
    before = schedule_state(mode=mode, mode_at=NOON - DAY)
    after = put(new, before, carry=carry)
    begins_again = mode == "completed" and new.trigger != schedule(TICK).trigger
    expected = ("enabled", LATER) if begins_again else (mode, NOON - DAY)
    assert ((after.mode, after.mode_at), after.updated_at) == (expected, LATER)


def test_l4_an_update_that_enables_or_disables_begins_a_mode() -> None:
    assert put(DESCRIBED, schedule_state(mode="disabled", mode_at=NOON - DAY), enabled=True).mode_at == LATER
    assert put(DESCRIBED, schedule_state(mode_at=NOON - DAY), enabled=False).mode_at == LATER


@pytest.mark.parametrize("mode", PAUSES)
def test_l4_a_pause_asked_for_again_keeps_its_beginning(mode: PauseMode) -> None:
    once, _ = lifecycle.pause(schedule_state(), DESCRIBED, mode, False, NOON + MINUTE, ME)
    again, _ = lifecycle.pause(once, DESCRIBED, mode, True, LATER, ME)
    assert (once.mode_at, again.mode_at, again.updated_at) == (NOON + MINUTE, NOON + MINUTE, LATER)


@pytest.mark.parametrize("left_out", [False, True])
def test_l18_a_new_description_keeps_the_times_of_drain_and_hold(left_out: bool) -> None:
    draining, _ = lifecycle.pause(schedule_state(), schedule(TICK), "drain", False, NOON + MINUTE, ME)
    held, _ = lifecycle.pause(schedule_state(), schedule(PARTITION), "hold", False, NOON + MINUTE, ME)
    draining, held = put(DESCRIBED, draining), put(schedule(TICK, owner="bob"), held)
    if left_out:
        draining, _ = lifecycle.skip(draining, schedule(TICK), NOON + DAY, True, LATER, ME)

    def due(at: int) -> Any:
        known = facts(schedule_state=draining, schedule=DESCRIBED)
        return decide(job("fire", due_at=at), known, LATER + HOUR)

    assert isinstance(due(NOON + MINUTE - 1), Launch)
    assert end_of(due(NOON + MINUTE)) == "DROPPED"
    assert end_of(due(NOON + 2 * MINUTE)) == "DROPPED"
    waiting = decide(met(), facts(schedule_state=held), LATER + HOUR)
    assert isinstance(waiting, Wait)
    assert waiting.why.text == "the schedule has been paused (hold) since 2026-03-02T12:01:00.000Z"


# -- the rows that are woken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["enabled", "hold", "backlog", "drain"])
@pytest.mark.parametrize("mode", PAUSES)
@pytest.mark.parametrize("stop", [False, True])
def test_l4_every_pause_wakes_waiting_jobs_that_hold_permits(before: Mode, mode: PauseMode, stop: bool) -> None:
    after, _ = lifecycle.pause(schedule_state(mode=before), schedule(TICK), mode, stop, LATER, ME)
    assert after.wake_at == LATER


def test_o3_a_new_description_keeps_the_pending_wakes_of_a_pause() -> None:
    held, _ = lifecycle.pause(schedule_state(), schedule(TICK), "hold", False, NOON + MINUTE, ME)
    assert put(DESCRIBED, held).wake_at == NOON + MINUTE
