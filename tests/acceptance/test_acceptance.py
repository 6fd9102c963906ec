"""The acceptance scenarios of docs/requirements.md, in its words: one pipeline at a time."""

from __future__ import annotations

from chalicelib.core.definitions.app import App
from chalicelib.core.instants import HOUR
from chalicelib.flow.deploy import deploy
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
    why,
    why_schedule,
    window,
)
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import EMR, World, flights


def test_acceptance_1(world: World) -> None:
    """Any new partition triggers, minimum interval 5 min between runs (C4); five partitions over five minutes: only
    the first launches."""
    world.deploy(flights({"daily": on(partition(), "clean", since_last_run("5m"))}))
    for number in (1, 2, 3, 4, 5):
        world.upload(day(number))
        world.settle()
        world.pass_by("30s")
        world.finish()
        world.pass_by("30s")

    [run] = world.runs("daily")
    assert days(world, run) == ["1"]
    assert kinds(world, "daily") == ["ABORTED"] * 4
    answer = "5m since the last successful run started, else abort: not before 2026-03-02T12:05:00.000Z"
    assert set(reasons(world, "daily")) == {f"ABORTED: {answer}"}

    world.upload(day(6))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"], ["6"]]


def test_acceptance_2(world: World) -> None:
    """Properties are runtime arguments; after an update by app deployment the next run has the new ones (L9)."""
    clean = {"target": EMR, "properties": {"mode": "safe", "output": "s3://out/"}}
    world.deploy(flights({"daily": partitions(properties={"mode": "fast"})}, clean=clean))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1s")
    clean = {"target": EMR, "properties": {"mode": "safe", "output": "s3://new/"}}
    report = world.deploy(flights({"daily": partitions(properties={"mode": "thorough"})}, clean=clean))
    assert report["replaced"] == ["workflow demo.flights.clean", "schedule demo.flights.daily"]
    world.upload(day(2))
    world.settle()

    first, second = world.runs("daily")
    for run, answer in ((first, ("fast", "s3://out/")), (second, ("thorough", "s3://new/"))):
        expected = dict(zip(("mode", "output"), answer, strict=True))
        assert run.request.properties == expected
        assert world.context(run)["properties"] == expected, "which is what the job reads"


def test_acceptance_3(world: World) -> None:
    """Redeploy with different schedules: with ``update_schedules: false`` nothing changes; with ``true`` only the new
    set exists and fires."""
    old = flights({"kept": partitions(), "gone": partitions(dataset="weather")})
    new = flights({"kept": partitions(2), "come": at("@every 10m", "notify")})
    world.deploy(old)
    before = {name: why_schedule(world, name) for name in ("kept", "gone")}

    world.clock.pass_by("1s")
    _redeploy(world, new, update_schedules=False)
    assert world.ports.catalog.schedules("demo.flights", 10, None).items == ("demo.flights.gone", "demo.flights.kept")
    assert {name: why_schedule(world, name) for name in before} == before
    world.upload(day(1))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert (len(world.runs("kept")), len(world.runs("gone"))) == (1, 1)

    world.clock.pass_by("1s")
    _redeploy(world, new, update_schedules=True)
    assert world.ports.catalog.schedules("demo.flights", 10, None).items == ("demo.flights.come", "demo.flights.kept")
    world.upload(day(2))
    world.upload(day(2, "weather", "a.csv"))
    doze(world, "11m")
    assert (len(world.runs("kept")), len(world.runs("gone")), len(world.runs("come"))) == (1, 1, 1)
    world.upload(day(3))
    world.settle()
    assert [days(world, run) for run in world.runs("kept")] == [["1"], ["2", "3"]]


def test_acceptance_4(world: World) -> None:
    """Needs 5 partitions. 1 arrives; an update drops it; 4 more: no launch. 1 more: launch with the new ones.
    A duplicate notification of the first one, after the update, does not count."""
    world.deploy(flights({"daily": partitions(5, properties={"version": 1})}))
    world.upload(day(1))
    world.settle()

    world.clock.pass_by("1s")
    report = world.deploy(flights({"daily": partitions(5, properties={"version": 2}, on_update="drop")}))
    assert report["replaced"] == ["schedule demo.flights.daily"]
    world.upload(day(1))  # its notification comes a second time
    world.settle()
    assert world.jobs("daily") == [], "it is no progress of the new schedule"
    for number in (2, 3, 4, 5):
        world.upload(day(number))
    world.settle()
    assert world.runs("daily") == []

    world.upload(day(6))
    world.settle()

    [run] = world.runs("daily")
    context = world.context(run)
    assert context["properties"] == {"version": 2}
    assert sorted(event["partition"]["day"] for event in context["events"]) == ["2", "3", "4", "5", "6"]
    [dropped] = world.records("daily")
    assert dropped.kind == "DROPPED"


