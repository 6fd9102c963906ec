"""T19 for custom events: they carry the correlation keys in their payload."""

from __future__ import annotations

from tests.support.world import World, day, flights


def test_t19_a_custom_event_counts_for_partition_in_its_payload(world: World) -> None:
    flight = {"type": "partition", "dataset": "flights"}
    checked = {"type": "event", "event": "checked"}
    join = {"workflow": "join", "enabled": True, "by": ["year", "month", "day"]}
    world.deploy(flights({"a": join | {"trigger": {"type": "all", "triggers": [flight, checked]}}}))

    world.upload(day(1))
    world.post("checked", year=2013, month="1", day=2)
    world.settle()
    assert not world.runs("a")
    world.post("checked", year=2013, month="1", day=1)
    world.settle()

    [run] = world.runs("a")
    assert run.correlation == {"year": "2013", "month": "1", "day": "1"}


def test_t19_an_event_without_keys_counts_for_nothing_on_record(world: World) -> None:
    trigger = {"type": "event", "event": "checked"}
    world.deploy(flights({"a": {"workflow": "join", "enabled": True, "by": ["day"], "trigger": trigger}}))
    world.post("checked", day=True)
    assert [record.kind for record in world.records("a")] == ["DROPPED"]
    assert not world.jobs("a")
