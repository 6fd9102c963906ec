"""The recipes of docs/requirements.md, each as a user would write it."""

from __future__ import annotations

from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.acceptance.words import (
    concurrency,
    day,
    days,
    delay,
    doze,
    doze_until,
    kinds,
    on,
    partition,
    reasons,
    since_last_run,
    started_at,
    time,
    why,
    window,
)
from tests.support.clock import NOON
from tests.support.schedules import after, partitions
from tests.support.world import EMR, World, flights

TEN_AT_NIGHT = NOON + 10 * HOUR


def test_guide_1(world: World) -> None:
    """On new data, but only at night: data of the day waits, data of the night runs at once."""
    world.deploy(flights({"nightly": on(partition(), "clean", window("22:00", "06:00"))}))
    world.upload(day(1))
    world.settle()
    assert why(world, "nightly")["why"].endswith("not before 2026-03-02T22:00:00.000Z")

    doze_until(world, TEN_AT_NIGHT)
    assert started_at(world, "nightly") == ["2026-03-02T22:00:00.000Z"]

    doze(world, "1h30m")
    world.upload(day(2))
    world.settle()
    assert started_at(world, "nightly")[1:] == ["2026-03-02T23:30:00.000Z"]


def test_guide_2(world: World) -> None:
    """On new data, once per window: data after the night's run waits for the next night, and is not lost."""
    once = on(partition(), "clean", window("22:00", "06:00"), since_last_run("12h", of="any", on_unmet="wait"))
    world.deploy(flights({"nightly": once}))
    for number in (1, 2):
        world.upload(day(number))
    doze_until(world, TEN_AT_NIGHT)
    world.finish()

    doze(world, "1h")
    world.upload(day(3))
    world.settle()
    doze_until(world, NOON + 23 * HOUR)
    world.upload(day(4))
    doze_until(world, TEN_AT_NIGHT + DAY)

    assert started_at(world, "nightly") == ["2026-03-02T22:00:00.000Z", "2026-03-03T22:00:00.000Z"]
    assert [days(world, run) for run in world.runs("nightly")] == [["1", "2"], ["3", "4"]]
    assert world.records("nightly") == []


def test_guide_3(world: World) -> None:
    """Four partitions, and 15 min for late ones, which the same run gets."""
    world.deploy(flights({"batch": on(partition(count=4), "clean", delay("15m", since="met"))}))
    for number in (1, 2, 3):
        world.upload(day(number))
    doze(world, "40m")
    world.upload(day(4))
    doze(world, "10m")
    world.upload(day(5))
    world.pass_by("4m")
    world.upload(day(6))
    world.settle()
    assert world.runs("batch") == []

    world.pass_by("1m")
    [run] = world.runs("batch")
    assert run.claimed_at == NOON + 55 * MINUTE
    assert days(world, run) == ["1", "2", "3", "4", "5", "6"]

    world.upload(day(7))
    world.settle()
    assert world.jobs("batch")[0].state == "PENDING_TRIGGER"


def test_guide_4(world: World) -> None:
    """Clean up when another workflow fails; not when it succeeds, and not before its last attempt."""
    retried = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 2}}
    schedules = {"a": partitions(workflow="fragile"), "cleanup": after("fragile", "join", "FAILED")}
    world.deploy(flights(schedules, fragile=retried))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "first attempt")
    world.settle()
    assert world.runs("cleanup") == []

    world.pass_by("2m")
    world.finish("FAILED", "second attempt")
    world.settle()

    assert [run.state for run in world.runs("a")] == ["RETRYING", "FAILED"]
    [cleanup] = world.runs("cleanup")
    assert world.context(cleanup)["events"][0]["status"] == "FAILED"

    world.finish()
    world.clock.pass_by("1s")
    world.upload(day(2))
    world.settle()
    world.finish("SUCCESS")
    world.settle()
    assert len(world.runs("cleanup")) == 1


def test_guide_5(world: World) -> None:
    """At least hourly, by two schedules of one workflow: one starts it on new data, the other when an hour has passed
    without. Never two at a time, and the properties of each run name the schedule that started it.
    """
    one = concurrency(1)
    gap = since_last_run("1h", of="any", on_unmet="wait")
    by_time = on(time("@every 10m"), "clean", gap, one, properties={"mode": "catch up"})
    by_data = on(partition(), "clean", one, properties={"mode": "new data"})
    document = flights({"on_data": by_data, "hourly": by_time})
    document["workflows"]["clean"] = {"target": EMR, "properties": {"mode": "by hand", "output": "s3://out/"}}
    world.deploy(document)
    doze(world, "10m")
    assert started_at(world, "hourly") == ["2026-03-02T12:10:00.000Z"]
    world.finish()

    doze(world, "25m")
    world.upload(day(1))
    world.settle()
    world.finish()
    assert started_at(world, "on_data") == ["2026-03-02T12:35:00.000Z"]

    for _ in range(6):
        doze(world, "10m")
        world.finish()
    assert started_at(world, "hourly") == ["2026-03-02T12:10:00.000Z", "2026-03-02T13:35:00.000Z"]
    answer = {name: [world.context(run)["properties"] for run in world.runs(name)] for name in ("hourly", "on_data")}
    assert answer == {
        "hourly": [{"mode": "catch up", "output": "s3://out/"}] * 2,
        "on_data": [{"mode": "new data", "output": "s3://out/"}],
    }
    assert set(kinds(world, "hourly")) == {"COALESCED"}
    assert "which was still waiting" in reasons(world, "hourly")[0]

    world.upload(day(2))
    world.settle()
    assert len(world.runs("on_data")) == 2
    world.upload(day(3))
    world.settle()
    assert len(world.runs("on_data")) == 2, "the run before is still going"
    assert "1 of 1" in why(world, "on_data")["why"]
    world.finish()
    world.settle()
    assert len(world.runs("on_data")) == 3
