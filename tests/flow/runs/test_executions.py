"""Runs at Step Functions, from the start call to the end, which an event or a poll reports (W16)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views import logs
from tests.flow.runs.test_run_control import ON_FAILURE
from tests.support.state_machines import MACHINE, TARGET, Execution, event_of, refused
from tests.support.world import World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "properties": {"depth": 1},
    "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
}
TWICE = {"attempts": 2, "delay": "1m"}


def world_with(target: dict[str, Any] = TARGET, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN, "on_failure": ON_FAILURE}, brief={"target": target, **workflow}))
    return world


def begin(world: World, number: int = 1) -> Execution:
    """A partition comes, and its execution begins."""
    world.upload(day(number))
    world.settle()
    made = list(world.targets.machines.executions.values())[-1]
    world.execution_says(made, "RUNNING")
    world.settle()
    return made


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def active(world: World) -> int:
    return int(world.limit_state("workflow:demo.flights.brief").active)


def last(world: World) -> Run:
    return world.runs("clean")[-1]


def test_w16_a_run_follows_its_execution_by_events() -> None:
    world = world_with()
    world.upload(day(1))
    world.settle()
    [made] = world.targets.machines.executions.values()
    began = world.clock.now()
    assert (states(world), last(world).target_id) == (["STARTING"], made.arn)

    answer = [world.execution_says(made, "RUNNING")]
    world.clock.pass_by("2500ms")
    answer += [world.execution_says(made, status) for status in ("SUCCEEDED", "SUCCEEDED")]
    answer.append(world.execution_says(made, "RUNNING"))

    run = last(world)
    assert answer == [
        f"run {run.run_id} is RUNNING",
        f"run {run.run_id} is SUCCEEDED",
        f"run {run.run_id} is already past SUCCEEDED",
        f"run {run.run_id} is already past RUNNING",
    ]
    assert (run.started_at, run.ended_at) == (began, began + 2_500)
    assert active(world) == 0
    assert world.targets.machines.calls == ["StartExecution"], "the event says all"


def test_w16_the_input_has_the_properties_and_the_events() -> None:
    world = world_with()
    made = begin(world)
    answer = json.loads(made.input)
    assert answer["context"] == world.context(last(world))
    assert answer["context"]["properties"] == {"depth": 1}
    assert answer["context"]["events"][0]["partition"] == {"year": "2013", "month": "1", "day": "1"}
    assert answer["sluice"]["context_uri"] == f"s3://control/context/{last(world).run_id}.json"


@pytest.mark.parametrize("given", ["whole", "too large for the event"])
def test_w16_an_event_may_come_before_the_answer(given: str) -> None:
    world = world_with()
    world.targets.machines.lose_answers = 1
    world.upload(day(1))
    world.settle()
    [made] = world.targets.machines.executions.values()
    assert last(world).target_id is None
    left_out: dict[str, Any] = {} if given == "whole" else {"input": None, "inputDetails": {"included": False}}
    world.targets.machines.end(made, "SUCCEEDED")
    assert "is SUCCEEDED" in world.event(event_of(made, world.clock.now(), **left_out))
    assert (states(world), last(world).target_id) == (["SUCCEEDED"], made.arn)


def test_w16_a_foreign_execution_changes_nothing() -> None:
    world = world_with()
    ours = begin(world)
    theirs = Execution(f"{ours.arn}-copy", MACHINE, f"{ours.name}-copy", ours.input, ours.began)
    world.targets.machines.executions[theirs.arn] = theirs
    assert world.execution_says(theirs, "FAILED") == f"{theirs.arn} of step_functions was not started by Sluice"
    assert states(world) == ["RUNNING"]


def test_w16_a_failure_has_error_and_cause_as_its_reason() -> None:
    world = world_with()
    world.execution_says(begin(world), "FAILED", error="States.TaskFailed", cause="no disk")
    world.settle()
    assert (states(world), last(world).reason.text) == (["FAILED"], "States.TaskFailed: no disk")
    assert [context["events"][0]["status"] for _, context in world.targets.queue.messages] == ["FAILED"]
    assert "DescribeExecution" not in world.targets.machines.calls


def test_w16_an_abort_in_aws_shows_its_reason() -> None:
    world = world_with()
    world.execution_says(begin(world), "ABORTED", error="Eve", cause="wrong day")
    assert (states(world), last(world).reason.text) == (["CANCELLED"], "Eve: wrong day")


@pytest.mark.parametrize(("on", "then"), [("timed_out", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w16_a_timeout_of_the_state_machine_is_a_timeout(on: str, then: list[str]) -> None:
    world = world_with(retries={**TWICE, "on": [on]})
    world.execution_says(begin(world), "TIMED_OUT")
    world.pass_by("2m")
    assert (states(world), world.runs("clean")[0].outcome) == (then, "timed_out")
    assert len(world.targets.machines.executions) == len(then), "each attempt is an execution of its own"


def test_w7_an_end_without_an_event_is_polled() -> None:
    world = world_with()
    made = begin(world)
    world.targets.machines.end(made, "FAILED", "E", "no disk")
    world.pass_by("12m")
    assert (states(world), last(world).reason.text, active(world)) == (["FAILED"], "E: no disk", 0)


def test_w7_the_execution_that_holds_an_awaited_slot_is_polled() -> None:
    world = world_with()
    made = begin(world)
    world.upload(day(2))
    world.settle()
    world.targets.machines.end(made, "SUCCEEDED")
    world.pass_by("2m30s")
    assert states(world) == ["SUCCEEDED", "STARTING"]


def test_w7_many_executions_are_polled_at_ten_a_second() -> None:
    world = World()
    world.deploy(flights({"clean": {**CLEAN, "constraints": []}}, brief={"target": TARGET}))
    for number in range(1, 61):
        world.upload(day(number))
        world.settle()
    world.clock.pass_by("3m")
    asked: list[int] = []
    began, describe = world.clock.now(), world.targets.machines.describe_execution
    world.targets.machines.describe_execution = lambda **named: (
        asked.append(world.clock.now() - began),
        describe(**named),
    )[1]
    world.tick()
    world.pass_by("50s")
    assert Counter(asked) == {0: 50, 5 * SECOND: 10}
    assert set(states(world)) == {"RUNNING"}


def test_w6_a_polled_execution_is_polled_at_its_interval() -> None:
    world = world_with({**TARGET, "poll_every": "1m"})
    made = begin(world)
    world.targets.machines.end(made, "SUCCEEDED")
    world.pass_by("2m30s")
    assert states(world) == ["SUCCEEDED"]


def test_w6_a_cancelled_run_stops_its_step_functions_execution() -> None:
    world = world_with()
    made = begin(world)
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (made.status, made.error, made.cause) == ("ABORTED", "Sluice.Stopped", "cancelled by ada")
    assert (states(world), active(world)) == (["CANCELLED"], 0)
    assert "cancelled by ada" in last(world).reason.text


def test_w6_a_cancel_just_after_the_start_keeps_the_slot() -> None:
    """DescribeExecution does not show the execution yet: the run has not ended before the stop is seen."""
    world = world_with()
    world.upload(day(1))
    world.settle()
    [made] = world.targets.machines.executions.values()
    made.shown = False
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (states(world), active(world), made.status) == (["STARTING"], 1, "RUNNING")
    made.shown = True
    world.pass_by("12m")
    assert (states(world), active(world), made.status) == (["CANCELLED"], 0, "ABORTED")


def test_w12_a_run_over_its_timeout_is_stopped() -> None:
    world = world_with(timeout="2h")
    made = begin(world)
    world.pass_by("2h5m")
    assert made.status == "ABORTED"
    assert (states(world), last(world).outcome) == (["FAILED"], "timed_out")
    assert last(world).reason.text == "timed out: the run took longer than 2h and was cancelled"


def test_c12_a_throttled_start_is_repeated_as_the_same() -> None:
    world = world_with()
    world.targets.machines.refusals = [refused("ThrottlingException"), refused("ExecutionLimitExceeded")]
    world.upload(day(1))
    world.settle()
    assert (states(world), active(world)) == (["STARTING"], 1)
    assert last(world).reason.text.startswith("Step Functions refused for now: ")
    world.pass_by("2m")
    assert len(world.targets.machines.executions) == 1
    assert world.targets.machines.calls[:3] == ["StartExecution"] * 3


def test_c12_a_start_that_cannot_succeed_is_not_repeated() -> None:
    world = world_with(retries=TWICE)
    world.targets.machines.refusals = [refused("StateMachineDoesNotExist", "no such machine")]
    world.upload(day(1))
    world.pass_by("5m")
    assert (states(world), active(world)) == (["FAILED"], 0)
    assert last(world).reason.text == "Step Functions refused the start: StateMachineDoesNotExist: no such machine"
    assert world.targets.machines.calls == ["StartExecution"]


def test_w10_an_unanswered_start_makes_one_execution() -> None:
    world = world_with()
    world.targets.machines.lose_answers = 2
    world.upload(day(1))
    world.pass_by("5m")
    assert len(world.targets.machines.executions) == 1
    assert (states(world), active(world)) == (["RUNNING"], 1)


def test_w10_an_unanswered_start_that_ended_is_not_repeated() -> None:
    """Its name is taken: the repeated call is refused, and the execution is found by its name."""
    world = world_with()
    world.targets.machines.lose_answers = 1
    world.upload(day(1))
    world.settle()
    world.targets.machines.end_all(lambda made: "SUCCEEDED")
    world.pass_by("5m")
    assert len(world.targets.machines.executions) == 1
    assert (states(world), active(world)) == (["SUCCEEDED"], 0)


def test_w16_a_redrive_after_the_end_does_not_revive_a_run() -> None:
    world = world_with()
    made = begin(world)
    world.execution_says(made, "FAILED", error="E", cause="no disk")
    ended = last(world)
    for status in ("RUNNING", "SUCCEEDED"):
        world.clock.pass_by("1h")
        assert "is already past" in world.execution_says(made, status)
    assert last(world) == ended
    assert active(world) == 0


def test_w16_a_redrive_does_not_end_an_attempt_twice() -> None:
    """Its next attempt is active. The timeout of the redriven execution does not make the run fail."""
    world = world_with(retries={**TWICE, "on": ["failed"]})
    made = begin(world)
    world.execution_says(made, "FAILED", error="E", cause="no disk")
    world.pass_by("2m")
    assert states(world) == ["RETRYING", "STARTING"]
    world.execution_says(made, "RUNNING")
    world.execution_says(made, "TIMED_OUT")
    assert states(world) == ["RETRYING", "STARTING"]
    assert world.targets.queue.messages == []


def test_w16_a_redrive_of_an_active_run_is_followed() -> None:
    """Sluice did not get the failure event, so for Sluice the run has never ended."""
    world = world_with()
    made = begin(world)
    world.targets.machines.end(made, "FAILED")
    world.execution_says(made, "RUNNING")
    world.pass_by("12m")
    assert states(world) == ["RUNNING"]
    world.execution_says(made, "SUCCEEDED")
    assert states(world) == ["SUCCEEDED"]


def test_w1_a_missing_execution_is_lost() -> None:
    world = world_with(retries={**TWICE, "on": ["lost"]})
    begin(world)
    world.targets.machines.executions.clear()
    world.pass_by("12m")
    assert (world.runs("clean")[0].state, world.runs("clean")[0].outcome) == ("RETRYING", "lost")


def test_w15_the_log_of_an_execution_names_its_location() -> None:
    world = world_with()
    made = begin(world)
    answer = logs.of_run(world.ports, last(world).run_id, None, 10)
    assert (answer["streams"], made.arn in answer["why"]) == ({}, True)
