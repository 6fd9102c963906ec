"""Objects in folders whose values a job could read as a pattern: refused, and kept for people to see (T7)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from tests.support.world import World, flights


def waits(**fields: Any) -> dict[str, Any]:
    trigger = {"type": "partition", "dataset": "days"}
    return {"workflow": "clean", "enabled": True, "trigger": trigger, "by": ["day"]} | fields


def world_of_days() -> World:
    world = World()
    days = {"days": {"bucket": "lake", "prefix": "raw/days/", "keys": ["day"]}}
    world.deploy(flights({"s": waits()}) | {"datasets": days})
    return world


@pytest.mark.parametrize("value", ["*", "a?", "{a,b}", "[0-9]", "..", "a\\b", "a\u0301"])
def test_an_object_in_such_a_folder_starts_nothing(value: str) -> None:
    world = world_of_days()
    with pytest.raises(SluiceError) as failure:
        world.upload(f"raw/days/day={value}/part-0.parquet")
    assert failure.value.field == "key.day"
    world.settle()
    assert world.ports.catalog.partitions("demo.days", 10, None).items == ()
    assert world.targets.emr.calls == []


def test_an_object_beside_it_is_still_a_partition() -> None:
    world = world_of_days()
    with pytest.raises(SluiceError):
        world.upload("raw/days/day=*/part-0.parquet")
    world.upload("raw/days/day=2/part-0.parquet")
    world.settle()
    [run] = world.runs("s")
    assert run.correlation == {"day": "2"}
