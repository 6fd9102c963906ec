"""A revocation of a grant meets each step of a job: an acknowledged revocation is final (O9).

Before each call that processes one job, another machine takes the grant back. After the acknowledgement, no start call
is made but one that was on record. When the grant returns, the job runs, once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow import lookup
from chalicelib.flow.deliveries.send import FRESH
from chalicelib.flow.fires import emit
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.backfills import begin
from tests.support.crossings import at_each_call, cross, let_time_pass
from tests.support.dags import dag
from tests.support.dags import put as put_dag
from tests.support.pull_workers import PullWorker
from tests.support.samples import parts
from tests.support.schedules import after, at, at_most, partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, SQS, World, day, flights

CLEAN, NOON = "lake.core.clean", "1 12 2 3 *"
EVERYTHING = {kind: ["*"] for kind in ("run", "follow", "datasets", "events", "pools", "policies")}
GRANTED, REVOKED = {"grants": [{"to": "demo", **EVERYTHING}]}, {"grants": []}


@dataclass(frozen=True)
class Channel:
    """A way to a start: a schedule, the preparation, and the invocations that process its job until it starts. An event
    that comes after the revocation does not count if the trigger itself needs the grant (``gathers``). A request that
    comes after it is refused (``requested``). ``starts`` finds the schedule whose jobs are watched."""

    schedule: dict[str, Any]
    process: Callable[[World], Any]
    before: Callable[[World], Any] = lambda world: None
    gathers: bool = True
    requested: bool = False
    starts: Callable[[World], str] = lambda world: "daily"


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


def _upstream_is_fresh(world: World) -> None:
    world.run_now("lake.core.up")
    world.settle()
    world.finish()


def _backfill(world: World) -> None:
    with suppress(SluiceError):
        begin(world, "daily", from_="2026-02-26T00:00:00Z", to="2026-02-27T00:00:00Z")


def _node(world: World) -> str:
    """The schedule of the only node of the DAG."""
    [name] = [name for name in lookup.schedules_of(world.ports, "demo.flights") if name.endswith("~a")]
    return name


IS_FRESH = {"type": "fresh", "workflows": [CLEAN], "within": "1d", "on_unmet": "wait"}
LOAD = {"type": "load", "of": {"pool": "lake.spark"}, "below": 0.5, "on_unmet": "wait"}
NODE = dag(nodes={"a": {"workflow": CLEAN}}, by=[], enabled=True)
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
    "a partition of a foreign dataset": Channel(
        partitions(dataset="lake.landed"), lambda world: world.upload(day(1, "landed")), gathers=False
    ),
    "a fresh upstream": Channel(
        partitions(constraints=[IS_FRESH]), lambda world: world.upload(day(1)), _upstream_is_fresh
    ),
    "the load of a pool": Channel(partitions(constraints=[LOAD]), lambda world: world.upload(day(1))),
    "a backfill": Channel(at("0 2 * * *", CLEAN), _backfill, requested=True),
    "a node of a DAG": Channel(
        {**at("@yearly"), "enabled": False},
        lambda world: world.upload(day(1)),
        lambda world: put_dag(world, NODE, "whole"),
        starts=_node,
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
        waiting = [job.reason.text.partition(" to ")[0] for name in names for job in world.jobs(name)]
        assert waiting == ["waits for a grant of lake"] * (len(names) - len(world.targets.queue.tried))
        world.grant("lake", GRANTED)
        world.settle()
        assert len(world.targets.queue.tried) == len(names), "each is sent once"
        assert [job for name in names for job in world.jobs(name)] == []
        invariants.check_rest(world)
        return calls

    at_each_call(play, least=8)


@pytest.mark.parametrize("part", parts(3))
def test_o9_a_revocation_at_any_point_holds_a_block_of_permits(part: int) -> None:
    """The jobs of a fast policy acquire their permits together, and are sent one after the other."""
    names = tuple(f"s{number}" for number in range(4))
    blocked = Channel(at(NOON, "lake.core.send", policy="lake.fast"), lambda world: None, _fire_comes)
    start = Start(lambda: _begun(blocked, names))

    def play(before: int | None) -> int:
        world = start.again()
        revoked: list[int] = []
        after: list[int] = []
        send = world.targets.queue.start_many

        def counted(runs: Any) -> Any:
            after.extend([world.clock.now()] * bool(revoked))
            return send(runs)

        world.targets.queue.start_many = counted  # type: ignore[method-assign]

        def revoke() -> None:
            world.grant("lake", REVOKED)
            revoked.append(world.clock.now())

        calls = cross(world, before, revoke, world.settle)
        world.clock.pass_by("2m")
        world.tick()
        world.settle()
        assert all(at <= revoked[0] + FRESH for at in after), "one read of the grants covers the calls of 100 ms"
        waiting = [job.reason.text for name in names for job in world.jobs(name)]
        assert len(waiting) == len(names) - len(world.targets.queue.tried)
        assert all(reason.startswith("waits for a grant of lake to ") for reason in waiting), waiting
        world.grant("lake", GRANTED)
        world.settle()
        world.pass_by("1m")
        assert len(world.targets.queue.tried) == len(names), "each is sent once"
        return calls

    print(f"a revocation beside a block: {at_each_call(play, least=10, first=1 + part, stride=3)} crossings")


def test_o9_a_revocation_at_any_point_removes_upstream_contexts() -> None:
    """A context that is made after the revocation has no upstream. The run starts all the same."""
    channel = CHANNELS["an upstream's success"]
    start = Start(lambda: _begun(channel))
    withheld = {"grants": [{"to": "demo", **EVERYTHING}]}
    with_context = {"grants": [{"to": "demo", **EVERYTHING, "context": ["*"]}]}
    seen: dict[int, bool] = {}

    def play(before: int | None) -> int:
        world = start.again()
        world.grant("lake", with_context)
        calls = cross(
            world, before, lambda: world.grant("lake", withheld), lambda: (channel.process(world), world.settle())
        )
        let_time_pass(world, finishing=True)
        [run] = world.runs("daily")
        assert run.state == "SUCCEEDED"
        context = world.payloads.context(run.run_id)
        assert context is not None
        seen[calls + 1 if before is None else before] = context["upstream"] is not None
        return calls

    at_each_call(play, least=10)
    known = [seen[before] for before in sorted(seen)]
    assert known == sorted(known), "an earlier revocation never leaves more than a later one"
    assert (known[0], known[-1]) == (False, True)


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
    keys = ["year", "month", "day"]
    owned = {
        "datasets": {
            "landed": {"bucket": "lake", "prefix": "raw/landed/", "keys": keys, "ready": {"done_flag": "_SUCCESS"}}
        },
        "workflows": workflows,
        "schedules": {"up": {**at("@yearly"), "enabled": False}},
        "pools": {"spark": {"size": 4}},
        "policies": {"calm": {"max_events": 3, "interval": "1m"}, "fast": {"max_events": 100, "interval": "1s"}},
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
    watched = channel.starts(world)
    already = {(run.run_id, run.attempt) for run in world.runs(watched)}
    passed_before: list[tuple[list[str], set[str], bool]] = []

    def revoke() -> None:
        world.grant("lake", REVOKED)
        calls, runs = list(world.targets.emr.calls), world.runs(watched)
        in_flight = {run.request.name for run in runs if run.calls > calls.count(run.request.name)}
        came = bool({(run.run_id, run.attempt) for run in runs} - already) or bool(world.jobs(watched))
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
    for job in world.jobs(watched):
        assert job.reason.text.startswith("waits for a grant of lake to "), job.reason.text
        assert job.held == (), "what is held holds no permit"

    world.grant("lake", GRANTED)
    let_time_pass(world, finishing=True)
    invariants.check_rest(world)
    runs = [run for run in world.runs(watched) if (run.run_id, run.attempt) not in already]
    ends = [run.state for run in runs if run.state != "RETRYING"]
    if came or (channel.gathers and not channel.requested):
        assert ends == ["SUCCEEDED"], "the job is not lost, and runs once"
    else:
        assert ends in (["SUCCEEDED"], []), "an event counts while there is a grant"
    return calls
