"""Working days with the holidays of a calendar of the namespace (T30)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import DAY, MINUTE, iso, parse_instant
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.fires import calendars
from chalicelib.flow.schedules import actions, pauses
from tests.acceptance.words import time, to_queue
from tests.support.clock import NOON
from tests.support.world import World, flights, full

# Noon is that of Monday, 2 March 2026. The last working day of March is Tuesday, the 31st.
LAST = time("0 17 LW * *", calendar="france")


def days(*entries: Any) -> dict[str, Any]:
    return HolidayCalendar.model_validate({"days": list(entries)}).model_dump(mode="json")


def deploy(world: World, *entries: Any, **schedules: Any) -> None:
    world.deploy({**flights(schedules), "calendars": {"france": {"days": list(entries)}}})


def put(world: World, *entries: Any) -> None:
    calendars.put(world.ports, "demo.france", days(*entries), "tester")


def next_fires(world: World, count: int, name: str = "closing") -> list[str]:
    _, schedule = lookup.existing(world.ports, full(name))
    timer = world.ports.rows.get(Timer, full(name))
    return [iso(fire.nominal)[5:16] for fire in upcoming.fires(schedule, world.clock.now(), count, timer, full(name))]


def ran(world: World, name: str = "closing") -> list[str]:
    return [iso(run.nominal_at or 0)[5:16] for run in world.runs(name)]


def go_to(world: World, text: str) -> None:
    """Tick shortly before and shortly after an instant."""
    world.clock.wait_until(parse_instant(f"2026-{text}:00Z") - 2 * MINUTE)
    world.tick()
    world.pass_by("5m")


def test_t30_holidays_are_no_working_days(world: World) -> None:
    deploy(world, "2026-03-31", "05-01", {"from": "2026-05-28", "to": "2026-05-29"}, closing=to_queue(LAST))
    assert next_fires(world, 3) == ["03-30T17:00", "04-30T17:00", "05-27T17:00"]
    for text in ("03-30T17:00", "03-31T17:00", "04-30T17:00"):
        go_to(world, text)
    assert ran(world) == ["03-30T17:00", "04-30T17:00"]


@pytest.mark.parametrize("mode", ["enabled", "hold"])
def test_t30_a_changed_calendar_moves_the_next_fire(world: World, mode: str) -> None:
    """It may become earlier or later; the same request again changes nothing."""
    deploy(world, "12-25", closing=to_queue(LAST))
    if mode == "hold":
        pauses.pause(world.ports, full("closing"), "hold", "tester")
    assert next_fires(world, 1) == ["03-31T17:00"]
    put(world, {"from": "2026-03-05", "to": "2026-03-31"})
    timer = world.ports.rows.get(Timer, full("closing"))
    assert timer is not None and iso(timer.next["0"])[5:10] == iso(timer.wake_at or 0)[5:10] == "03-04"
    put(world, {"from": "2026-03-05", "to": "2026-03-31"})
    assert world.ports.rows.get(Timer, full("closing")) == timer
    put(world, "2026-03-31")
    pauses.resume(world.ports, full("closing"), "tester")
    for text in ("03-04T17:00", "03-30T17:00", "03-31T17:00"):
        go_to(world, text)
    assert ran(world) == ["03-30T17:00"]


def test_t30_a_fire_that_is_prepared_stays(world: World) -> None:
    deploy(world, "12-25", closing=to_queue(LAST))
    world.clock.wait_until(parse_instant("2026-03-31T16:59:00Z"))
    world.tick()
    put(world, "2026-03-31")  # would be the 30th, which is over
    assert next_fires(world, 1) == ["04-30T17:00"]
    world.pass_by("5m")
    assert ran(world) == ["03-31T17:00"]


def test_t30_a_change_after_the_day_repeats_no_fire(world: World) -> None:
    deploy(world, "2026-03-31", closing=to_queue(LAST))
    go_to(world, "03-30T17:00")
    put(world, "12-25")  # the 31st is a working day after all: the last one of March
    go_to(world, "03-31T17:00")
    put(world, "2026-03-31")
    go_to(world, "04-30T17:00")
    assert ran(world) == ["03-30T17:00", "03-31T17:00", "04-30T17:00"]


def test_t30_a_disabled_schedule_follows_when_it_is_enabled(world: World) -> None:
    deploy(world, "12-25", closing=to_queue(LAST, enabled=False))
    put(world, "2026-03-31")
    assert next_fires(world, 1) == ["03-30T17:00"]
    actions.enable(world.ports, full("closing"), "tester")
    go_to(world, "03-30T17:00")
    assert ran(world) == ["03-30T17:00"]


def test_t30_a_deployment_puts_the_calendar_before_its_schedules(world: World) -> None:
    deploy(world, "12-25", closing=to_queue(LAST))
    before = lookup.existing(world.ports, full("closing"))[0]
    deploy(world, "2026-03-31", closing=to_queue(LAST))
    assert lookup.existing(world.ports, full("closing"))[0].version == before.version, "the schedule is the same"
    assert next_fires(world, 1) == ["03-30T17:00"]


def test_t30_each_working_day_has_a_fire(world: World) -> None:
    deploy(world, "2026-03-04", daily=to_queue(time("0 9 W * *", calendar="france")))
    assert next_fires(world, 6, "daily") == [f"03-{day}T09:00" for day in ("03", "05", "06", "09", "10", "11")]


def test_t30_a_schedule_with_other_leaves_and_jitter_follows(world: World) -> None:
    leaves = [{"type": "elapsed", "after": "30d"}, {**LAST, "jitter": "3h"}]
    deploy(world, "12-25", closing=to_queue({"type": "any", "triggers": leaves}))
    put(world, "2026-03-31")
    timer = world.ports.rows.get(Timer, full("closing"))
    assert timer is not None and iso(timer.next["1"])[5:10] == "03-30"
    assert timer.next["0"] == NOON + 30 * DAY


def test_t30_a_calendar_in_use_is_not_deleted(world: World) -> None:
    deploy(world, "12-25", closing=to_queue(LAST))
    with pytest.raises(SluiceError) as refused:
        store.delete(world.ports, "calendar", "demo.france")
    assert (refused.value.code, full("closing") in refused.value.message) == ("in_use", True)
    deploy(world, "12-25", closing=to_queue(time("0 17 LW * *")))
    store.delete(world.ports, "calendar", "demo.france")
    assert world.ports.rows.get(Definition, "calendar", "demo.france") is None


def test_t30_a_postponed_leaf_keeps_the_fire_of_the_calendar(world: World) -> None:
    """A run now postpones the elapsed leaf, so its timer is set anew, also for the jittered fire beside it."""
    leaves = [{"type": "elapsed", "after": "1d"}, {**LAST, "jitter": "3h"}]
    deploy(world, "2026-03-31", closing=to_queue({"type": "any", "triggers": leaves}))
    world.pass_by("20h")
    world.run_now("closing")
    world.settle()
    for _ in range(3):
        world.tick()
        world.pass_by("12h")
    assert len(world.runs("closing")) >= 2
    timer = world.ports.rows.get(Timer, full("closing"))
    assert timer is not None and iso(timer.next["1"])[5:10] == "03-30"


@pytest.mark.parametrize(
    ("trigger", "field", "words"),
    [
        (time("0 17 LW * *", calendar="farnce"), "trigger.calendar", "'demo.farnce'"),
        (time("0 17 LW * *", calendar="other.france"), "trigger.calendar", "a calendar of namespace demo"),
        (time("0 17 L * *", calendar="france"), "trigger.calendar", "a calendar only with working days (W)"),
        ({"type": "time", "due_time": "1h", "calendar": "france"}, "trigger.calendar", "a calendar only with working"),
    ],
)
def test_t30_a_calendar_that_does_not_fit_is_refused(world: World, trigger: Any, field: str, words: str) -> None:
    with pytest.raises(Exception) as refused:
        deploy(world, "12-25", closing=to_queue(trigger))
    assert words in str(refused.value)
    assert field.rpartition(".")[2] in str(getattr(refused.value, "field", refused.value))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["mon", "tue", "wed", "thu", "fri"], "holidays that leave a working day"),
        ([{"from": "01-01", "to": "12-31"}], "holidays that leave a working day"),
        ([], "at least 1 item"),
        (["caturday"], "a date such as"),
        ([{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}], "whole days"),
    ],
)
def test_t30_holidays_without_a_working_day_are_refused(entries: list[Any], words: str) -> None:
    with pytest.raises(ValueError) as refused:
        days(*entries)
    assert words in str(refused.value)
