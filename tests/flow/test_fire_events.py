"""Which events of a fire have run, with and without bundles."""

from __future__ import annotations

import pytest

from chalicelib.core.fires import fire
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.targets.answers import NoAnswer, Started
from chalicelib.flow import fire_events
from tests.flow.deliveries.test_prepare import counted
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import SQS, World, flights, full

AT_ONE = NOON + MINUTE


def _played(count: int, records: str) -> tuple[World, list[Job]]:
    """A world in which a fire was sent, and its events as jobs without a bundle."""
    world = World(wake_shards=1, history_shards=1)
    batch = at("1 12 2 3 *", "notify", spread={"count": count})
    world.deploy(flights({"batch": batch}, notify={"target": SQS, "delivery": {"records": records}}))
    generation = world.jobs("batch")[0].generation if world.jobs("batch") else NOON
    timer = Timer(full("batch"), generation, 0, 0, {})
    return world, [fire.fire_of(timer, "0", AT_ONE, AT_ONE, number) for number in range(count)]


@pytest.mark.parametrize("records", ["fire", "each"])
def test_the_events_of_a_sent_fire_have_run(records: str) -> None:
    world, jobs = _played(20, records)
    assert fire_events.ran(world.ports, jobs) == []
    world.pass_by("3m")
    assert fire_events.ran(world.ports, jobs) == list(range(20))
    assert fire_events.ran(world.ports, jobs[5:7]) == [5, 6]
    assert fire_events.ran(world.ports, []) == []


def test_an_event_that_left_its_bundle_has_run_later() -> None:
    world, jobs = _played(20, "fire")
    world.targets.queue.answers = [Started("m", done=True), NoAnswer("the queue is down")]
    world.clock.wait_until(AT_ONE - MINUTE)
    world.pass_by("10m")
    assert fire_events.ran(world.ports, jobs) == list(range(20))
    assert sum(run.count - len(run.left) for run in world.runs("batch")) == 20
    assert len(world.runs("batch")) == 2


def test_the_runs_of_many_events_take_few_calls() -> None:
    world, jobs = _played(1_000, "fire")
    world.pass_by("3m")
    calls = counted(world)
    assert len(fire_events.ran(world.ports, jobs)) == 1_000
    assert len(calls) <= 20 + 4 + 1, "2,000 names, a hundred per call; four bundles; the fire"
