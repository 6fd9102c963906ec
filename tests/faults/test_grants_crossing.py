"""A revocation of a grant meets each step of a job: an acknowledged revocation is final (O9).

Before each call that processes one job, another machine takes the grant back. After the acknowledgement, no start call
is made but one that was on record. When the grant returns, the job runs, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.flow.fires import emit
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.crossings import at_each_call, cross, let_time_pass
from tests.support.pull_workers import PullWorker
from tests.support.schedules import after, at, at_most, partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, SQS, World, day, flights

CLEAN, NOON = "lake.core.clean", "1 12 2 3 *"
EVERYTHING = {kind: ["*"] for kind in ("run", "follow", "datasets", "events", "pools", "policies")}
GRANTED, REVOKED = {"grants": [{"to": "demo", **EVERYTHING}]}, {"grants": []}


@dataclass(frozen=True)
class Channel:
    """A way to a start: a schedule, the preparation, and the invocations that process its job until it starts. An event
    that comes after the revocation does not count if the trigger itself needs the grant (``gathers``)."""

    schedule: dict[str, Any]
    process: Callable[[World], Any]
    before: Callable[[World], Any] = lambda world: None
    gathers: bool = True


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


def _upstream_runs(world: World) -> None:
    world.run_now("lake.core.up")
    world.settle()


def _pull(world: World) -> None:
    world.upload(day(1))
    world.settle()
    PullWorker(world, "w1").claim(pool="lake.etl")


CHANNELS = {
    "a partition": Channel(partitions(workflow=CLEAN), lambda world: world.upload(day(1))),
    "a job in a queue": Channel(
        partitions(workflow=CLEAN, by=["day"], **at_most(1)),
        lambda world: world.emr_says("jr00001", "SUCCESS"),
        _queue_up,
    ),
    "a fire": Channel(at(NOON, CLEAN, **at_most(1)), lambda world: None, _fire_comes),
    "a second attempt": Channel(partitions(workflow="lake.core.twice"), lambda world: None, _fail_once),
    "a run at a pace": Channel(partitions(policy="lake.calm"), lambda world: world.upload(day(1))),
    "a run in a pool": Channel(partitions(pool="lake.spark"), lambda world: world.upload(day(1))),
    "an event": Channel(
        {"workflow": "clean", "enabled": True, "trigger": {"type": "event", "event": "e", "namespace": "lake"}},
        lambda world: world.post("e", namespace="lake"),
        gathers=False,
    ),
    "an upstream's success": Channel(
        after(CLEAN, "clean"), lambda world: world.emr_says("jr00001", "SUCCESS"), _upstream_runs, gathers=False
    ),
}  # fmt: skip
DELIVERED = Channel(at(NOON, "lake.core.send"), lambda world: None, _fire_comes)
PULLED = Channel(partitions(workflow="lake.core.pulled"), _pull)


@pytest.mark.parametrize("channel", CHANNELS)
def test_o9_a_revocation_at_any_point_holds_what_is_not_started(channel: str) -> None:
    start = Start(lambda: _begun(CHANNELS[channel]))
    calls = at_each_call(lambda before: _cross(start, before, CHANNELS[channel]), least=10)
    print(f"a revocation beside {channel}: {calls} crossings")


@pytest.mark.parametrize("names", [("daily",), ("daily", "other")])
def test_o9_a_revocation_at_any_point_holds_a_delivery(names: tuple[str, ...]) -> None:
    """One fire is checked alone; two that are due at one instant are delivered in one call."""
    start = Start(lambda: _begun(DELIVERED, names))

    def play(before: int | None) -> int:
        world = start.again()
        sent: list[int] = []

        def revoke() -> None:
            world.grant("lake", REVOKED)
            sent.append(len(world.targets.queue.tried))

        calls = cross(world, before, revoke, world.settle)
        world.clock.pass_by("11m")
        world.tick()
        world.settle()
        # The grants are read again right before a call, so that at most one call was on its way.
        late = len(world.targets.queue.tried) - sent[0]
        assert late in (0, len(names))
        waiting = [job.reason.partition(" to ")[0] for name in names for job in world.jobs(name)]
        assert waiting == ["waits for a grant of lake"] * (len(names) - len(world.targets.queue.tried))
        world.grant("lake", GRANTED)
        world.settle()
        assert len(world.targets.queue.tried) == len(names), "each is sent once"
        assert [job for name in names for job in world.jobs(name)] == []
        invariants.check_rest(world)
        return calls

    at_each_call(play, least=8)


def test_o9_a_revocation_at_any_point_holds_a_pulled_run() -> None:
    start = Start(lambda: _begun(PULLED))

    def play(before: int | None) -> int:
        world, worker = start.again(), PullWorker(start.again(), "w1")
        worker.world = world
        taken: list[int] = []

        def revoke() -> None:
            world.grant("lake", REVOKED)
            taken.append(len([run for run in world.runs("daily") if run.target_id is not None]))

        def process() -> None:
            world.upload(day(1))
            world.settle()
            worker.claim(pool="lake.etl")

        calls = cross(world, before, revoke, process)
        world.settle()
        PullWorker(world, "w2").claim(pool="lake.etl")
        assert len([run for run in world.runs("daily") if run.target_id is not None]) == taken[0]
        world.grant("lake", GRANTED)
        world.settle()
        PullWorker(world, "w3").claim(pool="lake.etl")
        leased = [run for run in world.runs("daily") if run.target_id is not None]
        assert len(leased) == 1, "it is leased once"
        return calls

    at_each_call(play, least=10)


def _begun(channel: Channel, names: tuple[str, ...] = ("daily",)) -> World:
    world = World(**SMALL, authorization="enforce")
    twice = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    pulled = {"target": {"type": "worker", "pool": "etl"}}
    workflows = {"clean": {"target": EMR}, "twice": twice, "send": {"target": SQS}, "pulled": pulled}
    owned = {
        "workflows": workflows,
        "schedules": {"up": {**at("@yearly"), "enabled": False}},
        "pools": {"spark": {"size": 4}},
        "policies": {"calm": {"max_events": 3, "interval": "1m"}},
    }
    world.deploy(owned, "lake", "core")
    world.grant("lake", GRANTED)
    world.deploy(flights(dict.fromkeys(names, channel.schedule)))
    world.settle()
    channel.before(world)
    return world


def _cross(start: Start, before: int | None, channel: Channel) -> int:
    """Play one order. Returns the number of calls that process the job."""
    world = start.again()
    already = {(run.run_id, run.attempt) for run in world.runs("daily")}
    passed_before: list[tuple[list[str], set[str], bool]] = []

    def revoke() -> None:
        world.grant("lake", REVOKED)
        calls, runs = list(world.targets.emr.calls), world.runs("daily")
        in_flight = {run.request.name for run in runs if run.calls > calls.count(run.request.name)}
        came = bool({(run.run_id, run.attempt) for run in runs} - already) or bool(world.jobs("daily"))
        passed_before.append((calls, in_flight, came))

    def process() -> None:
        channel.process(world)
        world.settle()

    calls = cross(world, before, revoke, process)
    let_time_pass(world)
    [(made, in_flight, came)] = passed_before
    passed = set(world.targets.emr.calls[len(made) :])
    if channel.gathers:
        assert passed <= in_flight, "only a call that was on record may pass"
    for job in world.jobs("daily"):
        assert job.reason.startswith("waits for a grant of lake to "), job.reason
        assert job.held == (), "what is held holds no permit"

    world.grant("lake", GRANTED)
    let_time_pass(world, finishing=True)
    invariants.check_rest(world)
    runs = [run for run in world.runs("daily") if (run.run_id, run.attempt) not in already]
    ends = [run.state for run in runs if run.state != "RETRYING"]
    if came or channel.gathers:
        assert ends == ["SUCCEEDED"], "the job is not lost, and runs once"
    else:
        assert ends in (["SUCCEEDED"], []), "an event counts while there is a grant"
    return calls
