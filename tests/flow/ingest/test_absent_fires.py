"""Fires of the leaf `absent` whose feed belongs to another namespace, which takes its grant back (T18, O9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.world import EMR, World, flights

GRANTED = {"grants": [{"to": "demo", "datasets": ["rain"]}]}
RAIN = {"bucket": "lake-bucket", "prefix": "raw/rain/", "keys": ["month", "day"]}
NO_RAIN = {"type": "absent", "of": {"type": "partition", "dataset": "lake.rain"}, "within": "20m"}
TRIGGERS: dict[str, dict[str, Any]] = {
    "absent": NO_RAIN,
    "any": {"type": "any", "triggers": [NO_RAIN, {"type": "event", "event": "go"}]},
    "by a deadline": {"type": "absent", "of": NO_RAIN["of"], "deadline": "12:20"},
}


def waiting(trigger: dict[str, Any]) -> World:
    world = World(wake_shards=1, history_shards=1)
    world.ports = world.with_ports(settings=replace(world.ports.settings, authorization="enforce"))
    world.deploy({"datasets": {"rain": RAIN}, "workflows": {"count": {"target": EMR}}}, "lake", "core")
    world.grant("lake", GRANTED)
    world.deploy(flights({"dry": {"workflow": "join", "trigger": trigger, "enabled": True}}))
    return world


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_t18_an_absence_without_its_grant_is_on_record(trigger: dict[str, Any]) -> None:
    world = waiting(trigger)
    world.pass_by("5m")
    world.grant("lake", {"grants": []})
    world.settle()
    world.pass_by("30m")
    world.settle()
    assert world.runs("dry") == []
    [record] = world.records("dry")
    assert record.kind == "DROPPED"
    assert record.reason.text.startswith("the absence does not count: waits for a grant of lake")
    assert [job for job in world.jobs("dry") if job.sort_key.startswith("FIRE#")] == []


def test_an_absence_that_counted_has_no_record() -> None:
    world = waiting(NO_RAIN)
    world.pass_by("30m")
    world.settle()
    assert len(world.runs("dry")) == 1
    assert world.records("dry") == []


def test_an_absence_counts_again_once_the_grant_is_back() -> None:
    world = waiting(NO_RAIN)
    world.grant("lake", {"grants": []})
    world.pass_by("25m")
    world.settle()
    world.grant("lake", GRANTED)
    world.pass_by("25m")
    world.settle()
    assert (len(world.records("dry")), len(world.runs("dry"))) == (1, 1)
