"""W21: a run that was requested and does not begin to run in time is ended on record, and its retries decide."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import MINUTE
from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.runs import actions
from tests.acceptance.words import concurrency, on, partition
from tests.acceptance.workflows.test_dag_limits import TEAM, notices
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.world import EMR, SQS, World, day, flights

AFTER = {"workflow": "notify", "enabled": True,
         "trigger": {"type": "program_status", "workflow": "brief", "statuses": ["FAILED"]}}  # fmt: skip
REASON = "not started: the run was requested and did not begin to run within 30m"


def world_with(target: dict[str, Any] = EMR, schedule: dict[str, Any] | None = None, **workflow: Any) -> World:
    world = World(wake_shards=1, history_shards=1)
    clean = on(partition(), "brief", concurrency(1)) | (schedule or {})
    brief = {"target": target, "start_timeout": "30m", **workflow}
    world.deploy(flights({"clean": clean, "after": AFTER}, brief=brief))
    return world


def begin(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def test_w21_a_run_that_stays_scheduled_is_cancelled() -> None:
    world = world_with(notify=[{"on": ["failed"], "to": TEAM}])
    begin(world)
    world.targets.emr.runs["jr00001"].state = "SCHEDULED"
    world.pass_by("29m")
    assert states(world) == ["STARTING"]
    world.pass_by("2m")
    [run] = world.runs("clean")
    assert world.targets.emr.runs["jr00001"].state == "CANCELLED"
    assert (run.state, run.outcome, run.reason.code, run.reason.text) == (
        "FAILED", "timed_out", "start_timed_out", REASON,
    )  # fmt: skip
    assert world.limit_state("workflow:demo.flights.brief").active == 0
    assert len(world.runs("after")) == 1, "the schedules that wait for a failure get it"
    world.pass_by("2s")
    assert notices(world)[0]["events"][0]["reason"] == REASON


def test_w21_the_retries_decide_what_follows() -> None:
    world = world_with(retries={"attempts": 2, "delay": "1m"})
    begin(world)
    world.pass_by("33m")
    first, second = world.runs("clean")
    assert (first.state, second.state) == ("FAILED", "STARTING") or (first.state, second.state) == (
        "RETRYING",
        "STARTING",
    )
    world.emr_says("jr00002", "RUNNING")
    world.pass_by("2h")
    assert world.runs("clean")[1].state == "RUNNING", "the limit ends with the start"


def test_w21_a_run_that_begins_in_time_goes_on() -> None:
    world = world_with()
    begin(world)
    world.pass_by("20m")
    world.emr_says("jr00001", "RUNNING")
    world.pass_by("1h")
    assert states(world) == ["RUNNING"]


def test_w21_a_start_whose_event_was_lost_is_found() -> None:
    """The target runs it, but no event has said so: a poll finds it before anything is cancelled."""
    world = world_with()
    begin(world)
    world.clock.wait_until(world.clock.now() + 29 * MINUTE)
    world.targets.emr.runs["jr00001"].state = "RUNNING"
    world.clock.wait_until(world.clock.now() + 2 * MINUTE)
    world.tick()
    world.settle()
    assert states(world) == ["RUNNING"]
    assert world.targets.emr.runs["jr00001"].state == "RUNNING"


def test_w21_a_call_without_an_answer_counts() -> None:
    world = world_with()
    world.targets.emr.lose_answers = 1
    begin(world)
    world.pass_by("31m")
    assert states(world) == ["FAILED"]
    assert world.targets.emr.runs["jr00001"].state == "CANCELLED"


def test_w21_a_target_that_is_busy_is_not_asked_for_ever() -> None:
    world = world_with()
    world.targets.emr.answers = [NotNow("throttled")] * 500
    begin(world)
    world.pass_by("31m")
    [run] = world.runs("clean")
    assert (run.state, run.reason.code) == ("FAILED", "start_timed_out")
    assert not world.targets.emr.runs


def test_w21_an_offer_that_no_worker_takes_is_withdrawn() -> None:
    world = world_with(PULLED)
    begin(world)
    world.pass_by("31m")
    [run] = world.runs("clean")
    assert (run.state, run.outcome) == ("FAILED", "timed_out")
    assert run.reason.text == f"{REASON}; waits for a worker of pool demo.{PULLED['pool']}"
    assert PullWorker(world, "w1").claim() == [], "nothing is on offer any more"


def test_w21_a_cancelled_run_ends_as_cancelled() -> None:
    world = world_with()
    begin(world)
    world.pass_by("29m")
    actions.cancel(world.ports, world.runs("clean")[0].run_id, "ann")
    world.pass_by("5m")
    assert states(world) == ["CANCELLED"]


def test_w21_a_job_on_hold_has_not_been_requested() -> None:
    """The limit counts from the start request: a pause, a queue and constraints come before it."""
    world = world_with()
    world.pause("clean")
    begin(world)
    world.pass_by("2h")
    world.resume("clean")
    world.settle()
    assert states(world) == ["STARTING"]
    world.pass_by("29m")
    assert states(world) == ["STARTING"]


def test_w21_an_update_counts_for_later_runs() -> None:
    world = world_with(start_timeout=None)
    begin(world)
    clean = on(partition(), "brief", concurrency(2))
    world.deploy(flights({"clean": clean, "after": AFTER}, brief={"target": EMR, "start_timeout": "1m"}))
    begin(world, 2)
    world.pass_by("3m")
    assert states(world) == ["STARTING", "FAILED"]


@pytest.mark.parametrize("value", ["10s", "31d", "never"])
def test_w21_a_limit_has_bounds(value: str) -> None:
    with pytest.raises(ValidationError):
        Workflow.model_validate({"target": EMR, "start_timeout": value})


def test_w21_a_delivery_has_no_such_limit() -> None:
    with pytest.raises(ValidationError, match="start_timeout only for a target that reports when its runs begin"):
        Workflow.model_validate({"target": SQS, "start_timeout": "1h"})
