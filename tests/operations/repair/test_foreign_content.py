"""A repair reports what it cannot read of objects that others have written, and goes on (O4)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Partition
from chalicelib.ports import StoredObject
from sluice.operations.ports import Changed
from sluice.operations.repair.repair import Finding
from sluice.testing.memory import MemoryLake
from tests.support.iceberg_files import BUCKET, TABLE, after, file
from tests.support.repairs import changed, mended
from tests.support.schedules import after as after_run
from tests.support.schedules import at_most, partitions
from tests.support.world import World, flights

LIMIT = "workflow:demo.flights.clean"


class Denying(MemoryLake):
    """One bucket may not be listed, and one object may not be read."""

    bucket, key = "", ""

    def changed(self, bucket: str, prefix: str, since: Instant) -> Iterator[Changed]:
        if bucket == self.bucket:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not yours"}}, "ListObjectsV2")
        return changed(self, bucket, prefix, since)

    def stored(self, bucket: str, key: str, most: int) -> StoredObject | None:
        if key == self.key:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not yours"}}, "GetObject")
        return super().stored(bucket, key, most)


def restored() -> tuple[World, int]:
    """A world whose runs have started and ended since the tables of the catalog and the jobs were restored."""
    world = World()
    world.lake = Denying()
    world.ports = world.with_ports(lake=world.lake)
    document = flights({"daily": partitions(by=["day"], **at_most(2)), "next": after_run("clean", "join")})
    document["datasets"]["orders"] = TABLE
    listed = {"bucket": "lake", "prefix": "listed/", "keys": ["month"], "ready": {"manifest": "_MANIFEST"}}
    document["datasets"]["listed"] = listed
    world.deploy(document)
    world.clock.pass_by("5m")
    before, since = world.tables.saved(), world.clock.now()
    world.upload("raw/flights/year=2026/month=03/day=01/_SUCCESS")
    world.settle()
    world.finish()
    world.upload("raw/flights/year=2026/month=03/day=02/_SUCCESS")
    world.tables.restore({**world.tables.saved(), "CatalogTable": before["CatalogTable"]})
    world.clock.pass_by("5m")
    return world, since


def put(world: World, key: str, content: bytes | str, bucket: str = "lake-bucket") -> None:
    """An object whose notification has been lost."""
    world.lake.objects[bucket, key], world.lake.put_at[bucket, key] = content, world.clock.now()


def repaired(world: World, since: int) -> list[Finding]:
    found = mended(world, since, changed=world.lake.changed)
    world.pass_by("5m")
    return [each for each in found if "left alone" in each.done]


def all_ran(world: World) -> None:
    """Both days have run, the status of the first has reached the next workflow, and the limit counts what runs."""
    assert len(world.runs("daily")) == 2
    assert len(world.runs("next")) == 1
    assert world.limit_state(LIMIT).active == 1


@pytest.mark.parametrize("content", [after(1, 1)[:-20], b"\x1f\x8b\x08 cut off", b"\xff\xfe{\x00", b"[" * 100_000])
def test_o4_a_metadata_file_that_is_cut_off_is_reported(content: bytes) -> None:
    world, since = restored()
    put(world, file(1), content, BUCKET)

    [found] = repaired(world, since)

    assert (found.kind, found.name) == ("object", f"s3://{BUCKET}/{file(1)}")
    assert "expected" in found.done
    all_ran(world)


def test_o4_the_files_after_an_unreadable_one_count() -> None:
    world, since = restored()
    put(world, file(1), b"{", BUCKET)
    put(world, file(2), after(2, world.clock.now()), BUCKET)
    put(world, file(3), after(3, world.clock.now()), BUCKET)

    names = {found.name for found in repaired(world, since)}

    # The file 2 is based on file 1, so it cannot be confirmed; file 3 confirms what is in file 2.
    assert names == {f"s3://{BUCKET}/{file(number)}" for number in (1, 2)}
    assert world.ports.rows.get(Partition, "demo.orders", ("2",)) is not None
    all_ran(world)


def test_o4_a_bucket_that_may_not_be_listed_is_reported() -> None:
    world, since = restored()
    world.lake.bucket = "lake-bucket"

    found = repaired(world, since)

    assert {each.kind for each in found} == {"dataset"}
    assert all("AccessDenied" in each.done for each in found)
    world.lake.bucket = ""
    assert repaired(world, since) == []
    all_ran(world)


def test_o4_a_manifest_that_may_not_be_read_is_reported() -> None:
    world, since = restored()
    world.lake.key = "listed/month=03/_MANIFEST"
    put(world, world.lake.key, "part-0.csv")

    found = repaired(world, since)

    assert [each.name for each in found] == ["s3://lake-bucket/listed/month=03/_MANIFEST"]
    all_ran(world)


def test_o4_an_object_in_a_folder_of_a_bad_value_is_reported() -> None:
    world, since = restored()
    put(world, "raw/weather/year=2026/month=*/day=1/part.csv", "")

    [found] = repaired(world, since)

    assert "Spark reads" not in found.done
    assert "expected a value without" in found.done
    all_ran(world)


def test_o4_a_context_that_is_cut_off_is_reported() -> None:
    world, since = restored()
    [first] = world.runs("daily")
    text = json.dumps(world.payloads.context(first.run_id))
    world.payloads.contexts[first.run_id] = text[:-10]

    found = mended(world, since, changed=world.lake.changed)

    assert [each.name for each in found if each.kind == "context"] == [first.run_id]
