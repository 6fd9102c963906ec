"""The whole plans of changes to a schedule: rows of the index, timers, tombstones, counted starts (L1-L7, L10)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import DAY, HOUR, SECOND, iso
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.schedule import WAKE, Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.schedules import lifecycle
from chalicelib.core.schedules.lifecycle import PauseMode
from chalicelib.core.states import Mode
from chalicelib.core.writes import CloseGeneration, Create, Delete, Put, PutState, Replace, TrackStarts, Write
from tests.core.builders import CLEANED, ELAPSED, LIMIT, NAME, NOON, PARTITION, TICK, WEATHER, all_of, schedule

ME = "alice"
NOW = NOON + HOUR
SINCE = NOON - DAY
END = NOON + 9 * DAY
TEN = 10 * SECOND
FRESH: dict[str, Any] = {"type": "fresh", "workflows": ["demo.flights.raw"], "within": "1d", "on_unmet": "wait"}
DAILY: dict[str, Any] = {"type": "rate", "max": 1, "per": "day"}
RAW_DONE = "status:demo.flights.raw:COMPLETED"
MIXED = schedule(all_of(PARTITION, TICK), constraints=[FRESH])
ENDING = schedule(all_of(PARTITION, TICK), constraints=[FRESH], ttl=iso(END))
CLOSED = CloseGeneration(NAME, 7, NOW)
RESTS = Timer(NAME, 7, 3, SINCE, {}, wake_at=END + SECOND)
TIMER_OF_SEVEN = Timer(NAME, 7, 3, 0, {})


def schedule_state(mode: Mode = "enabled", **fields: Any) -> ScheduleState:
    given = {"schedule": NAME, "generation": 7, "version": 3, "mode": mode, "updated_at": NOON, "by": "bob"}
    return ScheduleState(**{**given, "since": SINCE, "mode_at": NOON, **fields})


def row(key: str, leaf: str, generation: int = 7, version: int = 3, since: int = SINCE, detached: bool = False) -> Any:
    return Subscription(key, NAME, generation, version, leaf, since, detached)


def flights(**fields: Any) -> Any:
    return row("partition:demo.flights", "0", **fields)


def woken(**fields: Any) -> Any:
    return row(RAW_DONE, WAKE, **fields)


def put(new: Schedule, old: Schedule | None, before: ScheduleState | None, **fields: Any) -> list[Write]:
    """The plan without the writes that every put has: the schedule state, the version, the listing row."""
    after, plan = lifecycle.put(NAME, new, old, before, fields.pop("enabled", None), NOW, ME, **fields)
    version = Version(NAME, after.version, new.model_dump(mode="json"), NOW, ME)
    assert plan[:3] == [PutState(after, before), Create(version), Put(Listing(NAME, fires=upcoming.counted(new)))]
    return plan[3:]


# -- put -----------------------------------------------------------------------------------------------------------


def test_l2_a_new_disabled_schedule_can_be_woken_and_has_an_end() -> None:
    rests = Timer(NAME, NOW, 1, NOW, {}, wake_at=END + SECOND)
    assert put(ENDING, None, None) == [Put(woken(generation=NOW, version=1, since=NOW)), Put(rests)]
    assert put(MIXED, None, None) == [Put(woken(generation=NOW, version=1, since=NOW))]


def test_l6_update_replaces_index_rows_and_drops_unneeded_timers() -> None:
    assert put(schedule(WEATHER), MIXED, schedule_state()) == [
        CLOSED,
        Delete(flights(since=NOW)),
        Delete(woken(since=NOW)),
        Delete(TIMER_OF_SEVEN),
        Put(row("partition:demo.weather", "0", generation=NOW, version=4, since=NOW)),
    ]


@pytest.mark.parametrize(("mode", "apart"), [("enabled", False), ("hold", False), ("backlog", True)])
def test_l6_an_update_writes_the_new_timer_over_the_old_one(mode: Mode, apart: bool) -> None:
    new = schedule(all_of(WEATHER, TICK))
    timer = Timer(NAME, NOW, 4, NOW, {"1": NOW + TEN}, wake_at=NOW + TEN)
    assert put(new, MIXED, schedule_state(mode)) == [
        CLOSED,
        Delete(flights(since=NOW, detached=apart)),
        Delete(woken(since=NOW)),
        Put(row("partition:demo.weather", "0", generation=NOW, version=4, since=NOW, detached=apart)),
        Put(timer),
    ]


def test_l10_an_update_that_disables_keeps_a_timer_for_end_only() -> None:
    rests = Timer(NAME, NOW, 4, NOW, {}, wake_at=END + SECOND)
    assert put(ENDING, ENDING, schedule_state(), enabled=False) == [
        CLOSED,
        Delete(flights(since=NOW)),
        Delete(woken(since=NOW)),
        Put(woken(generation=NOW, version=4, since=NOW)),
        Put(rests),
    ]


def test_l10_removing_end_of_disabled_schedule_drops_its_timer() -> None:
    plan = put(schedule(all_of(PARTITION, TICK), constraints=[FRESH], priority=9), ENDING, schedule_state("disabled"))
    assert plan == [
        CLOSED,
        Delete(woken(since=NOW)),
        Delete(TIMER_OF_SEVEN),
        Put(woken(generation=NOW, version=4, since=NOW)),
    ]


def test_l6_what_is_carried_has_the_new_version_and_keeps_since() -> None:
    before = Timer(NAME, 7, 3, NOON, {"1": NOON + TEN}, rev=9, wake_at=NOON + TEN)
    new = schedule(all_of(PARTITION, TICK), priority=9)
    assert put(new, MIXED, schedule_state(), carry=True, timer=before) == [
        Put(flights(version=4)),
        Delete(woken(version=4)),
        Replace(Timer(NAME, 7, 4, NOON, {"1": NOON + TEN}, rev=10, wake_at=NOON + TEN)),
    ]


def test_l10_completed_schedule_with_later_end_goes_on_from_now() -> None:
    before = Timer(NAME, 7, 3, NOON, {}, rev=9, wake_at=NOON + 6 * SECOND)
    over, later = schedule(TICK, ttl=iso(NOON + 5 * SECOND)), schedule(TICK, ttl=iso(END))
    assert put(later, over, schedule_state(), carry=True, timer=before) == [
        Replace(Timer(NAME, 7, 4, NOON, {"0": NOW + TEN}, rev=10, wake_at=NOW + TEN)),
    ]


def test_l10_a_carried_schedule_without_a_timer_can_get_an_end() -> None:
    rests = Timer(NAME, 7, 4, SINCE, {}, wake_at=END)
    assert put(schedule(ttl=iso(END)), schedule(), schedule_state(), carry=True) == [
        Put(flights(version=4)),
        Put(rests),
    ]
    assert put(schedule(priority=9), schedule(), schedule_state(), carry=True) == [Put(flights(version=4))]


# -- starts that are counted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "counted"),
    [
        ({"constraints": [DAILY, DAILY | {"max": 9}]},
         [TrackRates(LIMIT, (f"1/{DAY}", f"9/{DAY}")), TrackStarts(NAME)]),
        ({"trigger": ELAPSED}, [TrackStarts(NAME)]),
        ({}, []),
        ({"trigger": ELAPSED, "workflow": "demo.flights.daily~0a1b2c3d"}, []),  # the runs of a DAG always are
    ],
)  # fmt: skip
def test_c5_the_rates_of_a_schedule_are_counted_from_version_one(
    document: dict[str, Any], counted: list[Write]
) -> None:
    made = Schedule.model_validate({"workflow": NAME, "trigger": PARTITION, **document})
    assert put(made, None, None) == counted
    _, plan = lifecycle.enable(schedule_state("disabled"), made, NOW, ME)
    assert [write for write in plan if isinstance(write, TrackRates | TrackStarts)] == counted


# -- enable, disable, delete, complete -----------------------------------------------------------------------------


def test_l3_enabling_removes_the_previous_generation_rows() -> None:
    made = schedule(all_of(PARTITION, TICK), constraints=[FRESH, DAILY], pause_after_failures=3)
    after, plan = lifecycle.enable(schedule_state("completed"), made, NOW, ME)
    assert plan == [
        PutState(after, schedule_state("completed")),
        CLOSED,
        Delete(woken(since=NOW)),
        TrackRates(LIMIT, (f"1/{DAY}",)),
        TrackStarts(NAME),
        Put(flights(generation=NOW, since=NOW)),
        Put(woken(generation=NOW, since=NOW)),
        Put(Timer(NAME, NOW, 3, NOW, {"1": NOW + TEN}, wake_at=NOW + TEN)),
        Put(Failures(NAME, 0)),
    ]


def test_l3_enabling_without_a_fire_to_come_removes_the_timer() -> None:
    past = schedule(all_of(PARTITION, {"type": "time", "due_time": iso(NOON - DAY)}))
    after, plan = lifecycle.enable(schedule_state("completed"), past, NOW, ME)
    assert plan == [
        PutState(after, schedule_state("completed")),
        CLOSED,
        Delete(TIMER_OF_SEVEN),
        Put(flights(generation=NOW, since=NOW)),
    ]


def test_l3_disabling_keeps_wakes_of_run_now_and_the_end_timer() -> None:
    after, plan = lifecycle.disable(schedule_state(), MIXED, NOW, ME)
    assert plan == [PutState(after, schedule_state()), CLOSED, Delete(flights(since=NOW)), Delete(TIMER_OF_SEVEN)]
    after, plan = lifecycle.disable(schedule_state(), ENDING, NOW, ME)
    assert plan == [PutState(after, schedule_state()), CLOSED, Delete(flights(since=NOW)), Put(RESTS)]


@pytest.mark.parametrize("mode", ["drain", "disabled"])
def test_l10_deleting_removes_the_timer_of_the_end(mode: Mode) -> None:
    after, plan = lifecycle.delete(schedule_state(mode), ENDING, NOW, ME)
    assert plan == [
        PutState(after, schedule_state(mode)),
        CLOSED,
        Delete(woken(since=NOW)),
        Delete(TIMER_OF_SEVEN),
        Delete(Listing(NAME)),
    ]


def test_l5_deleting_a_schedule_without_a_timer_deletes_none() -> None:
    after, plan = lifecycle.delete(schedule_state(), schedule(), NOW, ME)
    assert plan == [PutState(after, schedule_state()), CLOSED, Delete(flights(since=NOW)), Delete(Listing(NAME))]


def test_l10_a_completed_schedule_is_found_only_by_waking_events() -> None:
    after, plan = lifecycle.complete(schedule_state(), NOW, MIXED)
    assert plan == [PutState(after, schedule_state()), Delete(flights())]


# -- messages ------------------------------------------------------------------------------------------------------

MESSAGE = "demo.flights.~m1"


def deleted_message(workflow: str) -> tuple[ScheduleState, ScheduleState, list[Write]]:
    before = schedule_state(schedule=MESSAGE)
    made = Schedule.model_validate({"workflow": workflow, "trigger": TICK})
    after, plan = lifecycle.delete(before, made, NOW, ME)
    return before, after, plan


def test_l16_deleted_message_expires_and_removes_its_own_target() -> None:
    before, _, plan = deleted_message(MESSAGE)
    passing = ScheduleState(
        MESSAGE, 7, 3, "deleted", NOW, ME, rev=2, since=SINCE, mode_at=NOW, expires_at=NOW + 180 * DAY
    )
    assert plan == [
        PutState(passing, before),
        Delete(Timer(MESSAGE, 7, 3, 0, {})),
        Delete(Listing(MESSAGE)),
        Delete(Definition("workflow", MESSAGE, {}, 0, NOW)),
    ]


def test_l16_a_deleted_message_keeps_a_shared_target() -> None:
    _, _, plan = deleted_message(NAME)
    assert plan[1:] == [Delete(Timer(MESSAGE, 7, 3, 0, {})), Delete(Listing(MESSAGE))]


# -- pause and resume ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "mode", "writes"),
    [
        ("enabled", "hold", []),
        ("hold", "hold", []),
        ("enabled", "backlog", [Put(flights(detached=True)), Put(woken())]),
        ("backlog", "hold", [Put(flights()), Put(woken())]),
        ("enabled", "drain", [Delete(flights()), Delete(TIMER_OF_SEVEN)]),
        ("backlog", "drain", [Delete(flights(detached=False)), Delete(TIMER_OF_SEVEN)]),
    ],
)
def test_l4_a_pause_writes_only_the_rows_that_change(before: Mode, mode: PauseMode, writes: list[Write]) -> None:
    after, plan = lifecycle.pause(schedule_state(before), MIXED, mode, False, NOW, ME)
    assert plan == [PutState(after, schedule_state(before)), *writes]


OPENED = [
    Put(flights(since=NOW)),
    Put(woken(since=NOW)),
    Put(Timer(NAME, 7, 3, NOW, {"1": NOW + TEN}, wake_at=NOW + TEN)),
]


def test_l4_after_a_drain_a_schedule_gathers_from_the_resume() -> None:
    after, plan = lifecycle.pause(schedule_state("drain"), MIXED, "hold", False, NOW, ME)
    assert plan == [PutState(after, schedule_state("drain")), *OPENED]
    after, plan = lifecycle.resume(schedule_state("drain"), MIXED, NOW, ME)
    assert plan == [PutState(after, schedule_state("drain")), *OPENED]


def test_l10_a_draining_schedule_still_reaches_its_end() -> None:
    after, plan = lifecycle.pause(schedule_state(), ENDING, "drain", False, NOW, ME)
    assert plan == [PutState(after, schedule_state()), Delete(flights()), Put(RESTS)]


def test_l4_draining_without_a_timer_needs_none() -> None:
    after, plan = lifecycle.pause(schedule_state(), schedule(), "drain", False, NOW, ME)
    assert plan == [PutState(after, schedule_state()), Delete(flights())]


def test_l4_after_a_backlog_matches_coalesce_again() -> None:
    made = schedule(all_of(PARTITION, TICK), constraints=[FRESH], pause_after_failures=3)
    after, plan = lifecycle.resume(schedule_state("backlog"), made, NOW, ME)
    assert plan == [PutState(after, schedule_state("backlog")), Put(flights()), Put(woken()), Put(Failures(NAME, 0))]


# -- rows of the index ---------------------------------------------------------------------------------------------


def test_t15_the_index_has_a_row_for_each_event_of_each_leaf() -> None:
    statuses = CLEANED | {"statuses": ["FAILED", "KILLED"]}
    made = schedule(all_of(PARTITION, TICK, statuses), constraints=[FRESH], coalesce=False)
    assert lifecycle.subscriptions(schedule_state(), made, NOON) == [
        flights(since=NOON, detached=True),
        row("status:demo.flights.clean:FAILED", "2", since=NOON, detached=True),
        row("status:demo.flights.clean:KILLED", "2", since=NOON, detached=True),
        woken(since=NOON),
    ]
