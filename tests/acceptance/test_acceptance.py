"""Acceptance scenarios, as they are told: each test reads like the requirement."""

from __future__ import annotations

from tests.support.schedules import after, at, at_most, partitions
from tests.support.world import World, day, flights


def test_acceptance_2(world: World) -> None:
    """Properties are runtime arguments; after an update by app deployment the next run has the new ones (L9)."""
    world.deploy(flights({"daily": partitions(properties={"mode": "fast"})}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1s")
    world.deploy(flights({"daily": partitions(properties={"mode": "thorough"})}))
    world.upload(day(2))
    world.settle()

    first, second = world.runs("daily")
    assert world.context(first)["properties"] == {"mode": "fast"}
    assert world.context(second)["properties"] == {"mode": "thorough"}


def test_acceptance_4(world: World) -> None:
    """Needs 5 partitions. 1 arrives; update with new properties; 4 more: no launch. 1 more: launch with the new ones.
    A duplicate notification of the first one, after the update, does not count."""
    world.deploy(flights({"daily": partitions(5, properties={"version": 1})}))
    world.upload(day(1))
    world.settle()

    world.clock.pass_by("1s")
    world.put("daily", partitions(5, properties={"version": 2}))
    world.upload(day(1))
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
    assert (record.kind, record.reason) == ("DROPPED", "the schedule was deleted")


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


def test_story_1(world: World) -> None:
    """Workflows at fixed times: each fires at its own minute, in its own zone, once."""
    paris = at("30 13 * * *", zone=None)
    paris["trigger"] = {"type": "time", "expression": "30 13 * * *", "zone": "Europe/Paris"}
    del paris["zone"]
    world.deploy(flights({"utc": at("15 12 * * *", "notify"), "paris": {**paris, "workflow": "notify"}}))

    world.pass_by("1h")

    fired = {name: [run.nominal_at for run in world.runs(name)] for name in ("utc", "paris")}
    noon = world.clock.now() - 3_600_000
    assert fired == {"utc": [noon + 15 * 60_000], "paris": [noon + 30 * 60_000]}


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
    assert len(world.runs("cleanup")) == 1


def test_c1_a_concurrency_constraint_aborts_on_record_by_default(world: World) -> None:
    world.deploy(flights({"daily": partitions(constraints=[{"type": "concurrency", "max": 1}])}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()

    assert len(world.runs("daily")) == 1
    [record] = world.records("daily")
    assert record.kind == "ABORTED"
    assert "1 of 1 in use" in record.reason


def test_w2_the_urgent_one_goes_first_and_a_late_comer_does_not_overtake(world: World) -> None:
    schedules = {
        name: partitions(dataset=dataset, by=["day"], priority=priority, **at_most(1))
        for name, dataset, priority in (("low", "flights", 2), ("high", "weather", 8))
    }
    world.deploy(flights(schedules))
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    order = [run.schedule.rpartition(".")[2] for run in world.runs("low")]
    assert order == ["low"]

    started = []
    for _ in range(3):
        world.finish()
        world.settle()
        live = [run.name for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]
        started += [name.split(".")[2] for name in live]

    assert started == ["high", "low"]


def test_c10_a_job_that_is_not_launched_in_time_is_aborted_with_its_reason(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout={"after": "1h", "then": "abort"})}))
    world.upload(day(1))
    world.settle()

    world.pass_by("1h2m")

    assert world.jobs("daily") == []
    [record] = world.records("daily")
    assert record.kind == "ABORTED"
    assert "timeout of 1h" in record.reason
    assert "1 partition of demo.flights" in record.reason


def test_c10_a_timeout_may_run_it_anyway_but_never_past_a_limit(world: World) -> None:
    anyway = partitions(2, timeout={"after": "1h", "then": "run"}, **at_most(1, "abort"))
    world.deploy(flights({"daily": anyway, "other": partitions(dataset="weather", by=["day"])}))
    world.upload(day(1, "weather", "x.csv"))
    world.upload(day(1))
    world.settle()

    world.pass_by("1h2m")
    assert world.runs("daily") == []
    assert [job.state for job in world.jobs("daily")] == ["PENDING_LAUNCH"]

    world.finish()
    world.settle()
    [run] = world.runs("daily")
    assert "timeout" in run.fired_by


def test_l3_events_while_disabled_are_ignored_and_only_later_ones_count(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.disable("daily")
    world.upload(day(2))
    world.clock.pass_by("1s")
    world.enable("daily")
    world.upload(day(3))
    world.settle()
    assert world.runs("daily") == []

    world.upload(day(4))
    world.settle()

    [run] = world.runs("daily")
    assert [event["partition"]["day"] for event in world.context(run)["events"]] == ["3", "4"]


def test_t7_thousands_of_partitions_reach_the_run_through_a_manifest(make_world: object) -> None:
    world: World = make_world(inline_events=10)  # type: ignore[operator]
    world.deploy(flights({"daily": partitions(25)}))
    for number in range(1, 26):
        world.upload(day(number))
    world.settle()

    [run] = world.runs("daily")
    context = world.context(run)
    assert context["events"] == []
    listed = world.payloads.manifests[run.run_id]
    assert sorted(int(event["partition"]["day"]) for event in listed) == list(range(1, 26))


def test_t8_a_partition_is_ready_at_its_flag_not_at_its_first_object(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    assert "not ready" in world.upload(day(1, name="part-00000.parquet"))
    assert "not ready" in world.upload(day(1, name="_temporary/0/part-00000.parquet"))
    world.settle()
    assert world.runs("daily") == []
    assert "is ready" in world.upload(day(1))


def test_t16_a_duplicate_and_a_reordered_notification_count_once(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, dataset="weather")}))
    first, second = day(1, "weather", "a.csv"), day(1, "weather", "b.csv")
    for key in (second, first, first, second):
        world.upload(key)
    world.settle()
    [job] = world.jobs("daily")
    assert job.leaves["0"].count == 1

    world.upload(day(2, "weather", "a.csv"))
    world.settle()
    assert len(world.runs("daily")) == 1
