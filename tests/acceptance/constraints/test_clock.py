"""A delay (C2) and a daily window (C3), also where clocks change and zones are odd."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import HOUR, MINUTE, parse_instant
from chalicelib.flow import shards
from tests.acceptance.words import day, delay, doze, doze_until, on, partition, started_at, why, window
from tests.support.clock import NOON
from tests.support.world import World, flights


def test_c2_a_delay_counts_from_the_creation_of_the_job(world: World) -> None:
    world.deploy(flights({"daily": on(partition(count=2), "clean", delay("10m"))}))
    world.upload(day(1))
    world.pass_by("6m")
    world.upload(day(2))
    world.pass_by("3m")
    assert world.runs("daily") == []
    assert "its time at 2026-03-02T12:10:00.000Z" in why(world, "daily")["wakes"]
    world.pass_by("1m")
    assert started_at(world, "daily") == ["2026-03-02T12:10:00.000Z"]


@pytest.mark.parametrize("fires", [10, 600])
def test_c2_a_delay_ends_on_its_second_behind_many_fires(fires: int) -> None:
    """A tick reads the jobs of the next minute, of which the prepared fires come first. All lie in one shard."""
    world = World(wake_shards=1, history_shards=1)
    shot = {"type": "time", "due_time": "2026-03-02T12:41:10Z"}
    world.deploy(
        flights({"daily": on(partition(), "clean", delay("40m")), "shot": on(shot, "notify", spread={"count": fires})})
    )
    world.pass_by("80s")
    world.upload(day(1))
    world.settle()
    doze(world, "40m")
    assert sum(run.count for run in world.runs("shot")) == fires
    assert started_at(world, "daily") == ["2026-03-02T12:41:20.000Z"]


def test_c2_many_delays_end_on_their_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """More jobs than a tick handles of overdue rows."""
    monkeypatch.setattr(shards, "PAGE", 10)
    world = World(wake_shards=1, history_shards=1, start_burst=60)
    names = [f"daily{number:03d}" for number in range(30)]
    world.deploy(flights({name: on(partition(), "clean", delay("40m")) for name in names}))
    world.pass_by("80s")
    world.upload(day(1))
    world.settle()
    doze(world, "40m")
    assert [started_at(world, name) for name in names] == [["2026-03-02T12:41:20.000Z"]] * 30


def test_c2_a_delay_may_count_from_when_the_trigger_was_met(world: World) -> None:
    world.deploy(flights({"daily": on(partition(count=2), "clean", delay("10m", since="met"))}))
    world.upload(day(1))
    world.pass_by("6m")
    world.upload(day(2))
    doze(world, "10m")
    assert started_at(world, "daily") == ["2026-03-02T12:16:00.000Z"]


def test_c2_a_delay_over_before_the_match_delays_nothing(world: World) -> None:
    world.deploy(flights({"daily": on(partition(count=2), "clean", delay("10m"))}))
    world.upload(day(1))
    doze(world, "1h")
    world.upload(day(2))
    world.settle()
    assert len(world.runs("daily")) == 1


def test_c2_the_delay_of_a_timer_job_counts_from_its_fire(world: World) -> None:
    world.deploy(flights({"tick": on({"type": "time", "expression": "30 12 * * *"}, "clean", delay("90s"))}))
    doze(world, "32m")
    assert started_at(world, "tick") == ["2026-03-02T12:31:30.000Z"]


def test_c3_a_window_over_midnight_is_one_and_has_its_first_day(world: World) -> None:
    """Monday noon: Wednesday's window is open in the early hours of Thursday, and not in those of Wednesday."""
    world.deploy(flights({"daily": on(partition(), "clean", window("22:00", "06:00", days=["wed"]))}))
    world.upload(day(1))
    doze_until(world, NOON + 13 * HOUR)
    assert world.runs("daily") == []
    world.put("daily", on(partition(), "clean", window("22:00", "06:00", days=["wed"]), timeout="never"))
    world.upload(day(2))
    doze_until(world, NOON + 58 * HOUR)
    assert started_at(world, "daily") == ["2026-03-04T22:00:00.000Z"]

    doze(world, "4h")
    world.upload(day(3))
    world.settle()
    assert started_at(world, "daily")[1:] == ["2026-03-05T02:00:00.000Z"]
    doze(world, "4h")
    world.upload(day(4))
    world.settle()
    assert len(world.runs("daily")) == 2


def test_c3_a_window_ends_before_its_last_minute_is_over(world: World) -> None:
    """``[start, end)``: at its end it is closed."""
    world.deploy(flights({"daily": on(partition(), "clean", window("11:00", "13:00"))}))
    world.clock.wait_until(NOON + HOUR - 1)
    world.upload(day(1))
    world.settle()
    assert len(world.runs("daily")) == 1
    world.clock.pass_by("1ms")
    world.upload(day(2))
    world.settle()
    assert why(world, "daily")["constraints"][0]["until"] == "2026-03-03T11:00:00.000Z"


def test_c3_at_clocks_forward_a_window_opens_right_after_the_gap(world: World) -> None:
    """In Paris, 29 March 2026 has no 02:30: after 02:00 comes 03:00, which is 01:00 in UTC."""
    world.clock.wait_until(parse_instant("2026-03-28T23:00:00Z"))
    world.deploy(flights({"daily": on(partition(), "clean", window("02:30", "05:00", zone="Europe/Paris"))}))
    world.upload(day(1))
    doze_until(world, parse_instant("2026-03-29T01:00:00Z"))
    assert started_at(world, "daily") == ["2026-03-29T01:00:00.000Z"]

    doze_until(world, parse_instant("2026-03-29T03:00:00Z"))
    world.upload(day(2))
    world.settle()
    assert why(world, "daily")["constraints"][0]["until"] == "2026-03-30T00:30:00.000Z"


def test_c3_at_clocks_back_by_half_an_hour_a_window_opens_once(world: World) -> None:
    """On Lord Howe, 5 April 2026 has 01:30 to 02:00 twice (UTC+11, then UTC+10:30): the first one opens."""
    world.clock.wait_until(parse_instant("2026-04-04T12:00:00Z"))
    world.deploy(flights({"daily": on(partition(), "clean", window("01:45", "01:50", zone="Australia/Lord_Howe"))}))
    world.upload(day(1))
    doze_until(world, parse_instant("2026-04-04T14:45:00Z"))
    assert started_at(world, "daily") == ["2026-04-04T14:45:00.000Z"]

    doze_until(world, parse_instant("2026-04-04T15:16:00Z"))
    world.upload(day(2))
    world.settle()
    assert len(world.runs("daily")) == 1
    assert why(world, "daily")["constraints"][0]["until"] == "2026-04-05T15:15:00.000Z"


def test_c3_a_window_works_in_a_zone_off_by_half_an_hour(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", window("22:00", "06:00"), zone="Asia/Kolkata")}))
    world.upload(day(1))
    doze_until(world, NOON + 4 * HOUR + 30 * MINUTE)
    assert started_at(world, "daily") == ["2026-03-02T16:30:00.000Z"]
