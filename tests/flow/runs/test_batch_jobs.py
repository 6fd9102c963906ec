"""Runs at AWS Batch, from SubmitJob to the end, which an event or a poll reports (W22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views import logs, views
from tests.flow.runs.test_executions import CLEAN, TWICE, active, last, states
from tests.flow.runs.test_run_control import ON_FAILURE
from tests.support import batch_jobs
from tests.support.batch_jobs import QUEUE, TARGET, BatchJob
from tests.support.state_machines import refused
from tests.support.world import World, day, flights


def world_with(target: dict[str, Any] = TARGET, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN, "on_failure": ON_FAILURE}, brief={"target": target, **workflow}))
    return world


def submit(world: World, number: int = 1) -> BatchJob:
    """A partition comes, and its job is submitted."""
    world.upload(day(number))
    world.settle()
    return list(world.targets.batch_jobs.jobs.values())[-1]


def begin(world: World, number: int = 1) -> BatchJob:
    """A partition comes, and its job begins."""
    made = submit(world, number)
    world.batch_says(made, "RUNNING")
    world.settle()
    return made


def first(world: World) -> Run:
    return world.runs("clean")[0]


def test_w22_a_run_follows_its_batch_job_by_events() -> None:
    world = world_with()
    made = submit(world)
    assert (states(world), last(world).target_id) == (["STARTING"], made.id)
    world.clock.pass_by("40s")
    began = world.clock.now()
    answer = [world.batch_says(made, "RUNNING")]
    world.clock.pass_by("90s")
    answer += [world.batch_says(made, "SUCCEEDED", exitCode=0) for _ in range(2)]

    run = last(world)
    assert answer == [
        f"run {run.run_id} is RUNNING",
        f"run {run.run_id} is SUCCEEDED",
        f"run {run.run_id} is already past SUCCEEDED",
    ]
    assert (run.started_at, run.ended_at) == (began, began + 90_000)
    assert (active(world), world.targets.batch_jobs.calls) == (0, ["SubmitJob"]), "the event says all"


def test_w22_a_batch_job_gets_the_values_of_its_run() -> None:
    world = world_with({**TARGET, "command": ["load", "{{events.0.partition.day}}", "{{properties.depth}}"]})
    made = begin(world, 7)
    assert made.request["containerOverrides"]["command"] == ["load", "7", "1"]
    assert made.variable("SLUICE_CONTEXT") == f"s3://control/context/{last(world).run_id}.json"
    assert made.variable("SLUICE_RUN") == f"{last(world).run_id}-1"
    assert "result_uri" in world.context(last(world))


def test_w18_the_result_that_a_batch_job_wrote_is_kept() -> None:
    world = world_with()
    made = begin(world)
    world.payloads.results[last(world).run_id, 1] = b'{"rows": 7}'
    world.batch_says(made, "SUCCEEDED", exitCode=0)
    assert last(world).result == {"rows": 7}


def test_w22_a_failed_batch_job_says_why() -> None:
    world = world_with()
    world.batch_says(begin(world), "FAILED", "Essential container in task exited", exitCode=3)
    world.settle()
    assert (states(world), last(world).reason.text) == (
        ["FAILED"],
        "Essential container in task exited (exit code 3)",
    )
    assert [context["events"][0]["status"] for _, context in world.targets.queue.messages] == ["FAILED"]


def test_w22_an_image_that_cannot_be_pulled_fails_the_run() -> None:
    world = world_with(retries=TWICE)
    made = submit(world)
    why = "CannotPullContainerError: pull image manifest has been retried 5 time(s): not found"
    world.batch_says(made, "FAILED", "Task failed to start", reason=why)
    world.pass_by("2m")
    assert (states(world), first(world).reason.text) == (["RETRYING", "STARTING"], f"Task failed to start: {why}")
    assert first(world).started_at is None


@pytest.mark.parametrize(
    ("why", "outcome"),
    [("Job attempt duration exceeded timeout", "timed_out"), ("Host EC2 (instance i-1) terminated.", "lost")],
)
def test_w22_the_outcome_of_a_batch_job_decides_on_a_retry(why: str, outcome: str) -> None:
    world = world_with(retries={**TWICE, "on": [outcome]})
    world.batch_says(begin(world), "FAILED", why)
    world.pass_by("2m")
    assert (states(world), first(world).outcome) == (["RETRYING", "STARTING"], outcome)
    made = list(world.targets.batch_jobs.jobs.values())
    assert len({each.name for each in made}) == 2, "each attempt is a job of its own"
    assert [each.request["retryStrategy"] for each in made] == [{"attempts": 1}] * 2


def test_h1_the_bill_of_a_batch_job_comes_with_its_end() -> None:
    world = world_with({**TARGET, "vcpus": 2, "memory_mib": 4_096})
    made = begin(world)
    world.clock.pass_by("30m")
    world.batch_says(made, "SUCCEEDED", exitCode=0)
    billed = views.run_in_full(world.ports, [last(world)])["billed"]
    assert billed is not None
    assert (billed["vcpu_hours"], billed["memory_gb_hours"]) == (1, 2)
    assert billed["cost_usd"] == pytest.approx(0.04048 + 2 * 0.004445)


def test_w22_a_batch_event_may_come_before_the_answer() -> None:
    world = world_with()
    world.targets.batch_jobs.lose_answers = 1
    made = submit(world)
    assert last(world).target_id is None
    assert "is SUCCEEDED" in world.batch_says(made, "SUCCEEDED")
    assert (states(world), last(world).target_id) == (["SUCCEEDED"], made.id)
    world.pass_by("12m")
    assert len(world.targets.batch_jobs.jobs) == 1


def test_w22_a_foreign_batch_job_changes_nothing() -> None:
    world = world_with()
    ours = begin(world)
    jobs = world.targets.batch_jobs
    theirs = BatchJob("theirs", {**ours.request, "jobName": f"{ours.name}-copy"}, ours.created, "FAILED")
    assert world.event(batch_jobs.event_of(jobs, theirs)) == "theirs of batch was not started by Sluice"
    assert (states(world), jobs.calls) == (["RUNNING"], ["SubmitJob"]), "no engine is asked about an unknown job"


@pytest.mark.parametrize("lost", [1, 2])
def test_w10_an_unanswered_submit_makes_one_job(lost: int) -> None:
    world = world_with()
    world.targets.batch_jobs.lose_answers = lost
    submit(world)
    world.pass_by("5m")
    assert len(world.targets.batch_jobs.jobs) == 1
    assert world.targets.batch_jobs.calls[:2] == ["SubmitJob", "ListJobs"]
    assert last(world).target_id == next(iter(world.targets.batch_jobs.jobs))


def test_w10_a_job_that_is_listed_late_is_not_submitted_again() -> None:
    """ListJobs shows a job up to half a minute after it was submitted; the search waits for a minute."""
    world = world_with()
    jobs = world.targets.batch_jobs
    jobs.lose_answers = 1
    made = submit(world)
    made.shown = False
    world.pass_by("30s")
    assert jobs.calls == ["SubmitJob"], "no search and no call for a minute"
    made.shown = True
    world.pass_by("5m")
    assert (len(jobs.jobs), last(world).target_id) == (1, made.id)


def test_w10_a_lost_submit_that_made_no_job_is_repeated() -> None:
    world = world_with()
    world.targets.batch_jobs.refusals = [refused("ServerException", status=500)]
    world.upload(day(1))
    world.settle()
    world.pass_by("5m")
    assert world.targets.batch_jobs.calls[:3] == ["SubmitJob", "ListJobs", "SubmitJob"]
    assert len(world.targets.batch_jobs.jobs) == 1


def test_w7_the_end_of_a_batch_job_without_an_event_is_polled() -> None:
    world = world_with()
    made = begin(world)
    world.targets.batch_jobs.end(made, "FAILED", "Essential container in task exited", exitCode=1)
    world.pass_by("12m")
    assert (states(world), active(world)) == (["FAILED"], 0)
    assert last(world).reason.text == "Essential container in task exited (exit code 1)"


def test_w6_a_batch_job_is_polled_at_its_interval() -> None:
    world = world_with({**TARGET, "poll_every": "1m"})
    made = begin(world)
    world.targets.batch_jobs.end(made, "SUCCEEDED")
    world.pass_by("2m30s")
    assert states(world) == ["SUCCEEDED"]


@pytest.mark.parametrize("begun", [False, True])
def test_w6_a_cancelled_run_terminates_its_batch_job(begun: bool) -> None:
    world = world_with()
    made = begin(world) if begun else submit(world)
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.pass_by("3m")
    assert (made.status, made.why) == ("FAILED", "Sluice: cancelled by ada")
    assert (states(world), last(world).reason.text, active(world)) == (["CANCELLED"], "cancelled by ada", 0)


def test_w12_a_batch_job_over_its_timeout_is_terminated() -> None:
    world = world_with(timeout="2h")
    made = begin(world)
    world.pass_by("2h5m")
    assert made.status == "FAILED"
    assert (states(world), last(world).outcome) == (["FAILED"], "timed_out")
    assert last(world).reason.text == "timed out: the run took longer than 2h and was cancelled"


def test_w21_a_batch_job_that_stays_runnable_is_ended() -> None:
    """No compute environment has room for it, so it would stay RUNNABLE for ever."""
    world = world_with(start_timeout="30m", retries={**TWICE, "on": ["timed_out"]})
    made = submit(world)
    made.status = "RUNNABLE"
    world.pass_by("25m")
    assert states(world) == ["STARTING"]
    world.pass_by("10m")
    assert (made.status, made.began) == ("FAILED", None)
    assert (states(world)[0], first(world).outcome) == ("RETRYING", "timed_out")
    assert len(world.targets.batch_jobs.jobs) == 2


def test_c12_a_disabled_job_queue_holds_the_run() -> None:
    world = world_with()
    world.targets.batch_jobs.disabled = {QUEUE}
    world.upload(day(1))
    world.settle()
    assert (states(world), active(world)) == (["STARTING"], 1)
    expected = f"AWS Batch refused for now: Job queue {QUEUE} is not in state ENABLED"
    assert last(world).reason.text.startswith(expected)
    world.targets.batch_jobs.disabled = set()
    world.pass_by("15m")
    assert len(world.targets.batch_jobs.jobs) == 1


def test_c12_a_job_definition_that_does_not_exist_fails_the_run() -> None:
    world = world_with(retries=TWICE)
    why = "JobDefinition name sluice-target-etl:3 does not exist or is not in ACTIVE status"
    world.targets.batch_jobs.refusals = [refused("ClientException", why)]
    world.upload(day(1))
    world.pass_by("5m")
    assert (states(world), active(world), world.targets.batch_jobs.calls) == (["FAILED"], 0, ["SubmitJob"])
    assert last(world).reason.text == f"AWS Batch refused the start: ClientException: {why}"


def test_w22_a_value_that_a_run_lacks_fails_it_with_its_path() -> None:
    world = world_with({**TARGET, "command": ["load", "{{correlation.day}}"]})
    world.upload(day(1))
    world.pass_by("2m")
    assert (states(world), world.targets.batch_jobs.calls) == (["FAILED"], [])
    assert last(world).reason.text.startswith("command.1: expected a run whose context has correlation.day")


def test_w1_a_batch_job_that_has_gone_is_lost() -> None:
    world = world_with(retries={**TWICE, "on": ["lost"]})
    begin(world)
    world.targets.batch_jobs.jobs.clear()
    world.pass_by("12m")
    assert (first(world).state, first(world).outcome) == ("RETRYING", "lost")


def test_w15_the_log_of_a_batch_run_names_its_command() -> None:
    world = world_with()
    made = begin(world)
    answer = logs.of_run(world.ports, last(world).run_id, None, 10)
    assert (answer["streams"], f"--jobs {made.id} " in answer["why"]) == ({}, True)
