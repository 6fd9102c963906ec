"""StartJobRun has one quota for an account and a region, so the starts of all EMR applications share one pace (E8)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from chalicelib.core.instants import SECOND
from chalicelib.core.limits.names import EMR_STARTS
from chalicelib.core.targets.answers import NotNow
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

OTHER = "00other"
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
