"""The border between the snapshots that a dataset counts and those that were there before it (T21)."""

from __future__ import annotations

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.flow.ingest.objects import match_object
from tests.support.iceberg_files import BUCKET, TABLE, after, file
from tests.support.world import World


@pytest.mark.parametrize(("after_the_dataset", "counts"), [(-1, 0), (0, 1), (1, 1)])
def test_t21_a_snapshot_of_the_datasets_own_instant_counts(after_the_dataset: int, counts: int) -> None:
    world = World()
    world.deploy({"datasets": {"orders": {**TABLE, "single_writer": True}}})
    world.lake.objects[BUCKET, file(1)] = after(1, world.clock.now() + after_the_dataset)
    world.clock.pass_by("1m")
    match_object(world.ports, ObjectCreated(BUCKET, file(1), world.clock.now()))
    assert len(world.ports.catalog.partitions("demo.orders", 10, None).items) == counts
