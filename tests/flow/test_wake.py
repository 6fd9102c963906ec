"""Raising a limit wakes the jobs that wait for it (L6, C8)."""

from __future__ import annotations

from tests.support.schedules import at_most, partitions
from tests.support.world import World, day, flights


def test_l6_a_limit_raised_during_a_carry_launches_waiting_job(world: World) -> None:
    world.deploy(flights({"a": partitions(by=["day"], **at_most(1))}))
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    assert (len(world.runs("a")), [job.state for job in world.jobs("a")]) == (1, ["PENDING_LAUNCH"])

    world.put("a", partitions(by=["day"], on_update="carry", **at_most(2)))
    world.settle()

    assert len(world.runs("a")) == 2
    assert world.limit_state("workflow:demo.flights.clean").waiters == 0
