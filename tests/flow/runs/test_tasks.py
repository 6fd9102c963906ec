"""Runs at ECS, from the start call to the end, which an event or a poll reports (W22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views import logs, views
from tests.flow.runs.test_run_control import ON_FAILURE
from tests.support.ecs_tasks import PULL, TARGET, Task, event_of
from tests.support.state_machines import refused
from tests.support.world import World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "by": ["day"],
    "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
}
TWICE = {"attempts": 2, "delay": "1m"}
DAY = {**TARGET, "command": ["load", "--day={{correlation.day}}"]}


def world_with(target: dict[str, Any] = DAY, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN, "on_failure": ON_FAILURE}, brief={"target": target, **workflow}))
    return world


def begin(world: World, number: int = 1) -> Task:
    """A partition comes, and its task is placed and runs."""
    task = place(world, number)
    world.task_says(task)
    world.settle()
    return task


def place(world: World, number: int = 1) -> Task:
    world.upload(day(number))
    world.settle()
    return list(world.targets.tasks.tasks.values())[-1]


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def active(world: World) -> int:
    return int(world.limit_state("workflow:demo.flights.brief").active)


def last(world: World) -> Run:
    return world.runs("clean")[-1]


def test_w22_a_run_follows_its_task_by_events() -> None:
    world = world_with()
    task = place(world)
    assert (states(world), last(world).target_id) == (["STARTING"], task.arn)
    [own] = task.asked["overrides"]["containerOverrides"]
    assert own["command"] == ["load", "--day=1"]
    assert task.variables["SLUICE_CONTEXT"] == f"s3://control/context/{last(world).run_id}.json"
    assert task.variables["SLUICE_RUN"] == f"{last(world).run_id}-1"

    told = [world.task_says(task)]
    world.clock.pass_by("30m")
    told += [world.task_says(task, 0), world.task_says(task, 0)]
    run = last(world)
    assert told == [
        f"run {run.run_id} is RUNNING",
        f"run {run.run_id} is SUCCEEDED",
        f"run {run.run_id} is already past SUCCEEDED",
    ]
    assert (active(world), world.targets.tasks.calls) == (0, ["RunTask"]), "the event says all"
    billed = views.run_in_full(world.ports, [run])["billed"]
    assert billed is not None and billed["cost_usd"] == pytest.approx(0.5 * 0.04048 + 0.004445, abs=1e-4)


def test_w22_an_event_may_come_before_the_answer_of_a_task() -> None:
    world = world_with()
    world.targets.tasks.lose_answers = 1
    task = place(world)
    assert last(world).target_id is None
    assert "is SUCCEEDED" in world.task_says(task, 0)
    assert (states(world), last(world).target_id) == (["SUCCEEDED"], task.arn)


def test_w22_a_task_of_somebody_else_changes_nothing() -> None:
    world = world_with()
    task = begin(world)
    copy = Task(f"{task.arn}0", {**task.asked, "startedBy": "ada"}, task.created)
    world.targets.tasks.end(copy, 1)
    assert "was not started by Sluice" in world.event(event_of(copy, world.clock.now()))
    assert states(world) == ["RUNNING"]


def test_w22_an_exit_code_is_the_reason_of_a_failure() -> None:
    world = world_with()
    world.task_says(begin(world), 3)
    world.settle()
    assert (states(world), last(world).reason.text) == (["FAILED"], "container job exited with code 3")
    assert [context["events"][0]["status"] for _, context in world.targets.queue.messages] == ["FAILED"]


def test_w22_each_attempt_is_a_task_of_its_own() -> None:
    world = world_with(retries=TWICE)
    first = begin(world)
    world.task_says(first, 1)
    world.pass_by("2m")
    second = list(world.targets.tasks.tasks.values())[-1]
    assert first.asked["clientToken"] != second.asked["clientToken"]
    world.task_says(second, 0)
    assert states(world) == ["RETRYING", "SUCCEEDED"]
    assert "is already past" in world.task_says(first, 0), "a late event of the first attempt"


def test_w22_an_image_that_cannot_be_pulled_fails_the_run() -> None:
    world = world_with()
    task = place(world)
    world.targets.tasks.fails_to_start(task)
    world.event(event_of(task, world.clock.now()))
    assert (states(world), last(world).reason.text, last(world).started_at) == (["FAILED"], PULL, None)


def test_w22_a_task_without_an_exit_code_says_so() -> None:
    world = world_with()
    world.task_says(begin(world), code="EssentialContainerExited", reason="Essential container in task exited")
    assert last(world).reason.text == "Essential container in task exited; container job has no exit code"


@pytest.mark.parametrize(("on", "then"), [("lost", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w22_an_interrupted_spot_task_is_lost(on: str, then: list[str]) -> None:
    world = world_with({**DAY, "capacity_provider": "FARGATE_SPOT"}, retries={**TWICE, "on": [on]})
    world.task_says(begin(world), 143, code="SpotInterruption", reason="Your Spot Task was interrupted.")
    world.pass_by("2m")
    assert (states(world), world.runs("clean")[0].outcome) == (then, "lost")


def test_w21_a_task_that_stays_pending_is_ended_in_time() -> None:
    world = world_with(start_timeout="10m")
    task = place(world)
    task.status = "PENDING"
    world.pass_by("12m")
    assert (states(world), last(world).outcome, active(world)) == (["FAILED"], "timed_out", 0)
    assert (task.status, task.stop_code) == ("STOPPED", "UserInitiated")


def test_w22_an_end_without_an_event_of_a_task_is_polled() -> None:
    world = world_with()
    task = begin(world)
    world.targets.tasks.end(task, 2)
    world.pass_by("12m")
    assert (states(world), last(world).reason.text, active(world)) == (
        ["FAILED"],
        "container job exited with code 2",
        0,
    )


def test_w6_a_polled_task_is_polled_at_its_interval() -> None:
    world = world_with({**DAY, "poll_every": "1m"})
    world.targets.tasks.end(begin(world), 0)
    world.pass_by("2m30s")
    assert states(world) == ["SUCCEEDED"]


def test_w1_a_task_that_ecs_has_forgotten_is_lost() -> None:
    world = world_with(retries={**TWICE, "on": ["lost"]})
    begin(world)
    world.targets.tasks.tasks.clear()
    world.pass_by("12m")
    assert (world.runs("clean")[0].state, world.runs("clean")[0].outcome) == ("RETRYING", "lost")


def test_w6_a_cancelled_run_stops_its_task() -> None:
    world = world_with()
    task = begin(world)
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (task.stop_code, task.stopped_reason) == ("UserInitiated", "Sluice: cancelled by ada")
    assert (states(world), active(world)) == (["CANCELLED"], 0)
    assert last(world).reason.text == "cancelled by ada"


def test_w12_a_task_over_the_timeout_of_its_run_is_stopped() -> None:
    world = world_with(timeout="2h")
    task = begin(world)
    world.pass_by("2h5m")
    assert (task.status, states(world), last(world).outcome) == ("STOPPED", ["FAILED"], "timed_out")


def test_w22_a_stop_in_aws_cancels_the_run() -> None:
    world = world_with()
    world.task_says(begin(world), 143, code="UserInitiated", reason="wrong day")
    assert (states(world), last(world).reason.text) == (["CANCELLED"], "wrong day")


def test_w22_missing_capacity_is_waited_for() -> None:
    world = world_with()
    world.targets.tasks.failures = [{"reason": "Capacity is unavailable at this time."}] * 3
    world.upload(day(1))
    world.settle()
    assert (states(world), active(world)) == (["STARTING"], 1)
    assert last(world).reason.text == "ECS refused for now: Capacity is unavailable at this time."
    world.pass_by("5m")
    assert len(world.targets.tasks.tasks) == 1


def test_w22_a_missing_definition_fails_the_run_at_once() -> None:
    world = world_with(retries=TWICE)
    world.targets.tasks.refusals = [refused("ClientException", "Unable to find task definition: etl")]
    world.upload(day(1))
    world.pass_by("5m")
    assert (states(world), active(world), world.targets.tasks.calls) == (["FAILED"], 0, ["RunTask"])
    assert last(world).reason.text == "ECS refused the start: ClientException: Unable to find task definition: etl"


def test_w10_an_unanswered_start_makes_one_task() -> None:
    world = world_with()
    world.targets.tasks.lose_answers = 2
    world.upload(day(1))
    world.pass_by("5m")
    assert (len(world.targets.tasks.tasks), active(world)) == (1, 1)
    assert last(world).target_id is not None


def test_w15_the_log_of_a_task_names_its_commands() -> None:
    world = world_with()
    task = begin(world)
    answer = logs.of_run(world.ports, last(world).run_id, None, 10)
    assert (answer["streams"], task.arn.rpartition("/")[2] in answer["why"]) == ({}, True)
