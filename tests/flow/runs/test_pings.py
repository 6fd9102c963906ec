"""A ping polls the target of an active run now, before its next regular poll (W6)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.runs import actions
from tests.faults.dying import SMALL
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights


def begun(target: dict[str, object] = EMR) -> World:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(workflow="brief")}, brief={"target": target}))
    world.upload(day(1))
    world.settle()
    return world


def test_w6_a_ping_reads_at_once_what_no_event_has_reported() -> None:
    world = begun()
    [run] = world.runs("daily")
    world.targets.emr.runs["jr00001"].state = "SUCCESS"  # and its event is lost
    world.settle()
    assert world.runs("daily")[0].state == "STARTING"
    assert actions.ping(world.ports, run.run_id).state == "STARTING", "the answer comes after"
    world.settle()
    assert world.runs("daily")[0].state == "SUCCEEDED"
    assert world.limit_state("workflow:demo.flights.brief").active == 0


def test_w6_a_ping_of_an_active_run_changes_nothing() -> None:
    world = begun()
    world.emr_says("jr00001", "RUNNING")
    for _ in range(3):
        actions.ping(world.ports, world.runs("daily")[0].run_id)
        world.settle()
    assert [run.state for run in world.runs("daily")] == ["RUNNING"]
    world.finish()
    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"]


def test_w6_a_run_that_has_ended_is_not_pinged() -> None:
    world = begun()
    world.finish()
    with pytest.raises(SluiceError, match="a run that has not ended, got one that is SUCCEEDED") as refused:
        actions.ping(world.ports, world.runs("daily")[0].run_id)
    assert refused.value.code == "conflict"
    with pytest.raises(SluiceError, match="no run named"):
        actions.ping(world.ports, "demo.flights.daily.1.none")


def test_w6_a_ping_finds_an_expired_worker_and_spares_a_live_one() -> None:
    world = begun(PULLED)
    worker = PullWorker(world, "w1")
    worker.claim()
    worker.beat()
    [run] = world.runs("daily")
    actions.ping(world.ports, run.run_id)
    world.settle()
    assert (run.state, world.runs("daily")[0].state) == ("RUNNING", "RUNNING")
    assert run.lease_until is not None
    world.clock.wait_until(run.lease_until + 1)
    actions.ping(world.ports, run.run_id)
    world.settle()
    assert (world.runs("daily")[0].state, world.runs("daily")[0].outcome) == ("FAILED", "lost")
