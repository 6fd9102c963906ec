"""The whole schedule state after each change of a schedule: what is reset, what stays, and what is removed (L2-L7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, Instant
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.states import Mode
from chalicelib.core.writes import PutState
from tests.core.builders import NAME, NOON, PARTITION, TICK, WEATHER, all_of, schedule

ME = "alice"
NOW = NOON + HOUR
MIXED = schedule(all_of(PARTITION, TICK))
OVER: tuple[Instant, Instant] = (NOON - 3 * HOUR, NOON - 2 * HOUR)
STILL: tuple[Instant, None] = (NOON - HOUR, None)
# A schedule on hold: its timeouts are stopped, and some of its jobs have not been checked since.
HELD = ScheduleState(
    NAME,
    7,
    3,
    "hold",
    NOON - HOUR,
    "bob",
    rev=4,
    since=NOON - DAY,
    pauses=(OVER, STILL),
    skips=(NOW + DAY,),
    reason="3 runs failed in a row",
    mode_at=NOON - HOUR,
    former=(5, 6),
    wake_at=NOON - HOUR,
    expires_at=NOON + 9 * DAY,
)
CHANGED = replace(HELD, updated_at=NOW, by=ME, rev=5, wake_at=None, expires_at=None)
BEGUN = replace(CHANGED, generation=NOW, since=NOW, former=())  # in a generation whose trigger begins again


def put(
    new: Schedule,
    before: ScheduleState = HELD,
    enabled: bool | None = None,
    carry: bool = False,
    old: Schedule | None = MIXED,
) -> ScheduleState:
    after, plan = lifecycle.put(before.schedule, new, old, before, enabled, NOW, ME, carry)
    assert plan[0] == PutState(after, before)
    return after


# -- updates -------------------------------------------------------------------------------------------------------


def test_l18_a_new_description_changes_version_and_its_author() -> None:
    described = schedule(all_of(PARTITION, TICK), description="new")
    assert put(described) == replace(CHANGED, version=4, wake_at=NOON - HOUR)


def test_l6_an_update_that_carries_wakes_waiting_jobs() -> None:
    urgent = schedule(all_of(PARTITION, TICK), priority=9)
    assert put(urgent, carry=True) == replace(CHANGED, version=4, wake_at=NOW)


def test_l6_a_new_generation_of_held_schedule_has_its_own_pause() -> None:
    wanted = replace(BEGUN, version=4, pauses=((NOW, None),))
    assert put(schedule(WEATHER)) == wanted
    # The generations in which its trigger ran before are remembered: they may have run what is due at the update.
    assert put(schedule(all_of(PARTITION, TICK), priority=9)) == replace(wanted, former=(5, 6, 7))


def test_l6_a_new_generation_of_enabled_schedule_has_no_pauses() -> None:
    enabled = replace(HELD, mode="enabled", pauses=(OVER,))
    assert put(schedule(WEATHER), enabled) == replace(BEGUN, mode="enabled", version=4, pauses=())


def test_l3_update_that_disables_clears_pause_reason_and_skips() -> None:
    wanted = replace(BEGUN, mode="disabled", version=4, pauses=(), skips=(), mode_at=NOW)
    assert put(MIXED, enabled=False) == replace(wanted, reason="")


def test_l5_a_reused_name_begins_after_the_previous_generation() -> None:
    grave = replace(HELD, mode="deleted", generation=NOW + 5, pauses=(OVER,), skips=(), reason="")
    made = put(MIXED, grave, enabled=True, old=None)
    wanted = replace(BEGUN, mode="enabled", generation=NOW + 6, version=4, pauses=(), skips=(), reason="", mode_at=NOW)
    assert replace(made, uncounted=False) == replace(wanted, enabled_by=(ME,))


# -- the generations of a node of a DAG ----------------------------------------------------------------------------

NODE = "demo.flights.daily~0a1b2c3d~load"


def test_w4_dag_node_remembers_its_generations_to_find_its_runs() -> None:
    before = replace(HELD, schedule=NODE)
    assert put(schedule(WEATHER), before).former == (5, 6, 7)
    assert put(schedule(all_of(PARTITION, TICK), owner="carol"), before).former == (5, 6)
    assert put(schedule(WEATHER), HELD).former == (), "no other schedule does"


def test_w4_a_node_remembers_its_last_twenty_generations() -> None:
    before = replace(HELD, schedule=NODE, generation=50, former=tuple(range(1, 21)))
    assert put(schedule(WEATHER), before).former == (*range(2, 21), 50)


# -- groups that are named for the first time ----------------------------------------------------------------------

GROUPED = schedule(all_of(PARTITION, TICK), constraints=[{"type": "concurrency", "max": 2, "group": "spark"}])


def test_c9_a_schedule_state_marks_runs_without_a_group_permit() -> None:
    assert put(GROUPED).uncounted
    assert not put(GROUPED, old=GROUPED).uncounted
    assert put(GROUPED, replace(HELD, uncounted=True), old=GROUPED).uncounted
    new, _ = lifecycle.put(NAME, GROUPED, None, None, True, NOW, ME)
    assert not new.uncounted, "it has no runs yet"


# -- enable, disable, delete, complete -----------------------------------------------------------------------------


def test_l3_enabling_begins_generation_without_pauses_and_skips() -> None:
    before = replace(HELD, mode="disabled", reason="", enabled_by=("bob", "carol"))
    after, plan = lifecycle.enable(before, MIXED, NOW, ME)
    assert after == replace(BEGUN, mode="enabled", pauses=(), skips=(), reason="", mode_at=NOW, enabled_by=(ME,))
    assert plan[0] == PutState(after, before)


@pytest.mark.parametrize(
    ("pauses", "ended", "wake_at"),
    [((OVER, STILL), (OVER, (NOON - HOUR, NOW)), NOW), ((OVER,), (OVER,), None), ((), (), None)],
)
def test_l4_disabling_ends_a_pause_and_checks_run_now_timeouts(
    pauses: Any, ended: Any, wake_at: Instant | None
) -> None:
    before = replace(HELD, pauses=pauses)
    after, plan = lifecycle.disable(before, MIXED, NOW, ME)
    wanted = replace(CHANGED, mode="disabled", pauses=ended, skips=(), reason="", mode_at=NOW, wake_at=wake_at)
    assert (after, plan[0]) == (wanted, PutState(wanted, before))


def test_l5_a_deleted_schedule_needs_no_attention() -> None:
    after, plan = lifecycle.delete(HELD, MIXED, NOW, ME)
    ended = (OVER, (NOON - HOUR, NOW))
    wanted = replace(CHANGED, mode="deleted", pauses=ended, skips=(), reason="", mode_at=NOW)
    assert (after, plan[0]) == (wanted, PutState(wanted, HELD))


def test_l10_a_completed_schedule_keeps_everything_but_its_mode() -> None:
    before = replace(HELD, mode="enabled", reason="")
    after, plan = lifecycle.complete(before, NOW)
    wanted = replace(before, mode="completed", rev=5, updated_at=NOW, mode_at=NOW)
    assert (after, plan) == (wanted, [PutState(wanted, before)])


# -- pause and resume ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["backlog", "drain"])
@pytest.mark.parametrize(
    ("stop", "pauses"),
    [(True, (OVER, (NOON - HOUR, NOW), (NOW, None))), (False, (OVER, (NOON - HOUR, NOW)))],
)
def test_l4_the_next_pause_begins_where_the_previous_one_ends(mode: PauseMode, stop: bool, pauses: Any) -> None:
    after, plan = lifecycle.pause(HELD, MIXED, mode, stop, NOW, ME, "lake is read only")
    wanted = replace(
        CHANGED, mode=mode, pauses=pauses, reason="lake is read only", mode_at=NOW, wake_at=NOW
    )  # fmt: skip
    assert (after, plan[0]) == (wanted, PutState(wanted, HELD))


def test_l4_a_state_remembers_the_last_twenty_stopped_spans() -> None:
    spans = tuple((NOON + number, NOON + number + 1) for number in range(20))
    after, _ = lifecycle.pause(replace(HELD, mode="enabled", pauses=spans), MIXED, "hold", True, NOW, ME)
    assert after.pauses == (*spans[1:], (NOW, None))


@pytest.mark.parametrize(("mode", "since"), [("hold", NOON - DAY), ("backlog", NOON - DAY), ("drain", NOW)])
def test_l4_resumed_schedule_keeps_its_generation_and_its_since(mode: Mode, since: Instant) -> None:
    before = replace(HELD, mode=mode, enabled_by=("bob", "carol"))
    after, plan = lifecycle.resume(before, MIXED, NOW, ME)
    ended = (OVER, (NOON - HOUR, NOW))
    wanted = replace(CHANGED, mode="enabled", since=since, pauses=ended, reason="", mode_at=NOW, wake_at=NOW)
    wanted = replace(wanted, enabled_by=("bob", ME))  # who began the generation, and who resumed it last
    wanted = replace(wanted, resumed={str(before.generation): NOW} if mode == "drain" else {})
    assert (after, plan[0]) == (wanted, PutState(wanted, before))


# -- skipped occurrences -------------------------------------------------------------------------------------------


def test_l19_a_skip_of_over_a_day_ago_is_forgotten() -> None:
    skips = (NOW - DAY, NOW - DAY + 1, NOW + DAY)
    before = replace(HELD, skips=skips)
    wanted = replace(before, skips=(NOW - DAY + 1, NOW, NOW + DAY), rev=5)
    assert lifecycle.skip(before, schedule(TICK), NOW, True, NOW, ME) == (wanted, [PutState(wanted, before)])
    back = replace(before, skips=(NOW - DAY + 1,), rev=5)
    assert lifecycle.skip(before, schedule(TICK), NOW + DAY, False, NOW, ME) == (back, [PutState(back, before)])
