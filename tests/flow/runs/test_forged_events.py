"""An event moves a run by its name only at the target and the place of the run. Anybody who may start something in the
account can give it the name of any run (W7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.targets.registry import of_event
from chalicelib.flow.runs import complete
from tests.flow.runs import test_batch_jobs, test_executions, test_followed, test_tasks
from tests.support import batch_jobs, ecs_tasks, state_machines
from tests.support.batch_jobs import BatchJob
from tests.support.world import World

FOREIGN = "was not started by Sluice"


def unanswered_task() -> tuple[World, ecs_tasks.Task]:
    world = test_tasks.world_with()
    world.targets.tasks.lose_answers = 1
    return world, test_tasks.place(world)


def test_w7_a_task_of_another_cluster_ends_no_run() -> None:
    world, task = unanswered_task()
    forged = replace(task, arn=f"{ecs_tasks.PLACE}:task/theirs/{7:032x}")
    assert FOREIGN in world.task_says(forged, 1)
    assert test_tasks.states(world) == ["STARTING"]
    assert "is FAILED" in world.task_says(task, 1)


def test_w7_a_second_task_of_a_run_does_not_end_it() -> None:
    world = test_tasks.world_with()
    task = test_tasks.begin(world)
    forged = replace(task, arn=f"{task.arn[:-1]}f")
    assert FOREIGN in world.task_says(forged, 1)
    assert test_tasks.states(world) == ["RUNNING"]


def test_w7_a_job_of_another_queue_ends_no_run() -> None:
    world = test_batch_jobs.world_with()
    world.targets.batch_jobs.lose_answers = 1
    job = test_batch_jobs.submit(world)
    theirs = {**job.request, "jobQueue": f"{batch_jobs.ACCOUNT}:job-queue/theirs"}
    assert FOREIGN in world.batch_says(replace(job, id="forged", request=theirs), "FAILED")
    assert test_executions.states(world) == ["STARTING"]
    assert "is FAILED" in world.batch_says(job, "FAILED")


def test_w7_a_job_ends_no_run_of_another_type_of_target() -> None:
    world, task = unanswered_task()
    run = test_tasks.last(world)
    request: dict[str, Any] = {
        "jobName": f"sluice-clean-{run.request.client_token}",
        "jobQueue": f"{batch_jobs.ACCOUNT}:job-queue/{task.asked['cluster']}",
        "jobDefinition": batch_jobs.DEFINITION,
        "containerOverrides": {"environment": [{"name": "SLUICE_RUN", "value": f"{run.run_id}-1"}]},
    }
    forged = BatchJob("forged", request, world.clock.now())
    assert FOREIGN in world.batch_says(forged, "FAILED")
    assert test_tasks.states(world) == ["STARTING"]


def test_w7_an_execution_of_another_machine_ends_no_run() -> None:
    world = test_executions.world_with()
    world.targets.machines.lose_answers = 1
    world.upload(test_executions.day(1))
    world.settle()
    [made] = world.targets.machines.executions.values()
    arn = made.arn.replace("sluice-target-etl", "theirs")
    forged = replace(made, arn=arn, machine=state_machines.MACHINE.replace("sluice-target-etl", "theirs"))
    world.targets.machines.executions[arn] = forged
    assert FOREIGN in world.execution_says(forged, "FAILED")
    assert test_executions.states(world) == ["STARTING"]
    assert "is FAILED" in world.execution_says(made, "FAILED")


def test_w7_a_job_run_of_another_application_ends_no_run() -> None:
    world = test_followed.world_with()
    world.targets.emr.lose_answers = 1
    world.upload(test_executions.day(1))
    world.settle()
    event = {"source": "aws.emr-serverless", "time": "2026-03-02T12:00:06Z"}
    detail = {"applicationId": "theirs", "jobRunId": "jr00001", "state": "SUCCESS"}
    [run] = world.runs("clean")
    change = replace(of_event(event).read_event({**event, "detail": detail}), run_name=f"{run.run_id}-1")
    assert FOREIGN in complete.on_state_change(world.ports, change)
    assert test_followed.states(world) == ["STARTING"]


@pytest.mark.parametrize("name", ["", "x", "-1", "a-", "a-x", "a-²", "a-٣", "a-1234567"])
def test_w7_a_text_that_names_no_attempt_is_no_name(name: str) -> None:
    assert ids.attempt_named(name) is None
    assert ids.attempt_named("demo.flights.clean.1.a-2") == ("demo.flights.clean.1.a", 2)
