"""The user stories of docs/requirements.md."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.rows.definition import Definition
from chalicelib.core.schedules import lifecycle
from chalicelib.core.writes import Put
from tests.acceptance.words import (
    all_of,
    any_of,
    day,
    days,
    doze,
    doze_until,
    elapsed,
    on,
    partition,
    quiet,
    since_last_run,
    size,
    started_at,
    states,
    status,
    why,
    why_schedule,
    window,
)
from tests.support.clock import NOON
from tests.support.schedules import after, partitions
from tests.support.world import SQS, World, flights, full

MANY = 2_000
ZONES = ("UTC", "Europe/Paris", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe")


def test_story_1() -> None:
    """Thousands of workflows at fixed times, each in its own zone: each fires at its minute, once.

    Their rows are written as separate deployments would have left them.
    """
    world = World(wake_shards=1)
    due = {f"s{number:04d}": NOON + (1 + number % 4) * MINUTE for number in range(MANY)}
    for number, (name, instant) in enumerate(due.items()):
        _deployed(world, name, instant, ZONES[number % len(ZONES)])

    world.tick()
    world.pass_by("5m")

    assert len(world.targets.queue.messages) == MANY
    answer = [context for _, context in world.targets.queue.messages]
    assert {context["schedule"]: context["logical_start_time"] for context in answer} == {
        full(name): instant for name, instant in due.items()
    }
    for name in list(due)[::100]:
        [run] = world.runs(name)
        assert (run.start_requested_at, run.state) == (due[name], "SUCCEEDED")


def test_story_3(world: World) -> None:
    """Run only when the daily feed arrives: not on a day without it, not for half of it, and only once for it."""
    world.deploy(flights({"daily": partitions()}))
    doze(world, "1d")
    assert world.runs("daily") == []
    assert why_schedule(world, "daily")["why"] == "no partition has arrived yet; trigger: 1 partition of demo.flights"

    world.upload(day(1, name="part-0.parquet"))
    world.settle()
    assert world.runs("daily") == []
    world.upload(day(1))
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    assert days(world, run) == ["1"]

    doze(world, "1d")
    assert len(world.runs("daily")) == 1


def test_story_4(world: World) -> None:
    """B after A succeeded, not after A failed."""
    world.deploy(flights({"a": partitions(), "b": after("clean", "join")}))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "disk full")
    world.settle()
    assert world.runs("b") == []

    world.clock.pass_by("1s")
    world.upload(day(2))
    world.settle()
    world.finish("SUCCESS")
    world.settle()

    [run] = world.runs("b")
    assert world.context(run)["upstream"]["run_id"] == world.runs("a")[1].run_id


def test_story_7(world: World) -> None:
    """Daily between 22:00 and 06:00, and only if there is new data: one run a night that has some."""
    night = window("22:00", "06:00", zone="Europe/Paris")
    world.deploy(flights({"nightly": on(partition(), "clean", night, since_last_run("12h", on_unmet="wait"))}))
    world.upload(day(1))
    ten_in_paris = NOON + 9 * HOUR
    doze_until(world, ten_in_paris)
    assert started_at(world, "nightly") == ["2026-03-02T21:00:00.000Z"]
    world.finish()

    doze_until(world, ten_in_paris + DAY + HOUR)
    assert len(world.runs("nightly")) == 1

    doze_until(world, ten_in_paris + DAY + 12 * HOUR)
    world.upload(day(2))
    doze_until(world, ten_in_paris + 2 * DAY)
    assert started_at(world, "nightly")[1:] == ["2026-03-04T21:00:00.000Z"]
    assert world.records("nightly") == []


def test_story_8(world: World) -> None:
    """A join waits for all its inputs. When one is late, it runs after a time with the inputs that have arrived."""
    inputs = all_of(partition("flights"), partition("weather"), status("clean"))
    anyway = on(inputs, "join", timeout={"after": "6h", "then": "run"})
    world.deploy(flights({"join": anyway, "clean": partitions()}))
    for dataset in ("flights", "weather"):
        world.upload(day(1, dataset))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.finish()
    world.settle()
    [run] = world.runs("join")
    assert len(world.context(run)["events"]) == 3
    assert run.fired_by.text.startswith("trigger met")

    world.clock.pass_by("1m")
    world.upload(day(2, "weather", "a.csv"))
    world.settle()
    assert why(world, "join")["missing"] == ["1 partition of demo.flights", "demo.flights.clean to reach COMPLETED"]
    doze(world, "5h59m")
    assert len(world.runs("join")) == 1

    world.pass_by("1m")
    late = world.runs("join")[1]
    assert late.fired_by.text.startswith("run in spite of its timeout")
    assert late.claimed_at == NOON + 6 * HOUR + MINUTE
    assert days(world, late) == ["2"]


def test_story_9(world: World) -> None:
    """All N chunks have come, or none for D: whichever is first."""
    either = any_of(partition(count=4), quiet(partition(), "10m"))
    world.deploy(flights({"chunks": on(either)}))
    for number in (1, 2, 3, 4):
        world.upload(day(number))
    world.settle()
    assert [days(world, run) for run in world.runs("chunks")] == [["1", "2", "3", "4"]]

    begun = world.clock.now()
    for number in (5, 6, 7):
        world.upload(day(number))
        world.pass_by("9m")
    assert len(world.runs("chunks")) == 1
    world.pass_by("1m")
    run = world.runs("chunks")[1]
    assert days(world, run) == ["5", "6", "7"]
    assert run.claimed_at == begun + 28 * MINUTE


def test_story_10() -> None:
    """Frequent data: a run for each terabyte that has gathered, of files of 2 to 90 GB. No file is in two runs, none is
    left out, and the excess counts towards the next run.
    """
    gigabyte, terabyte = 10**9, 10**12
    world = World()
    world.deploy(flights({"bulk": on(size("1 TB"), coalesce=False)}))
    sizes = {f"part-{number:04d}.parquet": (2 + number * 37 % 89) * gigabyte for number in range(150)}
    for name, amount in sizes.items():
        world.upload(day(1, name=name), size=amount)
        world.settle()
        world.clock.pass_by("5m")

    gathered = [world.context(run)["events"] for run in world.runs("bulk")]
    taken = [event["path"].rpartition("/")[2] for events in gathered for event in events]
    assert taken == list(sizes)[: len(taken)]
    for events in gathered:
        amounts = [event["bytes"] for event in events]
        assert sum(amounts) >= terabyte > sum(amounts[:-1])
    left = sum(sizes.values()) - sum(sizes[name] for name in taken)
    assert left < terabyte
    assert why(world, "bulk")["missing"] == [f"{(terabyte - left) // gigabyte} GB of demo.flights"]


def test_story_11(world: World) -> None:
    """Every 4 hours, or as soon as 100 GB arrived."""
    world.deploy(flights({"load": on(any_of(size("100GB"), elapsed("4h")))}))
    world.upload(day(1, name="a.parquet"), size=40_000_000_000)
    doze(world, "4h")
    assert started_at(world, "load") == ["2026-03-02T16:00:00.000Z"]
    world.finish()

    doze(world, "1h")
    world.upload(day(1, name="b.parquet"), size=70_000_000_000)
    world.settle()
    assert len(world.runs("load")) == 1
    world.upload(day(1, name="c.parquet"), size=30_000_000_000)
    world.settle()
    assert started_at(world, "load")[1:] == ["2026-03-02T17:00:00.000Z"]
    world.finish()

    doze(world, "3h")
    assert len(world.runs("load")) == 2
    doze(world, "1h")
    assert started_at(world, "load")[2:] == ["2026-03-02T21:00:00.000Z"]
    assert states(world, "load") == ["SUCCEEDED", "SUCCEEDED", "STARTING"]


def _deployed(world: World, name: str, due: int, zone: str) -> None:
    """Deploy a workflow and a schedule that starts it at a wall time of every day in a zone."""
    wall = datetime.fromtimestamp(due // SECOND, ZoneInfo(zone))
    document: dict[str, Any] = {
        "workflow": name,
        "trigger": {"type": "time", "expression": f"{wall.minute} {wall.hour} * * *", "zone": zone},
    }
    schedule = Schedule.model_validate(document).resolved("demo", "flights")
    schedule_state, plan = lifecycle.put(full(name), schedule, None, None, True, world.clock.now(), "tester")
    workflow = Definition("workflow", full(name), {"target": SQS}, 1, world.clock.now(), "tester")
    rows = [row for write in plan if (row := getattr(write, "row", None)) is not None]
    world.ports.ledger.put_all([Put(row) for row in (workflow, schedule_state, *rows)])
