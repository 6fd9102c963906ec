"""User actions on a schedule meet each step of its job: an acknowledged action is final (C13).

Before each call that processes one job, another machine disables, deletes, replaces, holds or drains the schedule, or
updates it and carries the progress. After the acknowledgement, nothing of the old schedule starts. Only a start call
that was in flight may still be made, and it is on record. A kept job runs later, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from chalicelib.flow.fires import emit
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.crossings import at_each_call, cross, let_time_pass
from tests.support.schedules import at, at_most, partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, World, day, flights

OLD = {"properties": {"new": False}}
NEW = {"properties": {"new": True}}


@dataclass(frozen=True)
class Channel:
    """A way to a start: a schedule, the preparation, and the invocations that process its job until it starts."""

    schedule: dict[str, Any]
    before: Callable[[World], Any]
    process: Callable[[World], Any]


@dataclass(frozen=True)
class Closing:
    """A user action. ``may_start`` names what may start until the schedule is reopened. ``keeps``: jobs are kept.
    ``gathers``: events still gather.
    """

    act: Callable[[World, dict[str, Any]], Any]
    may_start: Literal["in flight", "claimed", "new", "met"] = "in flight"
    keeps: bool = False
    gathers: bool = True
    reopen: Callable[[World], Any] = lambda world: None


@dataclass(frozen=True)
class Acknowledged:
    """The state at the acknowledgement of a closing: the start calls that were made, those that are only on record, the
    jobs that are runs, and whether any job exists to keep. Another attempt of a run is no new run.
    """

    calls: list[str]
    in_flight: set[str]
    claimed: set[str]
    came: bool


def _queue_up(world: World) -> None:
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    world.clock.pass_by("1s")


def _fire_comes(world: World) -> None:
    emit.emit_due(world.ports)
    world.clock.pass_by("61s")


def _fail_once(world: World) -> None:
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.clock.pass_by("31s")


CHANNELS = {
    "a partition": Channel(partitions(**at_most(1), **OLD), lambda world: None, lambda world: world.upload(day(1))),
    "a job in a queue": Channel(
        partitions(by=["day"], **at_most(1), **OLD), _queue_up, lambda world: world.emr_says("jr00001", "SUCCESS")
    ),
    "a fire": Channel(at("1 12 2 3 *", **at_most(1), **OLD), _fire_comes, lambda world: None),
    "a second attempt": Channel(partitions(workflow="twice", **OLD), _fail_once, lambda world: None),
}
CLOSINGS = {
    "disable": Closing(lambda world, schedule: world.disable("daily")),
    "delete": Closing(lambda world, schedule: world.delete("daily")),
    "replace": Closing(lambda world, schedule: world.put("daily", {**schedule, **NEW, "enabled": False})),
    "carry": Closing(
        lambda world, schedule: world.put("daily", {**schedule, **NEW, "on_update": "carry"}), "new", keeps=True
    ),
    # A pause holds jobs, but not runs.
    "hold": Closing(
        lambda world, _: world.pause("daily"), "claimed", keeps=True, reopen=lambda world: world.resume("daily")
    ),
    "backlog": Closing(
        lambda world, _: world.pause("daily", "backlog"),
        "claimed",
        keeps=True,
        reopen=lambda world: world.resume("daily"),
    ),
    "stop": Closing(
        lambda world, _: world.stop("demo"), "claimed", keeps=True, reopen=lambda world: world.start("demo")
    ),
    "drain": Closing(lambda world, _: world.pause("daily", "drain"), "met", keeps=True, gathers=False),
}
tried: dict[tuple[str, str], int] = {}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("closing", CLOSINGS)
def test_c13_a_close_at_any_point_holds_once_acknowledged(closing: str, channel: str) -> None:
    start = Start(lambda: _begun(CHANNELS[channel]))
    calls = at_each_call(lambda before: _cross(start, before, CLOSINGS[closing], CHANNELS[channel]), least=15)
    tried[closing, channel] = calls
    print(f"{closing} beside {channel}: {calls} crossings")


def test_there_are_many_crossings() -> None:
    """Runs after the other tests of this file, and counts the orders that they played."""
    if len(tried) < len(CLOSINGS) * len(CHANNELS):
        pytest.skip("the crossings were not all played in this session")
    print(f"{sum(tried.values())} interleavings of a closing and the processing of a job")
    assert sum(tried.values()) >= 500


def _begun(channel: Channel) -> World:
    world = World(**SMALL)
    world.deploy(
        flights({"daily": channel.schedule}, twice={"target": EMR, "retries": {"attempts": 2, "delay": "30s"}})
    )
    channel.before(world)
    return world


def _cross(start: Start, before: int | None, closing: Closing, channel: Channel) -> int:
    """Play one order. Returns the number of calls that process the job."""
    world = start.again()
    already = {run.run_id + str(run.attempt) for run in world.runs("daily")}
    acknowledged: list[Acknowledged] = []

    def close() -> None:
        closing.act(world, channel.schedule)
        acknowledged.append(_at_the_acknowledgement(world))

    def process() -> None:
        channel.process(world)
        world.settle()

    calls = cross(world, before, close, process)
    let_time_pass(world)
    [then] = acknowledged
    passed = set(world.targets.emr.calls[len(then.calls) :])
    if closing.may_start == "in flight":
        assert passed <= then.in_flight, "only a call that was on record may pass"
    if closing.may_start == "claimed":
        assert {_run_id(name) for name in passed} <= then.claimed, "only what was a run already may start"
    closing.reopen(world)
    let_time_pass(world, finishing=True)

    invariants.check_rest(world)
    runs = [run for run in world.runs("daily") if run.run_id + str(run.attempt) not in already]
    assert all(run.target_id for run in runs if run.request.name in passed), "what passed is on record"
    if closing.keeps and (then.came or closing.gathers):
        assert [run.state for run in runs] == ["SUCCEEDED"], "the job is not lost, and runs once"
    if closing.may_start == "new" and channel is not CHANNELS["a second attempt"]:
        late = [run for run in runs if run.request.name not in {*then.calls, *then.in_flight}]
        assert all(run.request.properties == NEW["properties"] for run in late), "what launches has the new properties"
    return calls


def _at_the_acknowledgement(world: World) -> Acknowledged:
    calls, runs = list(world.targets.emr.calls), world.runs("daily")
    in_flight = {run.request.name for run in runs if run.calls > calls.count(run.request.name)}
    came = bool(runs) or any(job.sort_key != "GATHERING" or job.met_at for job in world.jobs("daily"))
    return Acknowledged(calls, in_flight, {run.run_id for run in runs}, came)


def _run_id(name: str) -> str:
    return name.rpartition("-")[0]
