"""What an update does not change, it does not restart: the trigger goes on, with its spans and its count (L6)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, iso
from chalicelib.core.rows.schedule import ScheduleState
from tests.acceptance.words import (
    absent,
    all_of,
    any_of,
    days,
    doze,
    doze_until,
    dues,
    elapsed,
    is_gone,
    kinds,
    on,
    partition,
    reasons,
    time,
    to_queue,
)
from tests.support.clock import NOON
from tests.support.samples import parts
from tests.support.world import World, day, flights, full

DROP = {"on_update": "drop"}
# Each is a change that leaves the trigger as it is.
CHANGES: dict[str, dict[str, Any]] = {
    "description": {"description": "another"},
    "properties": {"properties": {"mode": "thorough"}},
    "priority": {"priority": 9},
    "timeout": {"timeout": {"after": "2h"}},
    "constraints": {"constraints": [{"type": "rate", "max": 100, "per": "day"}]},
    "workflow": {"workflow": "mail"},
    "dropped": {"properties": {"mode": "thorough"}, **DROP},
}


def app(name: str, schedule: dict[str, Any]) -> dict[str, Any]:
    document = flights({name: schedule})
    document["workflows"]["mail"] = document["workflows"]["notify"]
    return document


def mode_of(world: World, name: str = "tick") -> str:
    schedule_state = world.ports.rows.get(ScheduleState, full(name))
    assert schedule_state is not None
    return schedule_state.mode


# -- a schedule that has ended ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "trigger", [time("R3/PT10S"), time("@every 10s", repeats=3), {"type": "time", "due_time": "10s"}]
)
def test_l6_a_schedule_that_has_ended_stays_so_after_an_update(
    world: World, change: str, trigger: dict[str, Any]
) -> None:
    world.deploy(app("tick", to_queue(trigger)))
    world.pass_by("5m")
    ran = dues(world)
    assert (ran[0], mode_of(world)) == (10, "completed")

    for _ in range(3):
        world.deploy(app("tick", to_queue(trigger) | CHANGES[change]))
        world.pass_by("5m")
    assert (dues(world), kinds(world, "tick"), mode_of(world)) == (ran, [], "completed")


def test_l6_a_completed_schedule_with_other_times_begins_again(world: World) -> None:
    tick = to_queue(time("R2/PT10S"))
    world.deploy(app("tick", tick))
    world.pass_by("5m")
    del tick["enabled"]
    world.deploy(app("tick", tick | {"trigger": time("R3/PT10S")}))
    world.pass_by("5m")
    assert dues(world) == [10, 20, 310, 320, 330]


@pytest.mark.parametrize("fields", [{}, DROP])
def test_l10_a_later_ttl_opens_a_completed_schedule_again(world: World, fields: dict[str, Any]) -> None:
    """Its last run keeps it after the end."""
    tick = on(time("@every 1m"), coalesce=False)
    world.deploy(app("tick", tick | {"ttl": "150s"}))
    world.pass_by("4m")
    assert (len(world.runs("tick")), mode_of(world)) == (2, "completed")

    world.deploy(app("tick", tick | {"ttl": "4m"} | fields))  # until 12:08
    world.pass_by("10m")
    seconds = [((run.nominal_at or 0) - NOON) / SECOND for run in world.runs("tick")]
    assert seconds == [60, 120, 300, 360, 420, 480]


def test_l10_a_completed_schedule_that_is_to_be_deleted_is_gone(world: World) -> None:
    once = to_queue({"type": "time", "due_time": "10s"})
    world.deploy(app("tick", once))
    world.pass_by("5m")
    world.deploy(app("tick", once | {"when_done": "delete"}))
    world.pass_by("5m")
    assert (len(world.runs("tick")), is_gone(world)) == (1, True)


def test_l10_a_later_ttl_lets_events_gather_again(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), ttl="10m")}))
    world.upload(day(1))
    world.pass_by("11m")
    assert mode_of(world, "daily") == "completed"  # its run goes on
    world.deploy(flights({"daily": on(partition(), ttl="20m")}))
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"], ["2"]]


# -- spans -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_t3_an_update_does_not_move_a_relative_due_time(world: World, change: str) -> None:
    once = to_queue({"type": "time", "due_time": "1h"})
    world.deploy(app("tick", once))
    for _ in range(3):
        doze(world, "15m")
        world.deploy(app("tick", once | CHANGES[change]))
        report = world.deploy(app("tick", once | CHANGES[change]))
        assert "schedule demo.flights.tick" in report["kept"]
    doze(world, "14m")
    world.deploy(app("tick", once))
    world.pass_by("5m")
    assert (dues(world), kinds(world, "tick")) == ([HOUR / SECOND], [])


def test_l10_an_update_does_not_move_a_relative_ttl(world: World) -> None:
    tick = to_queue(time("@every 10m"), ttl="35m")
    world.deploy(app("tick", tick))
    for number in range(3):
        doze(world, "9m")
        world.deploy(app("tick", tick | {"properties": {"number": number}}))
        world.pass_by("2m")
    world.pass_by("5m")
    assert (dues(world), is_gone(world)) == ([600, 1200, 1800], True)


def test_l10_another_ttl_counts_from_the_put_that_changes_it(world: World) -> None:
    tick = to_queue(time("@every 10m"), ttl="1d")
    world.deploy(app("tick", tick))
    doze(world, "11m")
    world.pass_by("3m")
    changed = tick | {"ttl": "8m"}
    for _ in range(2):
        world.deploy(app("tick", changed))
        world.pass_by("1m")
    world.deploy(app("tick", changed | {"description": "ends at 12:22"}))
    world.pass_by("20m")
    assert (dues(world), is_gone(world)) == ([600, 1200], True)


def test_t3_bounds_stay_where_the_first_put_set_them(world: World) -> None:
    """Counted from the second put, the due time would be after the end."""
    once = {"type": "time", "expression": "@every 1m", "due_time": "10m", "end": iso(NOON + 12 * MINUTE)}
    world.deploy(app("tick", to_queue(once)))
    world.pass_by("5m")
    world.put("tick", to_queue(once))
    world.put("tick", to_queue(once, description="the same"))
    world.put("tick", to_queue(once, priority=3))
    world.pass_by("10m")
    assert dues(world) == [600, 660, 720]


def test_t1_a_schedule_that_is_often_redeployed_still_runs(world: World) -> None:
    """`@every 24h`, with another property every 23 hours."""
    tick = to_queue(time("@every 24h"))
    world.deploy(app("tick", tick))
    for number in range(10):
        for _ in range(23):
            doze(world, "1h")
        world.deploy(app("tick", tick | {"properties": {"number": number}}))
    world.pass_by("1m")
    assert dues(world) == [number * DAY / SECOND for number in range(1, 10)]
    assert kinds(world, "tick") == []


@pytest.mark.parametrize("fields", [{}, DROP])
def test_t13_an_update_does_not_restart_an_elapsed_span(world: World, fields: dict[str, Any]) -> None:
    either = on(any_of(elapsed("1h"), partition("flights", 9)))
    world.deploy(flights({"either": either}))
    for number in range(1, 5):
        doze(world, "50m")
        world.put("either", either | {"properties": {"number": number}} | fields)
        doze_until(world, NOON + number * HOUR + SECOND)
        world.finish()
    assert dues(world, "either") == [number * HOUR / SECOND for number in range(1, 5)]


@pytest.mark.parametrize("came", [True, False])
@pytest.mark.parametrize("limit", [{"within": "1h"}, {"deadline": "13:00"}])
def test_t18_an_update_forgets_no_arrival_of_a_feed(world: World, limit: dict[str, Any], came: bool) -> None:
    alarm = on(absent(partition(), **limit))
    world.deploy(flights({"alarm": alarm}))
    doze(world, "30m")
    if came:
        world.upload(day(1))
        world.settle()
    for number in range(2):
        world.put("alarm", alarm | {"properties": {"number": number}})
        doze(world, "10m")
    doze(world, "20m")
    assert len(world.runs("alarm")) == (not came)
    doze(world, "29m")
    world.pass_by("3m")
    assert len(world.runs("alarm")) == (1 if "within" in limit or not came else 0)


def test_l6_events_are_dropped_and_the_time_beside_them_goes_on(world: World) -> None:
    both = on(all_of(partition(), time("@every 10m")))
    world.deploy(flights({"both": both}))
    world.upload(day(1))
    doze(world, "5m")
    world.put("both", both | {"priority": 9, **DROP})
    assert kinds(world, "both") == ["DROPPED"]
    world.upload(day(2))
    doze(world, "6m")
    [run] = world.runs("both")
    assert (dues(world, "both"), world.context(run)["events"][0]["partition"]["day"]) == ([600], "2")


# -- fires that are prepared ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", ["notify", "clean"])
@pytest.mark.parametrize(
    "trigger",
    [
        time("@every 10m"),
        time("R1/PT10M"),
        time("@every 10m", repeats=1),
        {"type": "time", "due_time": "10m"},
        time("10 12 * * *"),
        time("9 12 * * *", jitter="2m"),
    ],
)
def test_l6_a_prepared_fire_runs_once_with_the_new_properties(
    world: World, trigger: dict[str, Any], workflow: str
) -> None:
    tick = on(trigger, workflow)
    world.deploy(app("tick", tick))
    doze(world, "9m")
    world.pass_by("30s")
    for number in range(2):
        world.put("tick", tick | {"properties": {"number": number}})
        world.pass_by("10s")
    world.pass_by("3m")
    [run] = world.runs("tick")
    assert (run.request.properties, kinds(world, "tick")) == ({"number": 1}, [])


def test_l6_each_event_of_a_spread_runs_or_is_on_record(world: World) -> None:
    spread = to_queue(time("@every 5m"), spread={"count": 60, "over": "4m"})
    world.deploy(app("tick", spread))
    world.pass_by("5m")
    for number in range(12):
        world.pass_by("33s")
        world.put("tick", spread | {"properties": {"number": number}})
    world.pass_by("3m")
    assert sorted(dues(world)) == [at + 4 * number for at in (300, 600) for number in range(60)]
    assert kinds(world, "tick") == []


@pytest.mark.parametrize("over", ["4s", "40m"])
def test_l6_another_window_moves_what_is_left_of_a_fire(world: World, over: str) -> None:
    every = time("@every 1h")
    world.deploy(app("tick", to_queue(every, spread={"count": 4, "over": "20m"})))
    world.pass_by("1h")
    world.pass_by("7m")  # two events are sent
    world.put("tick", to_queue(every, spread={"count": 4, "over": over}, **DROP))
    world.pass_by("1m")
    sent = sorted(run.claimed_at - NOON - HOUR for run in world.runs("tick"))
    assert sent[:2] == [0, 5 * MINUTE]
    assert len(sent) == (4 if over == "4s" else 2)  # those that are overdue by it start at once
    world.pass_by("30m")
    assert (len(world.runs("tick")), kinds(world, "tick")) == (4, [])


@pytest.mark.parametrize("mode", ["hold", "backlog"])
def test_l4_an_update_in_a_pause_keeps_the_times_to_come(world: World, mode: str) -> None:
    tick = to_queue(time("@every 10m"))
    world.deploy(app("tick", tick))
    world.pause("tick", mode)
    world.pass_by("9m")
    del tick["enabled"]
    world.deploy(app("tick", tick | {"priority": 9}))
    world.pass_by("2m")
    world.resume("tick")
    world.pass_by("10m")
    assert [((run.nominal_at or 0) - NOON) // MINUTE for run in world.runs("tick")] == [10, 20]
    assert kinds(world, "tick") == []


def test_l6_what_was_due_and_waited_is_dropped_on_record(world: World) -> None:
    tick = on(time("@every 10m"), "clean", {"type": "delay", "after": "5m"})
    world.deploy(app("tick", tick))
    doze(world, "12m")
    world.put("tick", tick | {"properties": {"number": 1}, **DROP})
    world.pass_by("14m")
    assert reasons(world, "tick") == ["DROPPED: the schedule was replaced or enabled again"]
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + 20 * MINUTE]


def test_l6_an_earlier_end_drops_prepared_fires_on_record(world: World) -> None:
    tick = to_queue(time("@every 15s"))
    world.deploy(app("tick", tick))
    world.pass_by("20s")
    world.put("tick", tick | {"ttl": "30s"})  # until 12:00:50
    world.pass_by("4m")
    assert dues(world) == [15, 30, 45]
    assert set(kinds(world, "tick")) == {"DROPPED"}
    assert is_gone(world)


def test_l2_enabling_by_a_put_counts_from_the_put(world: World) -> None:
    once = to_queue({"type": "time", "due_time": "10m"})
    world.deploy(app("tick", once | {"enabled": False}))
    doze(world, "15m")
    world.deploy(app("tick", once))
    doze(world, "11m")
    assert dues(world) == [25 * 60]
    world.disable("tick")
    with pytest.raises(SluiceError, match="an instant from now on"):
        world.enable("tick")


# -- any update, at any time -------------------------------------------------------------------------------------------

TRIGGERS: list[dict[str, Any]] = [
    {"trigger": time("@every 7s")},
    {"trigger": time("R40/PT15S")},
    {"trigger": time("@every 20s", repeats=25)},
    {"trigger": time("* * * * *", jitter="50s")},
    {"trigger": time("* * * * *", jitter="40s", repeats=7)},
    {"trigger": time("@every 3m"), "spread": {"count": 20, "over": "2m"}},
    {"trigger": time("@every 1m"), "spread": {"count": 9, "over": "150s"}},
    {"trigger": time("@every 2m", repeats=3), "spread": {"count": 12, "over": "3m"}},
    {"trigger": {"type": "time", "due_time": "5m", "jitter": "4m"}},
    {"trigger": {"type": "time", "due_time": "95s", "expression": "@every 50s", "end": "9m"}},
]


def fires(world: World) -> list[tuple[int, int]]:
    """The events that were sent: nominal instant, and when."""
    return sorted((run.nominal_at or 0, run.claimed_at) for run in world.runs("tick"))


@pytest.mark.parametrize("fields", TRIGGERS)
@pytest.mark.parametrize("seed", parts(4))
def test_l6_updates_at_any_time_lose_and_double_no_fire(fields: dict[str, Any], seed: int) -> None:
    tick = to_queue(fields["trigger"], coalesce=False) | fields
    undisturbed = World()
    undisturbed.deploy(app("tick", tick))
    undisturbed.pass_by("14m")
    draw, world = random.Random(seed), World()
    world.deploy(app("tick", tick))
    while world.clock.now() < NOON + 10 * MINUTE:
        world.pass_by(f"{draw.choice([300, 1_000, 5_700, 31_000, 64_000])}ms")
        change = draw.choice([{}, *CHANGES.values()]) | {"tags": {"number": str(draw.randrange(5))}}
        world.deploy(app("tick", tick | change))
    world.pass_by(f"{NOON + 14 * MINUTE - world.clock.now()}ms")
    assert (fires(world), kinds(world, "tick")) == (fires(undisturbed), [])
