"""Events and notices that were on their way when a namespace moved reach each schedule once, wherever it is (L14)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.operations.archive.test_export import SMALL, elsewhere
from tests.support.archives import exported, given_up
from tests.support.schedules import after
from tests.support.world import EMR, World, day, flights

LAKE = {"workflows": {"count": {"target": EMR}}}
TRIGGERS: dict[str, Any] = {
    "alarm": {"type": "cloudwatch_alarm", "alarm": "disk"},
    "event": {"type": "event", "event": "closed", "namespace": "lake"},
    "partition": {"type": "partition", "dataset": "lake.rain"},
    "size": {"type": "size", "dataset": "lake.rain", "bytes": 10},
}
RAIN = {"bucket": "lake-bucket", "prefix": "raw/rain/", "keys": ["day"]}
MOVING = [["demo"], ["other"], ["lake"], ["demo", "lake"], ["other", "lake"], ["demo", "other"]]


def _status(world: World) -> None:
    world.run_now("lake.core.own")
    world.settle()
    world.emr_says("jr00001", "RUNNING")
    world.emr_says("jr00001", "SUCCESS")


HAPPENS: dict[str, Callable[[World], Any]] = {
    "alarm": lambda world: world.alarm("disk"),
    "event": lambda world: world.post("closed", "1", namespace="lake"),
    "partition": lambda world: world.upload("raw/rain/day=01/a.csv"),
    "size": lambda world: world.upload("raw/rain/day=01/a.csv", size=20),
    "status": _status,
}


class Killed(BaseException):
    """The invocation ends here."""


def broken(kind: str) -> World:
    """One event, which has reached the first of two schedules, `demo.flights.a` and `other.flights.b`, or none."""
    world = World(**SMALL)
    own = {"workflow": "count", "trigger": {"type": "event", "event": "never"}, "enabled": True}
    world.deploy({**LAKE, "schedules": {"own": own}, "datasets": {"rain": RAIN}}, "lake", "core")
    waits = after("lake.core.count", "join") if kind == "status" else {
        "workflow": "join", "trigger": TRIGGERS[kind], "enabled": True}  # fmt: skip
    world.deploy(flights({"a": waits}))
    world.deploy({"workflows": {"join": {"target": EMR}}, "schedules": {"b": waits}}, "other")
    world.settle()
    left = [0]

    def breaks() -> None:
        marks = [row for _, row in world.tables.rows() if row["sk"]["S"].startswith("APPLIED#")]
        left[0] = len([row for row in marks if "lake" not in row["pk"]["S"]])
        if left[0]:
            raise Killed

    world.tables.after_write = breaks
    with suppress(Killed):
        HAPPENS[kind](world)
    world.tables.after_write = lambda: None
    world.hints.sent = []
    assert left[0] == 1, "one schedule has the event, and the other has not"
    return world


def begun(*worlds: World) -> dict[str, int]:
    for _ in range(4):
        for world in worlds:
            world.pass_by("61s")
            world.settle()
    found: dict[str, int] = {}
    for name in ("demo.flights.a", "other.flights.b"):
        found[name] = sum(len(world.runs(name)) for world in worlds)
    return found


@pytest.mark.parametrize("kind", HAPPENS)
@pytest.mark.parametrize("moving", MOVING, ids="-".join)
def test_l14_an_event_on_its_way_reaches_each_schedule(moving: list[str], kind: str) -> None:
    world = broken(kind)
    archive = exported(world, *moving)
    given_up(world, archive)
    new = elsewhere(archive, world, copy=False)
    assert begun(world, new) == {"demo.flights.a": 1, "other.flights.b": 1}


@pytest.mark.parametrize("kind", HAPPENS)
def test_l14_an_event_reaches_schedules_that_move_one_by_one(kind: str) -> None:
    world, new = broken(kind), World(**SMALL)
    for name in ("lake", "other", "demo"):
        archive = exported(world, name)
        given_up(world, archive)
        new = elsewhere(archive, world, new=new, copy=False)
    assert begun(world, new) == {"demo.flights.a": 1, "other.flights.b": 1}


def test_l14_an_event_that_has_reached_all_is_left_out() -> None:
    world = World(**SMALL)
    world.deploy(flights({"a": {"workflow": "join", "trigger": TRIGGERS["alarm"], "enabled": True}}))
    world.alarm("disk")
    world.upload(day(1))
    world.settle()
    new = elsewhere(exported(world, "demo"), world)
    kinds = [row["pk"]["S"] for _, row in new.tables.rows() if row["pk"]["S"].startswith("EVENT#")]
    assert kinds == []


TOPIC = "arn:aws:sns:eu-west-1:123456789012:"


def failed() -> World:
    """A run of `demo` has failed, of a workflow of `lake`. Both want a notice, which nobody has sent yet."""
    told = {who: [{"on": ["failed"], "to": {"type": "sns", "topic_arn": f"{TOPIC}{who}"}}] for who in ("demo", "lake")}
    world = World(**SMALL)
    world.deploy({"workflows": {"count": {"target": EMR, "notify": told["lake"]}}}, "lake", "core")
    starts = {"type": "event", "event": "go"}
    world.deploy(flights({"a": {"workflow": "lake.core.count", "trigger": starts, "enabled": True,
                                "notify": told["demo"]}}))  # fmt: skip
    world.post("go")
    world.settle()
    world.finish("FAILED")
    world.hints.sent = []
    assert [row["pk"]["S"] for _, row in world.tables.rows() if row["pk"]["S"].startswith("NOTICE#")] != []
    return world


@pytest.mark.parametrize("moving", [["demo"], ["lake"], ["demo", "lake"]], ids="-".join)
def test_l14_a_notice_reaches_who_stays_and_who_moves(moving: list[str]) -> None:
    whole = failed()
    begun(whole)
    expected = len(whole.targets.queue.messages)
    world = failed()
    archive = exported(world, *moving)
    given_up(world, archive)
    new = elsewhere(archive, world, copy=False)
    begun(world, new)
    assert len(world.targets.queue.messages) == expected == 2
