"""New partitions start work, each counted once (T7), as soon as they are ready (T8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import HOUR
from chalicelib.flow.ingest import objects
from tests.acceptance.words import concurrency, day, days, doze, kinds, on, partition
from tests.support.schedules import after, partitions
from tests.support.world import World, flights

FOLDER = "raw/delivery/day=1/"


def test_t7_n_new_partitions_start_a_run_and_gathering_restarts(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    for number in range(1, 6):
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1s")

    assert [days(world, run) for run in world.runs("daily")] == [["1", "2"], ["3", "4"]]
    assert world.jobs("daily")[0].leaves["0"].count == 1


def test_t7_a_partition_reported_or_uploaded_twice_counts_once(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, dataset="weather")}))
    for name in ("a.csv", "b.csv", "a.csv", "c.csv"):
        world.upload(day(1, "weather", name))
    world.settle()
    assert world.jobs("daily")[0].leaves["0"].count == 1

    doze(world, "1h")
    world.upload(day(1, "weather", "a.csv"))
    world.upload(day(2, "weather", "a.csv"))
    world.settle()
    world.upload(day(1, "weather", "late.csv"))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1", "2"]]
    assert world.jobs("daily") == []


def test_t7_after_an_abort_a_schedule_gathers_again(world: World) -> None:
    world.deploy(flights({"daily": on(partition(count=2), "clean", concurrency(1, "abort"))}))
    for number in range(1, 5):
        world.upload(day(number))
        world.settle()
    assert kinds(world, "daily") == ["ABORTED"]

    world.finish()
    world.upload(day(5))
    world.settle()
    assert len(world.runs("daily")) == 1
    world.upload(day(6))
    world.settle()
    assert sorted(days(world, run) for run in world.runs("daily")) == [["1", "2"], ["5", "6"]]


def test_t7_after_a_timeout_a_schedule_gathers_again(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout={"after": "1h", "then": "abort"})}))
    world.upload(day(1))
    doze(world, "1h")
    assert kinds(world, "daily") == ["ABORTED"]

    world.upload(day(2))
    world.settle()
    assert world.runs("daily") == []
    world.upload(day(3))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["2", "3"]]


@pytest.mark.parametrize("change", ["update", "disable and enable"])
def test_t7_after_an_update_or_enable_a_schedule_gathers_again(world: World, change: str) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1s")
    if change == "update":
        world.put("daily", partitions(2, properties={"version": 2}, on_update="drop"))
    else:
        world.disable("daily")
        world.enable("daily")
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    assert world.runs("daily") == []
    world.upload(day(3))
    world.settle()

    assert [days(world, run) for run in world.runs("daily")] == [["2", "3"]]
    assert kinds(world, "daily") == ["DROPPED"]


def test_t7_a_partition_registered_without_object_counts_equally(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    found = world.ports.catalog.dataset_of("lake-bucket", day(1))
    assert found is not None
    values = {"partition": {"year": "2013", "month": "01", "day": "1"}}
    for _ in range(2):
        objects.register_values(world.ports, *found, values)
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1", "2"]]


def test_t7_thousands_of_partitions_reach_the_run_by_a_manifest(make_world: Callable[..., World]) -> None:
    world = make_world(inline_events=10)
    world.deploy(flights({"daily": partitions(25)}))
    for number in range(1, 26):
        world.upload(day(number))
    world.settle()

    [run] = world.runs("daily")
    context = world.context(run)
    assert context["events"] == []
    assert context["manifest"] == f"s3://control/manifests/{run.run_id}.jsonl"
    listed = world.payloads.manifests[run.run_id]
    assert sorted(int(event["partition"]["day"]) for event in listed) == list(range(1, 26))


def test_t8_partition_is_ready_at_its_flag_not_its_first_object(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    assert "not ready" in world.upload(day(1, name="part-00000.parquet"))
    assert "not ready" in world.upload(day(1, name="_temporary/0/part-00000.parquet"))
    world.settle()
    assert world.runs("daily") == []
    assert "is ready" in world.upload(day(1))


def test_t8_without_a_rule_the_first_object_with_data_is_ready(world: World) -> None:
    world.deploy(flights({"daily": partitions(dataset="weather")}))
    assert "not ready" in world.upload(day(1, "weather", "_temporary/part-0.csv"))
    assert "is ready" in world.upload(day(1, "weather", "part-0.csv"))
    world.settle()
    assert len(world.runs("daily")) == 1


def test_t8_a_manifest_that_comes_last_finds_all_its_objects(world: World) -> None:
    world.deploy(_delivery())
    for name in ("a.csv", "b.csv"):
        assert "not ready" in world.upload(FOLDER + name)
    world.settle()
    assert world.runs("daily") == []

    assert "is ready" in world.upload(FOLDER + "MANIFEST", text="a.csv\nb.csv\n")
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"]]


@pytest.mark.parametrize(
    "manifest",
    [
        "a.csv\nb.csv",
        json.dumps(["a.csv", f"s3://lake-bucket/{FOLDER}b.csv"]),
        json.dumps({"entries": [{"url": f"s3://lake-bucket/{FOLDER}{name}"} for name in ("a.csv", "b.csv")]}),
        json.dumps({"files": ["a.csv", "b.csv"]}),
    ],
    ids=["lines", "json with full names", "entries with urls", "files"],
)
def test_t8_manifest_that_comes_first_waits_for_its_last_object(world: World, manifest: str) -> None:
    world.deploy(_delivery())
    assert "not ready" in world.upload(FOLDER + "MANIFEST", text=manifest)
    assert "not ready" in world.upload(FOLDER + "unlisted.csv")
    assert "not ready" in world.upload(FOLDER + "a.csv")
    world.settle()
    assert world.runs("daily") == []

    assert "is ready" in world.upload(FOLDER + "b.csv")
    world.upload(FOLDER + "later.csv")
    world.settle()
    assert len(world.runs("daily")) == 1


def test_t8_a_bad_manifest_is_not_ready_until_it_is_corrected(world: World) -> None:
    world.deploy(_delivery())
    world.upload(FOLDER + "a.csv")
    assert "not ready" in world.upload(FOLDER + "MANIFEST", text='{"rows": 12}')
    assert "not ready" in world.upload(FOLDER + "b.csv")
    world.settle()
    assert world.runs("daily") == []

    assert "is ready" in world.upload(FOLDER + "MANIFEST", text='["a.csv", "b.csv"]')
    world.settle()
    assert len(world.runs("daily")) == 1


def _delivery() -> dict[str, Any]:
    app = flights({"daily": partitions(dataset="delivery")})
    ready = {"manifest": "MANIFEST"}
    app["datasets"]["delivery"] = {"bucket": "lake", "prefix": "raw/delivery/", "keys": ["day"], "ready": ready}
    return app


def again(schedules: dict[str, Any], **ready: str) -> dict[str, Any]:
    """The app of flights, whose days may be written again."""
    document = flights(schedules)
    document["datasets"]["flights"] |= {"ready": ready or {"done_flag": "_SUCCESS"}, "rewritten": "again"}
    return document


def test_t22_a_day_written_again_runs_again_with_downstream(world: World) -> None:
    keys = ["year", "month", "day"]
    world.deploy(again({"daily": partitions(by=keys), "next": after("clean", "join", by=keys)}))
    for _ in range(2):
        world.upload(day(1))
        world.settle()
        for _ in range(2):
            world.finish()
            world.settle()
        world.clock.pass_by("1h")

    first, second = world.runs("daily")
    assert first.correlation == second.correlation == {"year": "2013", "month": "01", "day": "1"}
    assert world.context(second)["events"][0]["path"] == "s3://lake-bucket/raw/flights/year=2013/month=01/day=1/"
    assert len(world.runs("next")) == 2


def test_t22_a_repeated_or_late_notification_counts_once(world: World) -> None:
    world.deploy(again({"daily": partitions(9)}))
    written = [world.clock.now() + hour * HOUR for hour in (0, 1, 2)]
    world.clock.pass_by("3h")

    def notice(at: int) -> None:
        objects.match_object(world.ports, ObjectCreated("lake-bucket", day(1), at))

    for at in (written[1], written[1], written[0], written[2], written[2], written[1]):
        notice(at)
    assert world.jobs("daily")[0].leaves["0"].count == 2, "the first one seen, and the one after it"


def test_t22_by_default_a_day_written_again_is_ignored(world: World) -> None:
    world.deploy(flights({"daily": partitions(9)}))
    for _ in range(2):
        world.upload(day(1))
        world.clock.pass_by("1h")
    assert world.jobs("daily")[0].leaves["0"].count == 1


def test_t22_only_the_manifest_says_that_a_day_is_written_again(world: World) -> None:
    world.deploy(again({"daily": partitions(9)}, manifest="files.json"))
    for name in ("a.csv", "files.json", "a.csv", "files.json"):
        world.upload(day(1, name=name), text=json.dumps(["a.csv"]))
        world.clock.pass_by("1h")
    assert world.jobs("daily")[0].leaves["0"].count == 2


def test_t22_an_object_alone_is_not_a_day_written_again(world: World) -> None:
    """Nothing ends the writing of such a day but the run that registers it (L22)."""
    document = again({"daily": partitions(9)})
    document["datasets"]["flights"]["ready"] = {}
    world.deploy(document)
    for etag in ("a", "b"):
        world.upload(day(1, name="a.csv"), etag=etag)
        world.clock.pass_by("1h")
    assert world.jobs("daily")[0].leaves["0"].count == 1


def test_t22_a_table_is_not_written_again() -> None:
    table = {"bucket": "lake", "prefix": "raw/x/", "format": "iceberg", "rewritten": "again"}
    with pytest.raises(ValidationError, match="rewritten only with format: files"):
        Dataset.model_validate(table)
