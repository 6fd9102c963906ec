"""New rules of time zones reach every stored instant: timers, prepared fires, waiting jobs (T2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, iso, parse_instant
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version, ZoneRules
from chalicelib.core.writes import Put
from chalicelib.flow.fires import zone_rules as following
from chalicelib.flow.fires.zone_rules import Follower
from chalicelib.flow.schedules import pauses
from sluice.operations.rules.arriving import Arrival, arriving
from sluice.operations.rules.limits import Moving
from tests.acceptance.words import calendar, on, partition, reasons, time, window
from tests.support import events, idle, zone_rules
from tests.support.schedules import at
from tests.support.world import World, day, flights, full

ZONE = "America/Vancouver"
Use = Callable[[float], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Use:
    """Computes with rules by which the zone always has this offset, as after a deployment of them."""

    def with_offset(offset: float) -> None:
        rules = zone_rules.made(
            tmp_path, f"2026{offset}", {ZONE: zone_rules.hours(offset), "Asia/Tokyo": zone_rules.hours(9)}
        )
        zone_rules.use(monkeypatch, rules)

    return with_offset


def daily(expression: str = "0 6 * * *", **fields: Any) -> dict[str, Any]:
    return at("", "notify", trigger=time(expression, zone=ZONE)) | fields


def play(world: World, follower: Follower, until: str) -> None:
    """Ticks, of which each follows the rules as that of the Lambda does."""
    end = parse_instant(f"2026-03-{until}:00Z")
    while world.clock.now() < end:
        follower.step(world.ports)
        idle.pass_by(world, "1m")


def nominals(world: World, name: str = "tick") -> list[str]:
    return [iso(run.nominal_at or run.accepted_at or 0)[8:16] for run in world.runs(name)]


def starts(world: World, name: str = "tick") -> list[str]:
    return [iso(run.claimed_at)[8:16] for run in world.runs(name)]


@pytest.mark.parametrize(
    ("old", "new", "deployed", "fires", "dropped"),
    [
        # Before both instants, between them, while the fire is prepared, and after both.
        (-8, -7, "02T12:30", ["02T13:00", "03T13:00"], []),
        (-8, -7, "02T13:30", ["02T13:00", "03T13:00"], []),
        (-8, -7, "02T13:59", ["02T13:00", "03T13:00"], ["02T14:00"]),
        (-8, -7, "02T14:30", ["02T14:00", "03T13:00"], []),
        (-7, -8, "02T12:30", ["02T14:00", "03T14:00"], []),
        (-7, -8, "02T12:59", ["02T14:00", "03T14:00"], ["02T13:00"]),
        (-7, -8, "02T13:30", ["02T13:00", "03T14:00"], []),
        (-7, -8, "02T14:30", ["02T13:00", "03T14:00"], []),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"jitter": "20s"}, {"coalesce": False, "spread": {"count": 3, "over": "30s"}}])
def test_t2_a_wall_time_fires_once_before_between_and_after(
    use: Use, old: float, new: float, deployed: str, fires: list[str], dropped: list[str], fields: dict[str, Any]
) -> None:
    use(old)
    world, count = World(), fields.get("spread", {}).get("count", 1)
    trigger = time("0 6 * * *", zone=ZONE, **{name: fields[name] for name in fields if name == "jitter"})
    others = {name: content for name, content in fields.items() if name != "jitter"}
    world.deploy(flights({"tick": at("", "notify", trigger=trigger) | others}))
    play(world, Follower(), deployed)
    use(new)
    play(world, Follower(), "03T15:00")
    assert nominals(world) == [nominal for nominal in fires for _ in range(count)]
    why = f"by version 2026{new} of the time zones, {{}}Z is no longer the instant of this fire"
    expected = [f"DROPPED: {why.format(f'2026-03-{nominal}:00.000')}" for nominal in dropped for _ in range(count)]
    assert reasons(world, "tick") == expected


@pytest.mark.parametrize(
    ("old", "new", "deployed", "fires", "dropped"),
    [
        # While the fire is prepared, and right before and after its instant.
        (-8, -7, "02T13:59", ["02T13:00"], 1),
        (-7, -8, "02T12:59", ["02T14:00"], 1),
        (-8, -7, "02T14:00", ["02T14:00"], 0),
        (-7, -8, "02T13:01", ["02T13:00"], 0),
    ],
)
@pytest.mark.parametrize(("count", "over"), [(7, None), (600, None), (300, "5s")])
def test_t2_a_large_fire_comes_at_one_wall_time(
    use: Use, old: float, new: float, deployed: str, fires: list[str], dropped: int, count: int, over: str | None
) -> None:
    """Its bundles are taken back with a record of each, and written again for the other instant."""
    use(old)
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"tick": daily(spread={"count": count} | ({"over": over} if over else {}))}))
    play(world, Follower(), deployed)
    assert all(job.is_bundle for job in world.jobs("tick"))
    use(new)
    play(world, Follower(), "02T15:00")
    assert {iso(context["events"][0]["instant"])[8:16] for _, context in world.targets.queue.messages} == set(fires)
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == count
    assert sorted(events.sent(world, "tick")) == sorted(ids)
    assert events.on_record(world, "tick") == dropped * count


def test_t2_a_fire_of_too_many_bundles_comes_as_prepared(use: Use) -> None:
    """One transaction cannot take back its 60 bundles."""
    use(-7)
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"tick": daily(spread={"count": 600, "over": "1m"})}))
    play(world, Follower(), "02T12:59")
    use(-8)
    play(world, Follower(), "02T15:00")
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == 600
    assert {iso(at)[8:16] for at in world.targets.queue.sent_at} == {"02T13:00"}
    assert world.records("tick") == []


def test_t2_an_earlier_instant_is_found_at_once(use: Use) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily()}))
    play(world, Follower(), "02T12:10")
    use(-7)
    play(world, Follower(), "02T13:05")
    assert (nominals(world), starts(world)) == (["02T13:00"], ["02T13:00"])


def test_t2_an_emitter_moves_a_timer_that_no_pass_has_reached(use: Use) -> None:
    use(-7)
    world = World()
    world.deploy(flights({"tick": daily()}))
    use(-8)
    world.pass_by("1h30m")
    assert nominals(world) == []
    world.pass_by("1h")
    assert nominals(world) == ["02T14:00"]


def test_t2_a_timer_of_another_installation_follows(use: Use) -> None:
    """An import wakes a timer that other rules made. The emitter stores its instants, and leaves it alone then."""
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily()}))
    exported = world.ports.rows.get(Timer, full("tick"))
    use(-7)
    for zone_offset, instant in ((-7, "02T13:00"), (-8, "02T14:00")):
        use(zone_offset)
        [arrived] = arriving(exported, Arrival({}, world.clock.now(), Moving(frozenset({"demo"}))))
        world.ports.ledger.put_all([Put(arrived)])
        world.tick()
        timer = world.ports.rows.get(Timer, full("tick"))
        assert (iso(timer.next["0"])[8:16], timer.wake_at, timer.rules) == (
            instant,
            timer.next["0"],
            f"2026{zone_offset}",
        )
        world.tick()
        assert world.ports.rows.get(Timer, full("tick")) == timer


def test_t2_repeats_count_a_fire_once_that_was_taken_back(use: Use) -> None:
    use(-7)
    world = World()
    world.deploy(flights({"tick": at("", "notify", trigger=time("0 6 * * *", zone=ZONE, repeats=2))}))
    play(world, Follower(), "02T12:59")
    use(-8)
    play(world, Follower(), "02T15:00")
    idle.pass_by(world, "3d")
    assert nominals(world) == ["02T14:00", "03T14:00"]


def test_t2_a_trigger_of_several_leaves_follows(use: Use) -> None:
    use(-7)
    world = World()
    world.deploy(flights({"both": on({"type": "all", "triggers": [time("0 6 * * *", zone=ZONE), partition()]})}))
    world.upload(day(1))
    play(world, Follower(), "02T12:59")
    use(-8)
    play(world, Follower(), "02T13:30")
    assert world.runs("both") == []
    play(world, Follower(), "02T14:02")
    assert len(world.runs("both")) == 1


@pytest.mark.parametrize(("old", "new", "begins"), [(-8, -7, "02T13:00"), (-7, -8, "02T14:00")])
@pytest.mark.parametrize("kind", ["window", "calendar"])
def test_t2_a_job_that_waits_for_its_hours_follows(use: Use, old: float, new: float, begins: str, kind: str) -> None:
    use(old)
    world = World()
    day_after = calendar(only=["2026-03-03"], zone=ZONE)
    condition = window("06:00", "20:00", zone=ZONE) if kind == "window" else day_after
    world.deploy(flights({"data": on(partition(), "notify", condition)}))
    play(world, Follower(), "02T12:05")
    world.upload(day(1))
    world.settle()
    [job] = world.jobs("data")
    assert job.wake_at is not None
    use(new)
    opens = begins if kind == "window" else begins.replace("02T13", "03T07").replace("02T14", "03T08")
    play(world, Follower(), "03T09:00")
    assert starts(world, "data") == [opens]


@pytest.mark.parametrize(("old", "new", "skipped"), [(-8, -7, "04T13:00"), (-7, -8, "04T14:00")])
def test_l19_a_skip_moves_with_its_wall_time(use: Use, old: float, new: float, skipped: str) -> None:
    """The rules let another wall time of the schedule have the instant that was skipped."""
    use(old)
    world = World()
    world.deploy(flights({"tick": daily("0 5,6,7 * * *")}))
    pauses.skip(world.ports, full("tick"), parse_instant(f"2026-03-04T{6 - old:02d}:00:00Z"), "tester")
    play(world, Follower(), "02T12:30")
    use(new)
    for _ in range(2):
        Follower().step(world.ports)
    state = world.ports.rows.get(ScheduleState, full("tick"))
    assert [iso(at)[8:16] for at in state.skips] == [skipped]
    idle.pass_by(world, "3d")
    of_day = [nominal for nominal in nominals(world) if nominal.startswith("04T")]
    assert (len(of_day), skipped in of_day) == (2, False)


def test_l19_a_skip_of_another_zone_stays_where_it_is(use: Use) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily("0 5,6,7 * * *")}))
    instant = parse_instant("2026-03-04T14:00:00Z")
    pauses.skip(world.ports, full("tick"), instant, "tester")
    world.put("tick", at("", "notify", trigger=time("0 23 * * *", zone="Asia/Tokyo")))
    use(-7)
    Follower().step(world.ports)
    assert world.ports.rows.get(ScheduleState, full("tick")).skips == (instant,)


def test_t2_zones_whose_rules_stay_the_same_are_not_written(use: Use) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily(), "tokyo": at("", "notify", trigger=time("0 6 * * *", zone="Asia/Tokyo"))}))
    before = world.ports.rows.get(Timer, full("tokyo"))
    use(-7)
    Follower().step(world.ports)
    assert world.ports.rows.get(Timer, full("tokyo")) == before
    assert world.ports.rows.get(Timer, full("tick")).rules == "2026-7"


def test_t2_a_pass_goes_on_where_it_stopped(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAGE", 5)
    monkeypatch.setattr(following, "MAX_STEP", -1)  # one page in each tick
    use(-8)
    world = World(wake_shards=2)
    world.deploy(flights({f"s{number:02d}": daily() for number in range(23)}))
    use(-7)
    ticks = 0
    while any(world.ports.rows.get(Timer, full(f"s{number:02d}")).rules != "2026-7" for number in range(23)):
        Follower().step(world.ports)  # each tick is another process
        ticks += 1
    assert 3 < ticks < 15


def test_t2_a_second_pass_finds_what_code_of_before_wrote(use: Use) -> None:
    """While a deployment goes on, a Lambda of before stores an instant by the old rules behind the first pass."""
    use(-8)
    world, follower = World(), Follower()
    world.deploy(flights({"tick": daily("0 18 * * *")}))
    old = world.ports.rows.get(Timer, full("tick"))
    use(-7)
    follower.step(world.ports)
    world.ports.ledger.put_all([Put(old)])
    world.clock.pass_by("10m")
    follower.step(world.ports)
    assert (world.ports.rows.get(Timer, full("tick")).next, follower.is_done) == (old.next, False)
    world.clock.pass_by("11m")
    follower.step(world.ports)
    assert world.ports.rows.get(Timer, full("tick")).next == {"0": old.next["0"] - HOUR}
    assert follower.is_done


def test_t2_once_all_follow_a_tick_reads_nothing(use: Use) -> None:
    use(-8)
    world, follower = World(), Follower()
    world.deploy(flights({"tick": daily("0 18 * * *")}))
    follower.step(world.ports)
    world.clock.pass_by("21m")
    follower.step(world.ports)
    assert follower.is_done
    assert follower.step(replace(world.ports, rows=None, catalog=None, wakes=None)) == 0
    another, row = Follower(), world.ports.rows.get(ZoneRules)
    assert (another.step(replace(world.ports, wakes=None)), another.is_done) == (0, True), "one read for each process"
    assert (row.version, row.done) == ("2026-8", True)


def test_t2_a_version_that_is_rolled_back_is_followed_too(use: Use) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily("0 18 * * *")}))
    before = world.ports.rows.get(Timer, full("tick")).next
    for offset, hours in ((-7, 1), (-8, 0)):
        use(offset)
        Follower().step(world.ports)
        assert world.ports.rows.get(Timer, full("tick")).next == {"0": before["0"] - hours * HOUR}


def test_t2_one_timer_that_fails_does_not_stop_the_others(use: Use) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"bad": daily(), "tick": daily()}))
    version = world.ports.rows.get(Version, full("bad"), 1)
    world.ports.ledger.put_all([Put(replace(version, definition={"no": "schedule"}))])
    use(-7)
    Follower().step(world.ports)
    assert world.ports.rows.get(Timer, full("tick")).rules == "2026-7"


@pytest.mark.parametrize("mode", ["hold", "backlog", "drain"])
def test_t2_a_paused_schedule_follows(use: Use, mode: str) -> None:
    use(-8)
    world = World()
    world.deploy(flights({"tick": daily("0 18 * * *")}))
    world.pause("tick", mode)
    use(-7)
    Follower().step(world.ports)
    world.resume("tick")
    world.pass_by("14h")
    assert nominals(world) == ["03T01:00"]
