"""StartJobRun has one quota for an account and a region, so the starts of all EMR applications share one pace (E8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.instants import SECOND
from chalicelib.core.limits.names import EMR_STARTS
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue, LeaveQueue
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import NotNow
from chalicelib.core.writes import Create, RemoveWaiter, Replace
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

OTHER = "00other"
OF_AN_APPLICATION = "emr:00app"  # the limit of starts when each application had its own pace
TEN_SECONDS = {"start_burst": 1, "start_rate_per_second": 0.1}


@pytest.fixture
def world() -> Iterator[World]:
    made = World(**SMALL, **TEN_SECONDS, emr_application_ids=(OTHER,))
    elsewhere = {"target": {**EMR, "application_id": OTHER}}
    here, there = partitions(by=["day"]), partitions(1, "elsewhere", "weather", by=["day"])
    made.deploy(flights({"here": here, "there": there}, elsewhere=elsewhere))
    yield made
    invariants.check_rest(made)


def test_e8_the_starts_of_two_applications_keep_one_pace(world: World) -> None:
    for number in (1, 2, 3):
        world.upload(day(number))
        world.upload(day(number, "weather", "x.csv"))
    world.settle()
    world.pass_by("2m")
    started = sorted(world.targets.emr.called_at)
    assert len(started) == 6
    assert min(later - earlier for earlier, later in pairwise(started)) >= 10 * SECOND
    world.finish()
    world.settle()


def test_e8_a_throttle_of_one_application_delays_the_others(world: World) -> None:
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.settle()
    refused_at = world.clock.now()
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert world.jobs("there")[0].queued_in == EMR_STARTS
    world.pass_by("1m")
    assert len(world.targets.emr.runs) == 2
    assert min(world.targets.emr.called_at[1:]) > refused_at
    world.finish()
    world.settle()


def stored_before(world: World, of: str) -> None:
    """Move the queued starts to the limit of their application, as earlier versions stored them."""
    busy, read = Pace(OF_AN_APPLICATION, 10 * SECOND, 1), world.limit_state(OF_AN_APPLICATION)
    if not read.head:
        taken = AcquirePermit(busy, world.clock.now(), LimitState(OF_AN_APPLICATION), from_queue=False)
        assert world.ports.ledger.commit([taken]) is None
    for waiter in world.ports.jobs.head_of(EMR_STARTS, 10):
        if waiter.job_schedule != f"demo.flights.{of}":
            continue
        row = _of(world, waiter)
        fields: dict[str, Any] = {"queued_in": OF_AN_APPLICATION, "rev": row.rev + 1}
        if isinstance(row, Run):
            permits = tuple(OF_AN_APPLICATION if line == EMR_STARTS else line for line in row.permits)
            later: Job | Run = replace(row, permits=permits, **fields)
        else:
            later = replace(row, **fields)
        now = world.clock.now()
        plan = [
            Replace(later),
            RemoveWaiter(waiter),
            LeaveQueue(EMR_STARTS),
            Create(replace(waiter, limit_name=OF_AN_APPLICATION)),
        ]
        assert world.ports.ledger.commit([*plan, JoinQueue(busy, now, now + 10 * SECOND)]) is None


def _of(world: World, waiter: Waiter) -> Job | Run:
    found: Job | Run | None
    if waiter.run is not None:
        found = world.ports.runs.run(*waiter.run)
    else:
        found = world.ports.jobs.job(waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    assert found is not None
    return found


def test_a_job_queued_at_an_application_pace_moves_to_account(world: World) -> None:
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    stored_before(world, "here")
    assert (world.limit_state(EMR_STARTS).waiters, world.limit_state(OF_AN_APPLICATION).waiters) == (0, 2)
    world.pass_by("3m")
    assert [run.permits[-1] for run in world.runs("here")] == [EMR_STARTS] * 3
    assert len(world.targets.emr.runs) == 3
    assert world.limit_state(OF_AN_APPLICATION).waiters == 0
    world.finish()
    world.settle()


def test_a_run_queued_at_an_application_pace_starts_from_there(world: World) -> None:
    world.targets.emr.answers = [NotNow("throttled")]
    world.upload(day(1))
    world.settle()
    stored_before(world, "here")
    assert [run.queued_in for run in world.runs("here")] == [OF_AN_APPLICATION]
    world.pass_by("3m")
    assert len(world.targets.emr.runs) == 1
    assert world.limit_state(OF_AN_APPLICATION).waiters == 0
    world.finish()
    world.settle()


def test_an_urgent_schedule_raises_another_application_waiters(world: World) -> None:
    for number in (1, 2):
        world.upload(day(number, "weather", "x.csv"))
        world.settle()
    world.upload(day(9))
    world.settle()
    urgent = {"type": "program_status", "workflow": "elsewhere", "statuses": ["COMPLETED"], "count": 1}
    world.put("urgent", {"workflow": "join", "enabled": True, "trigger": urgent, "priority": 9})
    assert world.jobs("there")[0].priority == 9
    world.disable("urgent")
    world.pass_by("2m")
    world.finish()
    world.settle()