def test_acceptance_5(world: World) -> None:
    """Needs 5 and a 10 min delay; 5 arrive; updated to need 3 with 0.1 s delay; 3 arrive: launch with the new
    properties."""
    world.deploy(flights({"daily": on(partition(count=5), "clean", delay("10m"), properties={"version": 1})}))
    for number in (1, 2, 3, 4, 5):
        world.upload(day(number))
    world.settle()
    assert [job.state for job in world.jobs("daily")] == ["PENDING_CONSTRAINTS"]

    world.clock.pass_by("1m")
    world.put("daily", on(partition(count=3), "clean", delay("0.1s"), properties={"version": 2}))
    for number in (6, 7, 8):
        world.upload(day(number))
    world.settle()
    assert world.runs("daily") == []
    world.pass_by("100ms")

    [run] = world.runs("daily")
    assert world.context(run)["properties"] == {"version": 2}
    assert days(world, run) == ["6", "7", "8"]
    world.pass_by("10m")
    assert len(world.runs("daily")) == 1
    assert reasons(world, "daily") == ["DROPPED: the schedule was replaced or enabled again"]


def test_acceptance_6(world: World) -> None:
    """Needs 5; 4 arrive; deleted; 1 more: no launch."""
    world.deploy(flights({"daily": partitions(5)}))
    for number in (1, 2, 3, 4):
        world.upload(day(number))
    world.settle()

    world.delete("daily")
    world.upload(day(5))
    world.pass_by("10m")

    assert world.runs("daily") == []
    assert world.targets.emr.calls == []
    [record] = world.records("daily")
    assert (record.kind, record.reason.text) == ("DROPPED", "the schedule was deleted")


def test_acceptance_7(world: World) -> None:
    """Needs 5 and a 40 s delay; 5 arrive; deleted 500 ms before the delay ends: no launch."""
    world.deploy(flights({"daily": on(partition(count=5), "clean", delay("40s", since="met"))}))
    for number in (1, 2, 3, 4, 5):
        world.upload(day(number))
    world.settle()
    assert why(world, "daily")["constraints"][0]["until"] == "2026-03-02T12:00:40.000Z"

    world.pass_by("39s")
    world.pass_by("500ms")
    world.delete("daily")
    world.pass_by("10m")

    assert world.runs("daily") == []
    assert world.targets.emr.calls == []
    assert reasons(world, "daily") == ["DROPPED: the schedule was deleted"]


def test_acceptance_8(world: World) -> None:
    """A trigger and several constraints: launch only when all hold."""
    careful = on(partition(count=2), "clean", delay("10m", since="met"), window("14:00", "18:00"), concurrency(1))
    world.deploy(flights({"daily": careful, "other": partitions(dataset="weather", by=["day"])}))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert len(world.runs("other")) == 1

    world.upload(day(1))
    world.pass_by("1m")
    assert world.jobs("daily")[0].state == "PENDING_TRIGGER"

    world.upload(day(2))
    world.settle()
    assert [met["met"] for met in why(world, "daily")["constraints"]] == [False, False, False]
    doze(world, "15m")
    assert [met["met"] for met in why(world, "daily")["constraints"]] == [True, False, False]
    doze_until(world, NOON + 2 * HOUR)
    assert [met["met"] for met in why(world, "daily")["constraints"]] == [True, True, False]
    assert world.runs("daily") == []

    world.finish()
    world.settle()
    [run] = world.runs("daily")
    assert run.claimed_at == NOON + 2 * HOUR
    assert days(world, run) == ["1", "2"]


def _redeploy(world: World, document: dict[str, object], update_schedules: bool) -> None:
    app = App.model_validate(document)
    deploy.deploy(world.ports, "demo", "flights", app, "tester", update_schedules=update_schedules)
