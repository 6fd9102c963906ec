"""Jobs that join the queue of their policy later, because enough others wait, are not overdue (E3, O3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.job import Job
from chalicelib.core.system import sweep as core_sweep
from chalicelib.flow.deliveries import join
from chalicelib.flow.system import sweep
from chalicelib.ports import Ports
from tests.support.schedules import at
from tests.support.world import World, flights

WAITING = 40  # jobs, from which on others join later in these tests
JOBS = 120
MINUTELY, HOURLY = {"max_events": 10, "interval": "1m"}, {"max_events": 10, "interval": "1h"}


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "MANY", WAITING)


def due(policy: dict[str, Any], jobs: int = JOBS) -> World:
    """A world in which so many jobs of one fire are due, under one policy. No hint of them has arrived."""
    world = World()
    many = at("1 12 * * *", "notify", policy="calm", spread={"count": jobs})
    urgent, usual = (at("3 12 * * *", "notify", policy="calm", priority=priority) for priority in (9, 5))
    schedules = {"many": many, "urgent": urgent, "usual": usual}
    world.deploy({**flights(schedules), "policies": {"calm": policy}})
    world.settle()
    world.tick()
    world.clock.pass_by("1m")
    return world


def crowded(policy: dict[str, Any]) -> World:
    """The same, when some jobs have joined the queue and the others join later."""
    world = due(policy)
    world.settle()
    assert len(unjoined(world)) >= WAITING
    return world


def unjoined(world: World) -> list[Job]:
    return [job for job in world.jobs("many") if job.queued_in is None]


def swept(world: World) -> int:
    """How many overdue rows a sweep hints now."""
    return sweep.sweep_all(world.ports)


@pytest.mark.usefixtures("crowd")
def test_e3_the_sweep_leaves_deferred_jobs_alone() -> None:
    world = crowded(MINUTELY)
    late = unjoined(world)
    world.clock.pass_by("20s")
    assert swept(world) <= 1, "the limit alone may be hinted"
    assert unjoined(world) == late


@pytest.mark.usefixtures("crowd")
def test_o3_deferred_jobs_with_lost_hints_start_once_fewer_wait() -> None:
    world = crowded(MINUTELY)
    world.hints.sent.clear()
    world.pass_by("14m")
    sent = [context["schedule"] for _, context in world.targets.queue.messages]
    assert sent.count("demo.flights.many") == JOBS


@pytest.mark.usefixtures("crowd")
def test_o3_a_deferred_job_is_overdue_after_an_hour() -> None:
    world = crowded(HOURLY)
    left = len(unjoined(world))
    assert swept(world) <= 1
    world.clock.wait_until(world.clock.now() + HOUR + MINUTE)
    assert swept(world) >= left


@pytest.mark.usefixtures("crowd")
def test_w2_a_more_urgent_job_is_not_deferred() -> None:
    world = crowded(HOURLY)
    world.tick()
    world.hints.sent.clear()
    world.clock.pass_by("3m")
    fires = [*world.jobs("urgent"), *world.jobs("usual")]
    assert [job.schedule for job in join.Deferred(world.ports).among(fires)] == ["demo.flights.usual"]


@pytest.mark.usefixtures("crowd")
def test_o3_a_sweep_reads_definitions_of_overdue_jobs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = crowded(MINUTELY)
    assert len(unjoined(world)) > core_sweep.SLICE
    asked: list[str] = []
    read = join.with_definitions

    def counted(ports: Ports, names: Sequence[str]) -> Ports:
        asked.extend(names)
        return read(ports, names)

    monkeypatch.setattr(join, "with_definitions", counted)
    world.clock.pass_by("20s")
    swept(world)
    assert asked == ["demo.flights.many"]


@pytest.mark.usefixtures("crowd")
def test_o3_jobs_are_hinted_if_their_policy_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No overdue row stays without a hint. A second hint of a deferred job does no harm."""
    world = crowded(MINUTELY)
    late = len(unjoined(world))

    def fails(ports: Ports, names: Sequence[str]) -> Ports:
        raise ConnectionError

    monkeypatch.setattr(join, "with_definitions", fails)
    world.clock.pass_by("20s")
    assert swept(world) >= late
    lines = [vars(record) for record in caplog.records if record.message == "deferred jobs not read"]
    assert sum(line["size"] for line in lines) == late
    assert {line["levelname"] for line in lines} == {"ERROR"}


def test_o3_overdue_jobs_of_a_policy_where_few_wait_are_hinted() -> None:
    world = due(MINUTELY)
    world.hints.sent.clear()
    world.clock.pass_by("10s")
    assert swept(world) >= JOBS
