"""Runs at EMR on EKS, from the start call to the end, which an event or a poll reports (W22)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from tests.support.eks_runs import TARGET, EksRun
from tests.support.world import World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "by": ["year", "month", "day"],
    "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
}


def begin(lost_answers: int = 0, **workflow: Any) -> tuple[World, EksRun]:
    """A partition comes, and its job run is started."""
    world = World()
    world.deploy(flights({"clean": CLEAN}, brief={"target": TARGET, **workflow}))
    world.targets.eks_runs.lose_answers = lost_answers
    world.upload(day(1))
    world.settle()
    return world, next(iter(world.targets.eks_runs.runs.values()))


def last(world: World) -> Run:
    return world.runs("clean")[-1]


def active(world: World) -> int:
    return int(world.limit_state("workflow:demo.flights.brief").active)


def test_w22_a_run_follows_its_job_run_on_eks() -> None:
    world, made = begin(retries={"attempts": 2, "delay": "1m"})
    assert (last(world).state, last(world).target_id) == ("STARTING", made.target_id)
    world.pass_by("1m")
    assert world.eks_says(made, "RUNNING") == f"run {last(world).run_id} is RUNNING"
    began = world.clock.now()
    world.pass_by("5m")
    world.eks_says(made, "FAILED", "no such column", "USER_ERROR")
    world.pass_by("2m")
    second = list(world.targets.eks_runs.runs.values())[-1]
    first = world.runs("clean")[0]
    assert (first.state, first.started_at) == ("RETRYING", began)
    assert first.reason.text == "no such column (USER_ERROR)" and second.id != made.id
    world.payloads.results[last(world).run_id, 2] = b'{"rows": 7}'
    assert world.eks_says(second, "COMPLETED").endswith("is SUCCEEDED")
    assert (last(world).result, last(world).billed, active(world)) == ({"rows": 7}, (), 0)


def test_w10_unanswered_starts_make_one_job_run_on_eks() -> None:
    world, made = begin(lost_answers=2)
    assert last(world).target_id is None
    assert world.eks_says(made, "RUNNING").endswith("was not started by Sluice"), "its id is not known yet"
    world.pass_by("15m")
    assert (last(world).target_id, last(world).state) == (made.target_id, "RUNNING")
    assert len(world.targets.eks_runs.runs) == 1 and active(world) == 1


def test_w6_a_cancelled_run_stops_its_job_run_on_eks() -> None:
    world, made = begin()
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (made.state, last(world).state, active(world)) == ("CANCELLED", "CANCELLED", 0)


def test_w7_an_end_on_eks_without_an_event_is_polled() -> None:
    world, made = begin()
    world.targets.eks_runs.end(made, "FAILED", failure="CLUSTER_UNAVAILABLE")
    world.pass_by("12m")
    assert (last(world).state, last(world).outcome, active(world)) == ("FAILED", "lost", 0)
