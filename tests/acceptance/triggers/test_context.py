"""The run gets what fired it (T17): exactly the events of its job, and through them the upstream's own."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.core.instants import MINUTE
from tests.acceptance.words import all_of, day, days, delay, event, on, partition, quiet, size, time
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.schedules import BY_DAY, after, at, partitions
from tests.support.world import World, flights


def test_t17_a_fire_context_has_its_nominal_time_and_schedule(world: World) -> None:
    world.deploy(flights({"tick": at("*/10 * * * *", "notify")}))
    world.pass_by("10m")
    [(_, answer)] = world.targets.queue.messages
    assert answer["logical_start_time"] == NOON + 10 * MINUTE
    assert (answer["schedule"], answer["workflow"]) == ("demo.flights.tick", "demo.flights.notify")
    assert [event["kind"] for event in answer["events"]] == ["time"]


def test_t17_upstream_run_and_partitions_reach_downstream_runs(world: World) -> None:
    world.deploy(flights({"a": partitions(by=BY_DAY), "b": after("clean", "join")}))
    world.upload(day(7))
    world.settle()
    world.finish()
    world.settle()

    [upstream], [run] = world.runs("a"), world.runs("b")
    answer = world.context(run)
    [fired] = answer["events"]
    assert (fired["run_id"], fired["status"], fired["partition"]["day"]) == (upstream.run_id, "COMPLETED", "7")
    assert answer["upstream"]["run_id"] == upstream.run_id
    assert answer["upstream"]["events"][0]["path"] == "s3://lake-bucket/raw/flights/year=2013/month=01/day=7/"


def test_t17_events_join_a_waiting_job_but_not_a_claimed_run(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", delay("1m", since="met"))}))
    world.upload(day(1))
    world.pass_by("30s")
    world.upload(day(2))
    world.pass_by("30s")
    world.upload(day(3))
    world.pass_by("1m")
    assert [days(world, run) for run in world.runs("daily")] == [["1", "2"], ["3"]]


def test_t17_run_of_bytes_gets_its_objects_and_their_partitions(world: World) -> None:
    world.deploy(flights({"bulk": on(size("5 MB"))}))
    for number in (1, 2, 3):
        world.upload(day(number, name="part-0.parquet"), size=3_000_000)
        world.settle()

    [run] = world.runs("bulk")
    answer = world.context(run)["events"]
    assert [(event["kind"], event["dataset"], event["bytes"]) for event in answer] == [
        ("size", "demo.flights", 3_000_000),
        ("size", "demo.flights", 3_000_000),
    ]
    assert [event["partition"]["day"] for event in answer] == ["1", "2"]
    assert answer[0]["path"] == "s3://lake-bucket/raw/flights/year=2013/month=01/day=1/part-0.parquet"


def test_t17_run_of_custom_events_gets_their_types_and_payloads(world: World) -> None:
    world.deploy(flights({"audit": on(event("order.closed", count=2))}))
    for number in (1, 2, 3):
        world.post("order.closed", number=number)
        world.clock.pass_by("1s")
        world.settle()

    [run] = world.runs("audit")
    answer = world.context(run)["events"]
    assert [(event["kind"], event["type"], event["payload"]) for event in answer] == [
        ("event", "order.closed", {"number": 1}),
        ("event", "order.closed", {"number": 2}),
    ]


def test_t17_a_run_of_a_quiet_gets_what_came_before_the_quiet(world: World) -> None:
    world.deploy(flights({"chunks": on(quiet(partition(), "5m"))}))
    world.upload(day(1))
    world.pass_by("2m")
    world.upload(day(2))
    world.pass_by("5m")
    world.upload(day(3))
    world.pass_by("5m")
    assert [days(world, run) for run in world.runs("chunks")] == [["1", "2"], ["3"]]


def test_t17_a_long_list_of_any_kind_is_in_a_manifest(make_world: Callable[..., World]) -> None:
    world = make_world(inline_events=3)
    world.deploy(flights({"bulk": on(size("10 MB")), "audit": on(event("order.closed", count=3))}))
    for number in range(5):
        world.upload(day(1, name=f"part-{number}.parquet"), size=2_000_000)
        world.post("order.closed")
        world.settle()

    [bulk] = world.runs("bulk")
    answer = world.context(bulk)
    assert (answer["events"], answer["manifest"]) == ([], f"s3://control/manifests/{bulk.run_id}.jsonl")
    assert len(world.payloads.manifests[bulk.run_id]) == 5
    assert len(views.events_view(world.ports, bulk)) == 5
    [audit] = world.runs("audit")
    assert (len(world.context(audit)["events"]), world.context(audit)["manifest"]) == (3, None)


def test_t17_a_run_gets_events_of_mixed_trigger_in_arrival_order(world: World) -> None:
    world.deploy(flights({"mixed": on(all_of(event("go"), partition(), size("1 MB", "weather"), time("@every 10m")))}))
    world.upload(day(1, "weather", "a.csv"), size=1_000_000)
    world.pass_by("1m")
    world.upload(day(1))
    world.pass_by("1m")
    world.post("go")
    world.pass_by("8m")
    [run] = world.runs("mixed")
    assert [event["kind"] for event in world.context(run)["events"]] == ["size", "partition", "event", "time"]
    assert world.context(run)["logical_start_time"] == NOON + 10 * MINUTE
