"""The plans that create, replace, enable, disable and delete a schedule (L1-L3, L5-L7): one transaction each."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, SECOND
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows.definition import Listing
from chalicelib.core.rows.schedule import Failures, ScheduleState, Subscription, Timer, Version
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import Mode
from chalicelib.core.writes import CloseGeneration, Create, Delete, Put, PutState, Replace, TrackStarts, Write
from tests.core.builders import (
    ABSENT,
    CLEANED,
    NAME,
    NOON,
    PARTITION,
    TICK,
    WEATHER,
    all_of,
    any_of,
    schedule,
    schedule_state,
)

ME = "alice"
CLOSED = CloseGeneration(NAME, 7, NOON)
MIXED = schedule(all_of(PARTITION, TICK, CLEANED | {"statuses": ["FAILED", "KILLED"]}))
FULL: list[Schedule] = [
    schedule(all_of(*[PARTITION] * 45)),
    schedule(all_of(*[PARTITION] * 44, TICK)),
    schedule(any_of(*[TICK] * 45)),
    schedule(any_of(*[CLEANED | {"statuses": ["STARTED", "COMPLETED", "FAILED", "KILLED"]}] * 11, TICK)),
    schedule(any_of(*[ABSENT] * 45)),
    schedule(
        all_of(*[PARTITION] * 24, TICK),
        constraints=[
            {"type": "fresh", "workflows": [f"a.b.w{number}" for number in range(20)], "within": "1d",
             "on_unmet": "wait"},
            {"type": "rate", "max": 1, "per": "day"},
        ],
        pause_after_failures=3,
    ),
]  # fmt: skip


def put(
    new: Schedule, old: Schedule | None = None, before: ScheduleState | None = None, enabled: bool | None = None
) -> Any:
    return lifecycle.put(NAME, new, old, before, enabled, NOON, ME)


def document(made: Schedule) -> dict[str, Any]:
    return made.model_dump(mode="json")


def key(write: Write) -> tuple[Any, ...]:
    """The row that a write names. A transaction may not name one row twice."""
    match write:
        case PutState(after):
            return ("schedule_state", after.schedule)
        case CloseGeneration(name, generation):
            return ("gathering", name, generation)
        case TrackRates(line):
            return ("line", line)
        case TrackStarts(workflow):
            return ("workflow", workflow)
        case Create(row) | Put(row) | Delete(row) | Replace(row):
            match row:
                case Failures():
                    return ("failures", row.schedule)
                case Version():
                    return ("version", row.schedule, row.version)
                case Listing():
                    return ("listing", row.schedule)
                case Timer():
                    return ("timer", row.schedule)
                case Subscription():
                    return ("subscription", row.event_key, row.schedule, row.leaf, row.generation)
    raise AssertionError(f"expected a write of a lifecycle plan, got {write}")


def rows(plan: list[Write], kind: type) -> list[tuple[str, Any]]:
    return [
        (type(write).__name__, write.row)
        for write in plan
        if isinstance(write, Put | Delete | Create) and isinstance(write.row, kind)
    ]


# -- create --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("enabled", [None, False])
def test_l2_a_new_schedule_is_disabled_and_out_of_the_index(enabled: bool | None) -> None:
    after, plan = put(MIXED, enabled=enabled)

    assert after == ScheduleState(NAME, NOON, 1, "disabled", NOON, ME, since=NOON, mode_at=NOON)
    assert plan == [
        PutState(after, None),
        Create(Version(NAME, 1, document(MIXED), NOON, ME)),
        Put(Listing(NAME, fires=8_640)),
    ]


def test_l2_a_schedule_created_enabled_has_index_rows_and_timer() -> None:
    after, plan = put(MIXED, enabled=True)

    assert after.mode == "enabled"
    subscribed = [
        ("partition:demo.flights", "0"),
        ("status:demo.flights.clean:FAILED", "2"),
        ("status:demo.flights.clean:KILLED", "2"),
    ]
    assert plan[3:] == [
        *[Put(Subscription(event, NAME, NOON, 1, leaf, NOON)) for event, leaf in subscribed],
        Put(Timer(NAME, NOON, 1, NOON, {"1": NOON + 10 * SECOND}, wake_at=NOON + 10 * SECOND)),
    ]


def test_l5_a_reused_schedule_name_starts_after_the_deleted_one() -> None:
    grave = schedule_state(mode="deleted", generation=NOON + DAY, version=4)
    after, plan = put(MIXED, before=grave)
    assert (after.generation, after.version, after.mode) == (NOON + DAY + 1, 5, "disabled")
    assert plan[0] == PutState(after, grave)
    assert not any(isinstance(write, CloseGeneration) for write in plan)


# -- replace -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["enabled", "disabled"])
def test_l2_an_update_keeps_the_mode_that_it_had(mode: Mode) -> None:
    after, _ = put(schedule(WEATHER), schedule(), schedule_state(mode=mode))
    assert after.mode == mode


def test_l6_an_update_closes_old_generation_and_opens_new_one() -> None:
    after, plan = put(schedule(WEATHER), schedule(), schedule_state())

    assert (after.generation, after.version) == (NOON, 2)
    assert plan == [
        PutState(after, schedule_state()),
        Create(Version(NAME, 2, document(schedule(WEATHER)), NOON, ME)),
        Put(Listing(NAME)),
        CLOSED,
        Delete(Subscription("partition:demo.flights", NAME, 7, 1, "0", NOON)),
        Put(Subscription("partition:demo.weather", NAME, NOON, 2, "0", NOON)),
    ]


def test_l6_a_timer_that_goes_on_replaces_old_one_in_one_write() -> None:
    _, plan = put(schedule(TICK, properties={"a": 1}), schedule(TICK), schedule_state())
    [(how, timer)] = rows(plan, Timer)
    assert (how, timer.generation, timer.version, timer.anchor) == ("Put", NOON, 2, NOON)


def test_l6_an_unneeded_timer_is_deleted() -> None:
    _, plan = put(schedule(), schedule(TICK), schedule_state())
    assert [how for how, _ in rows(plan, Timer)] == ["Delete"]


@pytest.mark.parametrize("field", [{"description": "x"}, {"tags": {"team": "a"}}, {"owner": "bob"}])
def test_l18_new_description_tags_or_owner_interrupt_nothing(field: dict[str, Any]) -> None:
    after, plan = put(schedule(**field), schedule(), schedule_state())
    assert (after.generation, after.version, after.mode) == (7, 2, "enabled")
    assert [type(write) for write in plan] == [PutState, Create, Put]


@pytest.mark.parametrize(
    "field",
    [
        {"properties": {"a": 1}},
        {"priority": 9},
        {"timeout": "never"},
        {"by": ["day"]},
        {"constraints": [{"type": "concurrency", "max": 1}]},
        {"trigger": PARTITION | {"count": 2}},
    ],
)
def test_l6_any_other_change_starts_a_new_generation(field: dict[str, Any]) -> None:
    after, plan = put(schedule(**field), schedule(), schedule_state())
    assert after.generation == NOON
    assert CLOSED in plan


def test_l3_an_update_may_enable_or_disable_at_once() -> None:
    disabled, plan = put(MIXED, MIXED, schedule_state(), enabled=False)
    assert (disabled.mode, disabled.generation) == ("disabled", NOON)
    assert [how for how, _ in rows(plan, Subscription)] == ["Delete"] * 3
    assert [how for how, _ in rows(plan, Timer)] == ["Delete"]
    assert CLOSED in plan

    enabled, plan = put(MIXED, MIXED, schedule_state(mode="disabled"), enabled=True)
    assert (enabled.mode, enabled.generation) == ("enabled", NOON)
    assert [how for how, _ in rows(plan, Subscription)] == ["Put"] * 3
    assert [how for how, _ in rows(plan, Timer)] == ["Put"]


# -- enable, disable, delete ---------------------------------------------------------------------------------------


def test_l3_enabling_opens_a_generation_that_counts_from_now_on() -> None:
    before = schedule_state(mode="disabled")
    after, plan = lifecycle.enable(before, schedule(), NOON, ME)
    wanted = ScheduleState(NAME, NOON, 1, "enabled", NOON, ME, rev=2, since=NOON, mode_at=NOON, enabled_by=(ME,))
    assert after == wanted
    assert plan == [
        PutState(after, before),
        CLOSED,
        Put(Subscription("partition:demo.flights", NAME, NOON, 1, "0", since=NOON)),
    ]


def test_t5_enabling_has_no_fires_to_catch_up() -> None:
    made = schedule({"type": "time", "expression": "@hourly"})
    _, plan = lifecycle.enable(schedule_state(mode="disabled", updated_at=NOON - DAY), made, NOON + 1, ME)
    [(_, timer)] = rows(plan, Timer)
    assert timer.next == {"0": NOON + HOUR}


def test_l3_disabling_removes_index_rows_and_closes_gathering() -> None:
    after, plan = lifecycle.disable(schedule_state(), MIXED, NOON, ME)
    assert after == ScheduleState(NAME, 7, 1, "disabled", NOON, ME, rev=2, mode_at=NOON)
    assert plan[:2] == [PutState(after, schedule_state()), CLOSED]
    removed = [key(Delete(row)) for row in lifecycle.subscriptions(schedule_state(), MIXED, NOON)]
    assert [key(write) for write in plan[2:]] == [*removed, ("timer", NAME)]
    assert all(isinstance(write, Delete) for write in plan[2:])


def test_l5_deleting_disables_and_delists_in_one_transaction() -> None:
    after, plan = lifecycle.delete(schedule_state(), MIXED, NOON, ME)
    disabled = lifecycle.disable(schedule_state(), MIXED, NOON, ME)[1]
    assert after.mode == "deleted"
    assert plan == [PutState(after, schedule_state()), *disabled[1:], Delete(Listing(NAME))]


def test_l5_deleting_a_disabled_schedule_still_closes_its_jobs() -> None:
    _, plan = lifecycle.delete(schedule_state(mode="disabled"), MIXED, NOON, ME)
    assert [type(write) for write in plan] == [PutState, CloseGeneration, Delete]


# -- generations and sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "following"), [(7, NOON), (NOON - 1, NOON), (NOON, NOON + 1), (NOON + 9, NOON + 10)]
)
def test_c13_generations_only_grow_even_if_the_clock_goes_back(generation: int, following: int) -> None:
    assert lifecycle.next_generation(schedule_state(generation=generation), NOON) == following


def test_l3_each_enabling_has_its_own_generation() -> None:
    current, seen = schedule_state(mode="disabled", generation=NOON), [NOON]
    for _ in range(3):
        current, _ = lifecycle.enable(current, schedule(), NOON, ME)
        current, _ = lifecycle.disable(current, schedule(), NOON, ME)
        seen.append(current.generation)
    assert seen == [NOON, NOON + 1, NOON + 2, NOON + 3]


ROOM = 4  # writes that a flow adds to a plan, such as the tombstone and the job that a drain detaches


@pytest.mark.parametrize("new", FULL)
@pytest.mark.parametrize("old", FULL)
def test_l5_a_plan_of_the_largest_triggers_fits_into_transaction(old: Schedule, new: Schedule) -> None:
    timer = Timer(NAME, 7, 1, NOON, {"0": NOON}, rev=2)
    urgent = new.model_copy(update={"priority": 9, "constraints": ()})
    plans = [
        put(new, enabled=True)[1],
        put(new, old, schedule_state())[1],
        put(new, old, schedule_state(), enabled=False)[1],
        put(new, old, schedule_state(mode="disabled"), enabled=True)[1],
        put(new, old, schedule_state(mode="backlog"))[1],
        put(new, old, schedule_state(mode="completed"), enabled=True)[1],
        put(urgent, new, schedule_state())[1],
        lifecycle.put(NAME, urgent, new, schedule_state(), None, NOON, ME, carry=True, timer=timer)[1],
        lifecycle.put(NAME, new, urgent, schedule_state(), None, NOON, ME, carry=True, timer=timer)[1],
        lifecycle.enable(schedule_state(mode="disabled"), old, NOON, ME)[1],
        lifecycle.enable(schedule_state(mode="completed"), old, NOON, ME)[1],
        lifecycle.disable(schedule_state(), old, NOON, ME)[1],
        lifecycle.delete(schedule_state(), old, NOON, ME)[1],
    ]
    for plan in plans:
        assert len(plan) <= 100 - ROOM
        assert len({key(write) for write in plan}) == len(plan)


@pytest.mark.parametrize("made", FULL)
@pytest.mark.parametrize("before", ["enabled", "hold", "backlog", "drain"])
def test_l5_a_plan_that_pauses_or_resumes_fits_a_transaction_too(before: Mode, made: Schedule) -> None:
    pauses = [
        lifecycle.pause(schedule_state(mode=before), made, mode, stop, NOON, ME)[1]
        for mode in get_args(lifecycle.PauseMode)
        for stop in (True, False)
    ]
    for plan in [*pauses, lifecycle.resume(schedule_state(mode=before), made, NOON, ME)[1]]:
        assert len(plan) <= 100 - ROOM
        assert len({key(write) for write in plan}) == len(plan)
