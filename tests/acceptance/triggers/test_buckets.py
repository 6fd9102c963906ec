"""Datasets on existing buckets: EventBridge reports their objects, and these count as in the lake (T20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.aws.s3.notifications import objects_of
from chalicelib.flow.ingest.objects import match_object
from tests.acceptance.words import day, days, on, size
from tests.support import s3_notifications as reported
from tests.support.schedules import partitions
from tests.support.world import World, flights

LANDING = "acme-landing"
PART = day(1, "weather", "part-0.csv")
BOTH_WAYS: dict[str, Callable[..., str]] = {
    "by S3": lambda *args, **kwargs: reported.by_s3(reported.record(*args, **kwargs)),
    "by EventBridge": reported.by_event_bridge,
}


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(wake_shards=1, history_shards=1, watched_buckets=(LANDING,))


def on_landing(schedules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The flights' app with its datasets on a bucket that does not belong to the installation."""
    app = flights(schedules)
    app["datasets"] = {name: {**each, "bucket": LANDING, **fields} for name, each in app["datasets"].items()}
    return app


def arrive(world: World, body: str) -> list[str]:
    """A message about new objects reaches the queue."""
    done = [match_object(world.ports, created) for created in objects_of(body)]
    world.settle()
    return done


def test_t20_an_object_in_a_watched_bucket_starts_a_run(world: World) -> None:
    world.deploy(on_landing({"daily": partitions(dataset="weather")}))
    assert arrive(world, reported.by_event_bridge(LANDING, PART)) == ["partition 2013/01/1 of demo.weather is ready"]

    [run] = world.runs("daily")
    assert days(world, run) == ["1"]
    assert world.context(run)["events"][0]["path"] == f"s3://{LANDING}/raw/weather/year=2013/month=01/day=1/"


@pytest.mark.parametrize("first", BOTH_WAYS)
@pytest.mark.parametrize("again", BOTH_WAYS)
@pytest.mark.parametrize("name", ["part-0.csv", "part 0+1%20 ü.csv"])
def test_t20_an_object_reported_twice_counts_once_by_any_path(world: World, first: str, again: str, name: str) -> None:
    world.deploy(on_landing({"daily": partitions(2, dataset="weather"), "bulk": on(size("20 B", "weather"))}))
    for way in (first, again):
        arrive(world, BOTH_WAYS[way](LANDING, day(1, "weather", name), size=12))

    assert world.jobs("daily")[0].leaves["0"].count == 1
    assert (world.jobs("bulk")[0].leaves["0"].count, world.jobs("bulk")[0].leaves["0"].amount) == (1, 12)
    assert world.runs("daily") == world.runs("bulk") == []


def test_t20_a_partition_of_odd_letters_is_equal_in_both_formats(world: World) -> None:
    world.deploy(on_landing({"daily": partitions(3, dataset="weather")}))
    for odd in ("1+2", "1 of 2", "50%", "Zürich"):
        for way in BOTH_WAYS.values():
            arrive(world, way(LANDING, f"raw/weather/year=2013/month=01/day={odd}/a"))

    [run] = world.runs("daily")
    assert {event["partition"]["day"] for event in world.context(run)["events"]} == {"1+2", "1 of 2", "50%"}
    assert world.jobs("daily")[0].leaves["0"].count == 1


@pytest.mark.parametrize("how", [reported.COPY, reported.PARTS], ids=["copied", "uploaded in parts"])
def test_t20_an_object_not_simply_put_counts_once_by_its_etag(world: World, how: tuple[str, str]) -> None:
    world.deploy(on_landing({"bulk": on(size("20 B", "weather"))}, count_overwrites=True))
    for way in BOTH_WAYS.values():
        arrive(world, way(LANDING, PART, size=6, etag="9b2cf535f27731c974343645a3985328-2", how=how))
    assert world.jobs("bulk")[0].leaves["0"].amount == 6

    arrive(world, reported.by_event_bridge(LANDING, PART, size=7, etag="another", how=how))
    assert world.jobs("bulk")[0].leaves["0"].amount == 13


def test_t20_a_manifest_in_a_watched_bucket_is_read_from_there(world: World) -> None:
    world.deploy(on_landing({"daily": partitions(dataset="weather")}, ready={"manifest": "MANIFEST"}))
    folder = day(1, "weather", "")
    world.lake.objects[LANDING, folder + "MANIFEST"] = "a.csv\n"
    world.lake.objects["lake-bucket", folder + "a.csv"] = ""
    assert "not ready" in arrive(world, reported.by_event_bridge(LANDING, folder + "MANIFEST"))[0]

    world.lake.objects[LANDING, folder + "a.csv"] = ""
    assert "is ready" in arrive(world, reported.by_event_bridge(LANDING, folder + "a.csv"))[0]


def test_t20_an_equal_key_in_another_bucket_is_not_of_dataset(world: World) -> None:
    world.deploy(on_landing({"daily": partitions(dataset="weather")}))
    assert arrive(world, reported.by_event_bridge("acme-other", PART)) == ["no dataset has this prefix"]
    assert world.runs("daily") == []
