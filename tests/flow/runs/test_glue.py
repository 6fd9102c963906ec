"""Runs at AWS Glue, from the start call to the end, which an event or a poll reports (W22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.aws.targets.glue import MAX_PAGES
from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views import logs
from chalicelib.flow.views.views import run_view
from tests.support.glue import JOB, TARGET, GlueJob, JobRun, event_of
from tests.support.state_machines import refused
from tests.support.world import World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "by": ["year", "month", "day"],
    "properties": {"depth": 1},
    "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
}
TWICE = {"attempts": 2, "delay": "1m"}


def world_with(target: dict[str, Any] = TARGET, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN}, brief={"target": target, **workflow}))
    return world


def begin(world: World, number: int = 1) -> JobRun:
    """A partition comes, its job run begins, and a poll sees it."""
    world.upload(day(number))
    world.settle()
    made = list(world.targets.jobs.runs.values())[-1]
    made.state = "RUNNING"
    world.pass_by("3m")
    return made


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def active(world: World) -> int:
    return int(world.limit_state("workflow:demo.flights.brief").active)


def last(world: World) -> Run:
    return world.runs("clean")[-1]


def test_w22_a_run_follows_its_job_run() -> None:
    world = world_with({**TARGET, "arguments": {"--day": "{{correlation.day}}", "--depth": "{{properties.depth}}"}})
    world.upload(day(1))
    world.settle()
    [made] = world.targets.jobs.runs.values()
    began = world.clock.now()
    assert (states(world), last(world).target_id) == (["STARTING"], made.target_id)
    assert made.arguments["--day"] == "1" and made.arguments["--depth"] == "1"
    assert made.arguments["--sluice-context"] == f"s3://control/context/{last(world).run_id}.json"
    made.state = "RUNNING"
    world.pass_by("3m")
    assert states(world) == ["RUNNING"]

    world.pass_by("3m")
    answer = [world.job_run_says(made, "SUCCEEDED") for _ in range(2)]
    run = last(world)
    assert answer == [f"run {run.run_id} is SUCCEEDED", f"run {run.run_id} is already past SUCCEEDED"]
    assert (run.started_at, run.ended_at, active(world)) == (began, began + 360_000, 0)
    billed = run_view(run, world.ports.settings.prices)["billed"]
    assert billed is not None and (billed["dpu_hours"], billed["cost_usd"]) == (1.0, 0.44)


def test_w22_a_failure_has_the_message_of_glue_as_its_reason() -> None:
    world = world_with()
    world.job_run_says(begin(world), "FAILED", "Error Category: OUT_OF_MEMORY_ERROR; no memory")
    assert (states(world), last(world).reason.text) == (["FAILED"], "Error Category: OUT_OF_MEMORY_ERROR; no memory")


def test_w22_an_event_counts_although_the_poll_fails() -> None:
    world = world_with()
    made = begin(world)
    world.targets.jobs.refusals = [refused("ThrottlingException")]
    world.job_run_says(made, "FAILED", "no disk")
    assert (states(world), last(world).reason.text, last(world).billed) == (["FAILED"], "no disk", ())
    world.pass_by("3m")
    assert any(last(world).billed), "the bill is asked for again"


def test_w22_an_event_of_a_foreign_job_run_changes_nothing() -> None:
    world = world_with()
    ours = begin(world)
    calls = len(world.targets.jobs.calls)
    theirs = JobRun("jr_theirs", JOB, ours.arguments, ours.began, {}, "FAILED", ours.began)
    answer = world.event(event_of(theirs, world.clock.now()))
    assert answer == f"{theirs.target_id} of glue was not started by Sluice"
    assert (states(world), len(world.targets.jobs.calls)) == (["RUNNING"], calls), "nobody asks Glue about it"


@pytest.mark.parametrize(("on", "then"), [("timed_out", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w22_a_timeout_of_glue_is_a_timeout(on: str, then: list[str]) -> None:
    world = world_with(retries={**TWICE, "on": [on]})
    world.job_run_says(begin(world), "TIMEOUT")
    world.pass_by("2m")
    assert (states(world), world.runs("clean")[0].outcome) == (then, "timed_out")
    assert len(world.targets.jobs.runs) == len(then), "each attempt is a job run of its own"


def test_w22_a_stop_in_aws_is_a_cancel() -> None:
    world = world_with()
    world.job_run_says(begin(world), "STOPPED")
    assert (states(world), active(world)) == (["CANCELLED"], 0)


def test_w7_an_end_of_a_job_run_without_an_event_is_polled() -> None:
    world = world_with()
    made = begin(world)
    world.targets.jobs.end(made, "FAILED", "no disk")
    world.pass_by("12m")
    assert (states(world), last(world).reason.text, active(world)) == (["FAILED"], "no disk", 0)


def test_w6_a_polled_job_run_is_polled_at_its_interval() -> None:
    world = world_with({**TARGET, "poll_every": "1m"})
    made = begin(world)
    world.targets.jobs.end(made, "SUCCEEDED")
    world.pass_by("2m")
    assert states(world) == ["SUCCEEDED"]


def test_w6_a_cancelled_run_stops_its_job_run() -> None:
    world = world_with()
    made = begin(world)
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (made.state, states(world), active(world)) == ("STOPPED", ["CANCELLED"], 0)
    assert "cancelled by ada" in last(world).reason.text


def test_w6_a_stop_that_glue_refuses_is_repeated() -> None:
    world = world_with()
    made = begin(world)
    world.targets.jobs.stop_errors = ["ThrottlingException"]
    with pytest.raises(ExceptionGroup):
        actions.cancel(world.ports, last(world).run_id, "ada")
        world.settle()
    assert (made.state, active(world)) == ("RUNNING", 1)
    world.pass_by("5m")
    assert (made.state, states(world), active(world)) == ("STOPPED", ["CANCELLED"], 0)


def test_w12_a_job_run_over_its_timeout_is_stopped() -> None:
    world = world_with(timeout="2h")
    made = begin(world)
    assert made.asked["Timeout"] == 125
    world.pass_by("2h5m")
    assert (made.state, states(world), last(world).outcome) == ("STOPPED", ["FAILED"], "timed_out")


def test_w21_a_job_run_that_waits_at_glue_is_ended_in_time() -> None:
    world = world_with(start_timeout="10m")
    world.upload(day(1))
    world.settle()
    [made] = world.targets.jobs.runs.values()
    made.state = "WAITING"
    world.pass_by("15m")
    assert (made.state, states(world), last(world).outcome) == ("STOPPED", ["FAILED"], "timed_out")


def test_c12_a_job_at_its_concurrency_is_called_again() -> None:
    world = world_with()
    world.targets.jobs.jobs[JOB] = GlueJob(concurrent=0)
    world.upload(day(1))
    world.settle()
    assert (states(world), active(world)) == (["STARTING"], 1)
    assert "maximum concurrency" in last(world).reason.text
    world.targets.jobs.jobs[JOB].concurrent = 1
    world.pass_by("2m")
    assert (states(world), len(world.targets.jobs.runs)) == (["STARTING"], 1)
    assert last(world).target_id is not None


@pytest.mark.parametrize("lost", [1, 2])
def test_w10_unanswered_starts_make_one_job_run(lost: int) -> None:
    """Glue has no token: the next call waits until a search shows what this one has started."""
    world = world_with()
    world.targets.jobs.lose_answers, world.targets.jobs.hide_starts = lost, 50_000
    world.upload(day(1))
    world.pass_by("5m")
    assert len(world.targets.jobs.runs) == 1
    assert (states(world), active(world)) == (["STARTING"], 1)
    assert last(world).target_id == next(iter(world.targets.jobs.runs.values())).target_id
    assert world.targets.jobs.calls.count("StartJobRun") == 1


def test_w10_an_unanswered_job_run_that_ended_is_not_repeated() -> None:
    world = world_with()
    world.targets.jobs.lose_answers = 1
    world.upload(day(1))
    world.settle()
    [made] = world.targets.jobs.runs.values()
    assert world.job_run_says(made, "SUCCEEDED").endswith("was not started by Sluice"), "its id is not known yet"
    world.pass_by("15m")
    assert (len(world.targets.jobs.runs), states(world), active(world)) == (1, ["SUCCEEDED"], 0)


@pytest.mark.parametrize(("ends", "state"), [("cancel", "CANCELLED"), ("disable", "ABORTED"), ("too late", "FAILED")])
def test_w10_a_run_ends_where_no_search_is_possible(ends: str, state: str) -> None:
    """The job has too many runs since the first call, and only more later. The run must not keep its slot for ever, and
    no other attempt may run beside what the call may have started."""
    world = world_with(start_timeout="10m", retries={**TWICE, "on": ["timed_out"]})
    glue = world.targets.jobs
    glue.lose_answers, glue.page = 1, 1
    world.upload(day(1))
    world.settle()
    for number in range(MAX_PAGES):
        glue.start_job_run(JobName=JOB, Arguments={"--sluice-run": f"other-{number}"})
    glue.calls.clear()
    world.pass_by("2m")
    assert states(world) == ["STARTING"]
    if ends == "cancel":
        actions.cancel(world.ports, last(world).run_id, "ada")
    if ends == "disable":
        world.disable("clean")
    world.pass_by("12m")
    assert (states(world), active(world)) == ([state], 0)
    assert "it may run at the target all the same, which could not be searched" in last(world).reason.text
    assert "StartJobRun" not in glue.calls


def test_w10_a_refused_run_ends_where_no_search_is_possible() -> None:
    """The first search finds nothing, the call is refused, and the search after it is not possible."""
    world = world_with(retries=TWICE)
    glue, more = world.targets.jobs, iter([{}])
    glue.lose_answers = 1
    world.upload(day(1))
    world.settle()
    del glue.jobs[JOB]
    glue.get_job_runs = lambda **asked: {"JobRuns": [], **next(more, {"NextToken": "1"})}  # type: ignore[method-assign]
    world.pass_by("2m")
    assert (states(world), active(world)) == (["FAILED"], 0)
    assert "Failed to find job" in last(world).reason.text
    assert "which could not be searched" in last(world).reason.text


def test_w1_a_job_run_that_is_gone_is_lost() -> None:
    world = world_with(retries={**TWICE, "on": ["lost"]})
    begin(world)
    world.targets.jobs.runs.clear()
    world.pass_by("12m")
    assert (world.runs("clean")[0].state, world.runs("clean")[0].outcome) == ("RETRYING", "lost")


def test_w15_the_log_of_a_job_run_names_its_location() -> None:
    world = world_with()
    made = begin(world)
    answer = logs.of_run(world.ports, last(world).run_id, None, 10)
    assert (answer["streams"], made.id in str(answer["why"])) == ({}, True)


def test_w18_a_script_of_glue_hands_on_a_result() -> None:
    world = world_with()
    made = begin(world)
    uri = world.context(last(world))["result_uri"]
    assert uri.startswith("s3://control/results/")
    world.payloads.results[last(world).run_id, last(world).attempt] = b'{"rows": 7}'
    world.job_run_says(made, "SUCCEEDED")
    assert last(world).result == {"rows": 7}
