"""A job waits for a slot whose run has ended without an event. The waiter causes a poll of the holders (W7)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.schedules import at_most, partitions
from tests.support.world import EMR, World, day, flights

GROUP = {"type": "concurrency", "max": 1, "group": "cluster", "on_unmet": "wait"}


def world_of(pools: dict[str, Any] | None = None, schedules: dict[str, Any] | None = None, **tuned: Any) -> World:
    world = World(**tuned)
    world.deploy({**flights(schedules or {}), "pools": pools or {}})
    return world


def begin(world: World, number: int, state: str = "RUNNING") -> None:
    world.upload(day(number))
    world.settle()
    for run in [run for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]:
        world.emr_says(run.id, state)


def questions(world: World) -> list[int]:
    asked: list[int] = []
    ask = world.targets.emr.status
    world.targets.emr.status = lambda run: (asked.append(world.clock.now()), ask(run))[1]
    return asked


@pytest.mark.parametrize(
    ("pools", "limits"),
    [
        ({}, at_most(1)),
        ({}, {"constraints": [GROUP]}),
        ({"p": {"size": 1}}, {"pool": "p"}),
        ({"p": {"size": 1, "shares": {"flights.clean": {"reserved": 1}}}}, {"pool": "p"}),
    ],
    ids=["workflow", "group", "pool", "share"],
)
def test_a_slot_whose_run_ended_unreported_is_free_within_minute(pools: dict[str, Any], limits: dict[str, Any]) -> None:
    world = world_of(pools, {"daily": partitions(**limits)})
    begin(world, 1)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"  # and its event is lost
    world.pass_by("45s")
    world.upload(day(2))
    world.settle()
    assert len(world.targets.emr.runs) == 1
    began = world.clock.now()

    while len(world.targets.emr.runs) == 1:
        world.pass_by("1s")
        assert world.clock.now() <= began + 70 * SECOND

    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED", "STARTING"]


def test_active_holders_are_polled_once_a_minute_while_job_waits() -> None:
    world = world_of({}, {"daily": partitions(**at_most(1))})
    begin(world, 1)
    world.upload(day(2))
    world.settle()
    asked = questions(world)

    world.pass_by("9m")

    assert 8 <= len(asked) <= 9
    assert min(later - first for first, later in pairwise(asked)) >= 50 * SECOND


def test_no_holder_is_polled_while_no_job_waits() -> None:
    world = world_of({}, {"daily": partitions(**at_most(1))})
    begin(world, 1)
    asked = questions(world)

    world.pass_by("9m")

    assert asked == []


def test_many_holders_are_polled_in_parts_at_the_rate_emr_allows() -> None:
    """Seventy runs are active in a pool, and one more waits. A tick polls fifty of them, the longest unpolled first."""
    names = {f"s{number}": partitions(pool="p") for number in range(71)}
    world = world_of({"p": {"size": 70}}, names, start_burst=100, wake_shards=1)
    begin(world, 1)
    assert len(world.targets.emr.runs) == 70
    for run in world.targets.emr.runs.values():
        run.state = "SUCCESS"
    per_minute: dict[int, int] = {}
    ask = world.targets.emr.status

    def asking(run: Any) -> Any:
        minute = world.clock.now() // MINUTE
        per_minute[minute] = per_minute.get(minute, 0) + 1
        return None  # the answer is that it is still active

    world.targets.emr.status = asking
    world.pass_by("3m")
    assert max(per_minute.values()) <= 50
    world.targets.emr.status = ask
    world.pass_by("2m")

    assert len(world.targets.emr.runs) == 71


def test_a_worker_run_that_holds_a_slot_is_not_polled() -> None:
    world = World()
    world.deploy(flights({"daily": partitions(**at_most(1))}, clean={"target": PULLED}, other={"target": EMR}))
    world.upload(day(1))
    world.settle()
    worker = PullWorker(world, "ann")
    worker.claim()
    worker.beat()
    world.upload(day(2))
    world.settle()
    sent = list(world.hints.sent)

    for _ in range(6):
        worker.beat()
        world.pass_by("20s")

    assert [run.state for run in world.runs("daily")] == ["RUNNING"]
    assert not [ref for _, ref in [*sent, *world.hints.sent] if ref.kind == "run"]
