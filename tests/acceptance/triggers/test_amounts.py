"""At least so many bytes of new data (T9): an object counts once, an overwrite by default not."""

from __future__ import annotations

from typing import Any

from tests.acceptance.words import all_of, day, doze, on, partition, size, why
from tests.support.world import World, flights

PART = day(1, name="part-0.parquet")


def test_t9_each_time_enough_bytes_have_come_a_run_starts(world: World) -> None:
    world.deploy(flights({"bulk": on(size("10 MB"))}))
    for number, amount in enumerate((4_000_000, 4_000_000, 4_000_000, 9_999_999)):
        world.upload(day(1, name=f"part-{number}.parquet"), size=amount)
        world.settle()

    [run] = world.runs("bulk")
    assert len(world.context(run)["events"]) == 3
    assert "12 MB in 3 objects of demo.flights" in run.fired_by.text
    assert why(world, "bulk")["missing"] == ["1 B of demo.flights"]


def test_t9_object_counts_once_if_reported_again_or_overwritten(world: World) -> None:
    world.deploy(flights({"bulk": on(size("10 MB"))}))
    world.upload(PART, size=6_000_000, etag="one")
    world.upload(PART, size=6_000_000, etag="one")
    world.upload(PART, size=9_000_000, etag="two")
    doze(world, "10m")

    assert world.runs("bulk") == []
    [job] = world.jobs("bulk")
    assert (job.leaves["0"].count, job.leaves["0"].amount) == (1, 6_000_000)


def test_t9_an_overwrite_counts_where_dataset_says_if_it_differs(world: World) -> None:
    world.deploy(_counting_overwrites({"bulk": on(size("20 MB"))}))
    world.upload(PART, size=6_000_000, etag="one")
    world.upload(PART, size=6_000_000, etag="one")
    world.upload(PART, size=9_000_000, etag="two")
    world.settle()
    assert world.jobs("bulk")[0].leaves["0"].amount == 15_000_000

    world.upload(PART, size=5_000_000, etag="three")
    world.settle()
    assert len(world.runs("bulk")) == 1


def test_t9_a_multipart_upload_reported_twice_counts_once(world: World) -> None:
    """Interleaving 8: CompleteMultipartUpload, delivered twice under one etag."""
    world.deploy(_counting_overwrites({"bulk": on(size("10 MB"))}))
    for _ in range(2):
        world.upload(PART, size=6_000_000, etag="9b2cf535f27731c974343645a3985328-2")
    world.settle()
    assert world.jobs("bulk")[0].leaves["0"].amount == 6_000_000
    assert world.runs("bulk") == []


def test_t9_bookkeeping_files_are_not_data(world: World) -> None:
    world.deploy(flights({"bulk": on(size("1 MB"))}))
    for name in ("_SUCCESS", "_temporary/part-0.parquet", ".part-0.crc", "hour=00_$folder$", "part-0.csv._COPYING_"):
        world.upload(day(1, name=name), size=2_000_000)
    world.settle()
    assert (world.runs("bulk"), world.jobs("bulk")) == ([], [])


def test_t9_an_empty_object_that_gets_content_counts_once(world: World) -> None:
    world.deploy(flights({"bulk": on(size("10 MB"))}))
    world.upload("raw/flights/year=2013/", size=0, etag="folder")
    world.upload(PART, size=0, etag="empty")
    world.settle()
    assert world.jobs("bulk") == []
    for _ in range(2):
        world.upload(PART, size=6_000_000, etag="full")
    world.settle()
    [job] = world.jobs("bulk")
    assert (job.leaves["0"].count, job.leaves["0"].amount) == (1, 6_000_000)


def test_t9_underscored_keys_are_no_bookkeeping(world: World) -> None:
    app = flights({"bulk": on(size("2 GB"))})
    app["datasets"]["flights"] = {"bucket": "lake", "prefix": "raw/flights/", "keys": ["_region", "_day"]}
    world.deploy(app)
    world.upload("raw/flights/_region=eu/_day=05/part-0.parquet", size=2_000_000_000)
    world.settle()
    [run] = world.runs("bulk")
    [event] = world.context(run)["events"]
    assert event["partition"] == {"_region": "eu", "_day": "05"}


def test_t9_only_objects_since_the_enabling_count(world: World) -> None:
    world.deploy(flights({"bulk": on(size("10 MB"))}))
    world.disable("bulk")
    world.upload(PART, size=8_000_000)
    world.clock.pass_by("1s")
    world.enable("bulk")
    world.upload(day(1, name="part-1.parquet"), size=8_000_000)
    world.settle()
    assert world.runs("bulk") == []

    world.upload(day(1, name="part-2.parquet"), size=8_000_000)
    world.settle()
    [run] = world.runs("bulk")
    assert len(world.context(run)["events"]) == 2


def test_t9_one_object_may_be_bytes_here_and_a_flag_there(world: World) -> None:
    world.deploy(flights({"both": on(all_of(size("5 MB"), partition()))}))
    world.upload(PART, size=6_000_000)
    world.settle()
    assert why(world, "both")["missing"] == ["1 partition of demo.flights"]
    world.upload(day(1))
    world.settle()
    [run] = world.runs("both")
    assert sorted(event["kind"] for event in world.context(run)["events"]) == ["partition", "size"]


def _counting_overwrites(schedules: dict[str, Any]) -> dict[str, Any]:
    app = flights(schedules)
    app["datasets"]["flights"]["count_overwrites"] = True
    return app
