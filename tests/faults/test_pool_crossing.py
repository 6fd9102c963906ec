"""Jobs of two workflows meet at the last slot of their pool, in the orders of their calls (C9, W3)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.jobs.check import check_job
from tests.faults import invariants
from tests.faults.meetings.entry import try_two
from tests.faults.meetings.situation import Do, Played, two
from tests.faults.meetings.situations_queues import made
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights, full

LIMIT = "pool:demo.p"
POOLED = {"target": EMR, "pool": "p"}
BOTH = {name: partitions(1, name, by=["day"]) for name in ("one", "two")}


def test_c9_two_workflows_at_the_last_slot_never_exceed_the_pool(record_property: Any) -> None:
    situation = two(_world, _check("one"), _check("two"), ended=_one_has_it, rest=_one_after_the_other)
    try_two(situation, most=60, least=30, note=record_property)


def _world() -> World:
    app = {**flights(BOTH, one=POOLED, two=POOLED), "pools": {"p": {"size": 1}}}
    return made(app, lambda world: world.upload(day(1)))


def _check(name: str) -> Do:
    def act(world: World) -> None:
        [job] = world.jobs(name)
        assert job.schedule == full(name)
        check_job(world.ports, (job.schedule, job.generation, job.sort_key))

    return act


def _one_has_it(played: Played) -> None:
    limit = played.world.limit_state(LIMIT)
    assert (_live(played.world), limit.active, limit.waiters) == (1, 1, 1)


def _one_after_the_other(world: World) -> None:
    assert _live(world) == 1
    world.finish()
    world.settle()
    assert (_live(world), world.limit_state(LIMIT).waiters) == (1, 0)
    world.finish()
    invariants.check_rest(world)
    assert [len(world.runs(name)) for name in BOTH] == [1, 1]


def _live(world: World) -> int:
    return sum(run.state in ("STARTING", "RUNNING") for name in BOTH for run in world.runs(name))
