"""The plans of a pause, a resume, a carrying update and a skip (L4, L6, L19)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, SECOND, Instant, iso
from chalicelib.core.rows.schedule import WAKE, Failures, ScheduleState, Subscription, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.states import Mode
from chalicelib.core.writes import CloseGeneration, Create, Delete, Put, PutState, Replace, Write
from tests.core.builders import CLEANED, NAME, NOON, PARTITION, TICK, WEATHER, all_of, schedule, schedule_state

ME = "alice"
LATER = NOON + HOUR
MIXED = schedule(all_of(PARTITION, TICK))
OPEN = schedule_state(since=NOON - DAY, rev=4)
FRESH = {"type": "fresh", "workflows": ["demo.flights.raw"], "within": "1d", "on_unmet": "wait"}
TIMER = Timer(NAME, 7, 1, NOON, {"1": NOON + 10_000}, rev=9, wake_at=NOON + 10_000)


def pause(
    before: ScheduleState, mode: PauseMode, stop: bool = False, made: Schedule = MIXED
) -> tuple[ScheduleState, list[Write]]:
    return lifecycle.pause(before, made, mode, stop, LATER, ME)


def paused(mode: PauseMode, stop: bool = False) -> ScheduleState:
    return pause(OPEN, mode, stop)[0]


def carry(new: Schedule, old: Schedule = MIXED, before: ScheduleState = OPEN) -> tuple[ScheduleState, list[Write]]:
    return lifecycle.put(NAME, new, old, before, None, LATER, ME, carry=True, timer=TIMER)


def index(plan: list[Write]) -> list[tuple[str, str, Instant, bool]]:
    """The rows of the reverse index that a plan changes: how, which leaf, since when, and whether jobs are detached."""
    return [
        (type(write).__name__, write.row.leaf, write.row.since, write.row.detached)
        for write in plan
        if isinstance(write, Put | Delete) and isinstance(write.row, Subscription)
    ]


def timers(plan: list[Write]) -> list[str]:
    written = [write for write in plan if isinstance(write, Put | Delete | Replace) and isinstance(write.row, Timer)]
    return [type(write).__name__ for write in written]


# -- pause ---------------------------------------------------------------------------------------------------------


def test_l4_a_hold_changes_only_the_schedule_state() -> None:
    after, plan = pause(OPEN, "hold")
    assert plan == [PutState(after, OPEN)]
    assert (after.mode, after.rev, after.updated_at, after.by) == ("hold", 5, LATER, ME)
    assert (after.generation, after.version, after.since) == (7, 1, NOON - DAY)
    assert after.wake_at == LATER, "what queues gives back what it holds, for others"


def test_l4_in_backlog_each_match_is_detached() -> None:
    after, plan = pause(OPEN, "backlog")
    assert after.mode == "backlog"
    assert index(plan) == [("Put", "0", NOON - DAY, True)]
    assert timers(plan) == []


def test_l4_a_drain_removes_index_rows_and_timers() -> None:
    after, plan = pause(OPEN, "drain")
    assert after.mode == "drain"
    assert [row[:2] for row in index(plan)] == [("Delete", "0")]
    assert timers(plan) == ["Delete"]
    assert not any(isinstance(write, CloseGeneration) for write in plan), "what is met goes on"


def test_c7_a_draining_schedule_may_be_woken_by_its_upstream() -> None:
    _, plan = pause(OPEN, "drain", made=schedule(PARTITION, constraints=[FRESH]))
    assert [row[:2] for row in index(plan)] == [("Delete", "0")]


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        ("hold", "backlog", [("Put", "0", NOON - DAY, True)]),
        ("backlog", "hold", [("Put", "0", NOON - DAY, False)]),
        ("drain", "hold", [("Put", "0", LATER, False)]),
        ("drain", "backlog", [("Put", "0", LATER, True)]),
        ("hold", "drain", [("Delete", "0", NOON - DAY, False)]),
    ],
)
def test_l4_a_change_of_pause_mode_changes_the_index_accordingly(
    one: PauseMode, other: PauseMode, rows: list[Any]
) -> None:
    after, plan = pause(paused(one), other)
    assert index(plan) == rows
    assert after.since == (LATER if one == "drain" else NOON - DAY)
    assert after.wake_at == LATER, "waiting jobs are checked by the rules of the new definition"


def test_l19_a_pause_has_a_reason_and_the_next_one_clears_it() -> None:
    held, _ = lifecycle.pause(OPEN, MIXED, "hold", False, LATER, "sluice", "3 runs failed in a row")
    assert held.reason == "3 runs failed in a row"
    assert pause(held, "backlog")[0].reason == ""
    assert lifecycle.resume(held, MIXED, LATER, ME)[0].reason == ""


# -- resume --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "rows", "armed"),
    [("hold", [], []), ("backlog", [("Put", "0", NOON - DAY, False)], []),
     ("drain", [("Put", "0", LATER, False)], ["Put"])],
)  # fmt: skip
def test_l4_resume_goes_on_in_the_same_generation_and_wakes_jobs(
    mode: PauseMode, rows: list[Any], armed: list[str]
) -> None:
    before = paused(mode)
    after, plan = lifecycle.resume(before, MIXED, LATER, ME)
    assert plan[0] == PutState(after, before)
    assert (after.mode, after.generation, after.version, after.rev) == ("enabled", 7, 1, before.rev + 1)
    assert after.wake_at == LATER, "the state is an outbox until every job has been woken"
    assert (index(plan), timers(plan)) == (rows, armed)


def test_c11_a_schedule_without_coalescing_needs_no_index_change() -> None:
    single = schedule(PARTITION, coalesce=False)
    _, plan = lifecycle.resume(pause(OPEN, "backlog", made=single)[0], single, LATER, ME)
    assert index(plan) == []


@pytest.mark.parametrize("fields", [{}, {"pause_after_failures": 3}])
def test_l19_a_resume_resets_the_failures_in_a_row(fields: dict[str, Any]) -> None:
    made = schedule(PARTITION, **fields)
    resumed = lifecycle.resume(paused("hold"), made, LATER, ME)[1]
    enabled = lifecycle.enable(schedule_state(mode="disabled"), made, LATER, ME)[1]
    assert [Put(Failures(NAME, 0)) in plan for plan in (resumed, enabled)] == [bool(fields)] * 2


def test_l10_a_schedule_with_used_up_fires_is_completed_as_it_is() -> None:
    after, plan = lifecycle.complete(OPEN, LATER)
    assert (after.mode, after.rev, after.generation, plan) == ("completed", 5, 7, [PutState(after, OPEN)])


@pytest.mark.parametrize("mode", ["enabled", "hold", "backlog", "drain", "completed", "disabled"])
def test_l5_a_deleted_schedule_leaves_no_index_row_and_no_timer(mode: Mode) -> None:
    """A drain or a disable has already deleted the gathering rows and the timer. A row that wakes stays for jobs that
    may still run: those of a drain, or a run-now.
    """
    made = schedule(all_of(PARTITION, TICK), constraints=[FRESH])
    gathers = mode in ("enabled", "hold", "backlog")
    gathering = [("Delete", "0")] if gathers else []
    armed = ["Delete"] if gathers or mode == "completed" else []

    _, disabled = lifecycle.disable(schedule_state(mode=mode), made, LATER, ME)
    _, deleted = lifecycle.delete(schedule_state(mode=mode), made, LATER, ME)

    assert [row[:2] for row in index(disabled)] == gathering
    assert [row[:2] for row in index(deleted)] == [*gathering, ("Delete", WAKE)]
    assert timers(disabled) == timers(deleted) == armed


@pytest.mark.parametrize("mode", ["disabled", "completed"])
def test_l3_enabling_leaves_no_row_of_the_previous_generation(mode: Mode) -> None:
    made = schedule(all_of(PARTITION, TICK), constraints=[FRESH])
    _, plan = lifecycle.enable(schedule_state(mode=mode), made, LATER, ME)
    assert [row[:2] for row in index(plan)] == [("Delete", WAKE), ("Put", "0"), ("Put", WAKE)]
    assert timers(plan) == ["Put"]


# -- carry (L6) ----------------------------------------------------------------------------------------------------


def test_l6_carry_keeps_gathered_events_under_the_new_version() -> None:
    after, plan = carry(schedule(all_of(PARTITION, TICK), properties={"a": 1}))
    assert (after.generation, after.version, after.since, after.rev) == (7, 2, NOON - DAY, 5)
    assert after.wake_at == LATER
    assert isinstance(plan[1], Create)
    assert index(plan) == [("Put", "0", NOON - DAY, False)]
    assert Replace(replace(TIMER, version=2, rev=10)) in plan, "its instants go on"
    assert not any(isinstance(write, CloseGeneration) for write in plan)


def test_l6_carry_keeps_a_pause_and_its_skips() -> None:
    held = replace(paused("hold", stop=True), skips=(NOON,))
    after, _ = carry(schedule(all_of(PARTITION, TICK), priority=9), before=held)
    assert (after.mode, after.pauses, after.skips) == ("hold", held.pauses, held.skips)


def test_l6_carry_updates_the_upstreams_that_wake_it() -> None:
    woken = schedule(PARTITION, constraints=[FRESH])
    _, plan = carry(schedule(PARTITION), old=woken)
    assert [row[:2] for row in index(plan)] == [("Put", "0"), ("Delete", WAKE)]
    _, plan = carry(woken, old=schedule(PARTITION))
    assert [row[:2] for row in index(plan)] == [("Put", "0"), ("Put", WAKE)]


@pytest.mark.parametrize(
    ("new", "before"),
    [
        (schedule(all_of(PARTITION, WEATHER)), OPEN),  # another trigger
        (schedule(all_of(TICK, PARTITION)), OPEN),  # its leaves have other numbers
        (schedule(all_of(PARTITION, WEATHER)), schedule_state(mode="disabled")),
        (schedule(all_of(PARTITION, WEATHER)), schedule_state(mode="drain")),
    ],
)
def test_l6_an_update_that_cannot_carry_begins_a_new_generation(new: Schedule, before: ScheduleState) -> None:
    after, plan = carry(new, before=before)
    assert after.generation == LATER
    assert any(isinstance(write, CloseGeneration) for write in plan)


@pytest.mark.parametrize("mode", ["disabled", "drain"])
def test_l25_carry_keeps_the_jobs_of_a_schedule_at_rest(mode: Mode) -> None:
    """A drain launches the jobs that it has, and a disabled schedule run-nows. Neither gathers, and a ttl wakes it."""
    before, old = schedule_state(mode=mode), schedule(all_of(PARTITION, TICK), ttl=iso(LATER + DAY))
    ends = Timer(NAME, 7, 1, 0, {}, wake_at=LATER + DAY + SECOND)

    def update(new: Schedule, timer: Timer | None) -> tuple[ScheduleState, list[Write]]:
        return lifecycle.put(NAME, new, old, before, None, LATER, ME, carry=True, timer=timer)

    after, plan = update(schedule(all_of(PARTITION, TICK), ttl=iso(LATER + 2 * DAY), priority=9), ends)
    assert (after.generation, after.mode, after.wake_at) == (7, mode, LATER)
    assert not any(isinstance(write, CloseGeneration) for write in plan)
    assert [row for row in index(plan) if row[0] == "Put"] == []
    [timer] = [write.row for write in plan if isinstance(write, Put) and isinstance(write.row, Timer)]
    assert (timer.next, timer.wake_at, timer.generation) == ({}, LATER + 2 * DAY + SECOND, 7)
    _, plan = update(schedule(all_of(PARTITION, TICK), priority=9), ends)
    assert [type(write) for write in plan if isinstance(write, Delete) and isinstance(write.row, Timer)] == [Delete]
    _, plan = update(schedule(all_of(PARTITION, TICK), priority=9), None)
    assert not any(isinstance(write, Delete) and isinstance(write.row, Timer) for write in plan)


def test_l6_other_correlation_keys_cannot_be_carried() -> None:
    old, new = (schedule(all_of(PARTITION, CLEANED), by=by) for by in (["day"], ["year", "day"]))
    assert carry(new, old=old)[0].generation == LATER


def test_l6_an_update_that_enables_or_disables_carries_nothing() -> None:
    after, _ = lifecycle.put(NAME, MIXED, MIXED, OPEN, False, LATER, ME, carry=True, timer=TIMER)
    assert (after.mode, after.generation) == ("disabled", LATER)


@pytest.mark.parametrize("mode", ["hold", "backlog", "drain"])
def test_l2_an_update_keeps_a_pause_and_its_stopped_timeouts(mode: PauseMode) -> None:
    after, plan = lifecycle.put(NAME, schedule(WEATHER), MIXED, paused(mode, stop=True), None, LATER, ME)
    assert (after.mode, after.generation, after.pauses) == (mode, LATER, ((LATER, None),))
    assert [row[0] for row in index(plan) if row[0] == "Put"] == ([] if mode == "drain" else ["Put"])
    again, _ = lifecycle.put(NAME, schedule(WEATHER), MIXED, paused(mode), True, LATER, ME)
    assert (again.mode, again.pauses) == (mode, ()), "what is paused counts as enabled"


# -- skipped (L19) -------------------------------------------------------------------------------------------------


def test_l19_an_occurrence_is_skipped_once_and_can_be_restored() -> None:
    once, plan = lifecycle.skip(OPEN, schedule(TICK), LATER + DAY, True, LATER, ME)
    assert plan == [PutState(once, OPEN)]
    both, _ = lifecycle.skip(once, schedule(TICK), LATER + HOUR, True, LATER, ME)
    assert (both.skips, both.rev, both.mode) == ((LATER + HOUR, LATER + DAY), 6, "enabled")
    assert lifecycle.skip(both, schedule(TICK), LATER + HOUR, True, LATER, ME)[0].skips == both.skips
    assert lifecycle.skip(both, schedule(TICK), LATER + HOUR, False, LATER, ME)[0].skips == (LATER + DAY,)
    assert lifecycle.skip(both, schedule(TICK), NOON + 9 * DAY, True, NOON + 5 * DAY, ME)[0].skips == (NOON + 9 * DAY,)
