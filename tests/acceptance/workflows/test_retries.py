"""Retries (W1): how many, after which delays and ends. Each attempt is in the history, and a retry waits."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.retries import Retries
from chalicelib.flow.runs import complete
from tests.acceptance.words import day
from tests.support.clock import NOON
from tests.support.schedules import after, partitions
from tests.support.world import EMR, World, flights


def trying(policy: dict[str, Any], *more: dict[str, Any], **fields: Any) -> World:
    world = World()
    schedules = {"a": partitions(workflow="fragile", by=["day"], **fields)}
    schedules |= {f"more{number}": each for number, each in enumerate(more)}
    world.deploy(flights(schedules, fragile={"target": EMR, "retries": policy}))
    world.upload(day(1))
    world.settle()
    return world


def attempts(world: World) -> list[tuple[int, str, int]]:
    """Each attempt as its number, its state, and the seconds after noon at which it was claimed."""
    return [(run.attempt, run.state, (run.claimed_at - NOON) // SECOND) for run in world.runs("a")]


def fails(world: World, span: str) -> None:
    world.finish("FAILED", "broken")
    world.pass_by(span)


def test_w1_backoff_doubles_to_its_cap_and_attempts_are_history() -> None:
    world = trying({"attempts": 5, "delay": "10s", "backoff": "exponential", "max_delay": "30s"})
    for _ in range(5):
        fails(world, "2m")
    claimed = [at for _, _, at in attempts(world)]
    assert [at % 120 for at in claimed] == [0, 10, 20, 30, 30], "after ends that lie two minutes apart"
    assert [(number, state) for number, state, _ in attempts(world)] == [
        *((number, "RETRYING") for number in (1, 2, 3, 4)),
        (5, "FAILED"),
    ]
    tokens = {run.request.client_token for run in world.runs("a")}
    assert len(tokens) == 5, "each attempt has a token of its own"


def test_w1_jitter_comes_from_the_id_within_half_to_full_delay() -> None:
    retries = Retries.model_validate({"attempts": 9, "delay": "40s", "jitter": True})
    delays = {retries.delay_after(1, f"run{number}") for number in range(50)}
    assert len(delays) > 40
    assert all(20 * SECOND <= delay <= 40 * SECOND for delay in delays)
    assert retries.delay_after(1, "run1") == retries.delay_after(1, "run1")


def test_w1_schedule_retries_override_those_of_the_workflow() -> None:
    world = trying({"attempts": 1}, retries={"attempts": 2, "delay": "20s"})
    fails(world, "1m")
    assert attempts(world) == [(1, "RETRYING", 0), (2, "STARTING", 20)]


@pytest.mark.parametrize(("on", "states"), [(["lost"], ["RETRYING", "STARTING"]), (["failed"], ["FAILED"])])
def test_w1_only_the_named_outcomes_are_retried(on: list[str], states: list[str]) -> None:
    world = trying({"attempts": 2, "delay": "1s", "on": on})
    [run] = world.runs("a")
    update = RunUpdate("FAILED", world.clock.now(), "nothing was heard of it", outcome="lost")
    complete.advance_run(world.ports, run.run_id, run.attempt, update)
    world.pass_by("5s")
    assert [run.state for run in world.runs("a")] == states


def test_w1_a_retry_waits_by_priority_where_others_are_aborted() -> None:
    one = [{"type": "concurrency", "max": 1, "on_unmet": "abort"}]
    other = partitions(workflow="fragile", dataset="weather", by=["day"], priority=3)
    world = trying({"attempts": 2, "delay": "10s"}, other, constraints=one, priority=8)
    world.finish("FAILED", "broken")
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    world.pass_by("11s")
    [retry] = [job for job in world.jobs("a") if job.kind == "retry"]
    assert (retry.state, retry.attempt) == ("PENDING_LAUNCH", 2)
    assert str(retry.rank).startswith("1#"), "9 - 8: as urgent as its first attempt"
    world.finish()
    world.settle()
    assert [state for _, state, _ in attempts(world)] == ["RETRYING", "STARTING"]


def test_w1_a_failure_is_announced_only_after_the_last_attempt() -> None:
    world = trying({"attempts": 2, "delay": "10s"}, after("fragile", "join", "FAILED"))
    fails(world, "1m")
    assert world.runs("more0") == []
    fails(world, "1m")
    assert len(world.runs("more0")) == 1


@pytest.mark.parametrize(
    ("retries", "message"),
    [
        ({"attempts": 21}, "20"),
        ({"attempts": 2, "on": ["killed"]}, "failed"),
        ({"attempts": 2, "on": ["lost", "lost"]}, "distinct outcomes"),
        ({"attempts": 2, "delay": "2h", "backoff": "exponential"}, "at least the first delay, 2h, got '1h'"),
    ],
)
def test_w1_contradictory_retries_are_refused(retries: dict[str, Any], message: str) -> None:
    with pytest.raises((SluiceError, ValueError), match=message):
        trying(retries)
