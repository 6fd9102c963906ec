"""Runs of Athena: followed by events and polls, from their start to their end (W22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.run import Run
from chalicelib.flow.runs import actions
from chalicelib.flow.views import logs
from tests.support.queries import MB, TARGET, Query, event_of, refused
from tests.support.world import World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "by": ["day"],
    "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}],
}
TWICE = {"attempts": 2, "delay": "1m"}


def world_with(target: dict[str, Any] | None = None, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN}, brief={"target": target or TARGET, **workflow}))
    return world


def begin(world: World, number: int = 1) -> Query:
    """A partition comes, and its query begins."""
    world.upload(day(number))
    world.settle()
    made = list(world.targets.queries.queries.values())[-1]
    world.query_says(made, "RUNNING")
    world.settle()
    return made


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def active(world: World) -> int:
    return int(world.limit_state("workflow:demo.flights.brief").active)


def last(world: World) -> Run:
    return world.runs("clean")[-1]


def test_w22_a_run_follows_its_query_by_events() -> None:
    world = world_with()
    made = begin(world)
    assert made.asked["ExecutionParameters"] == ["'1'", "15"]
    world.clock.pass_by("2500ms")
    answer = world.query_says(made, "SUCCEEDED", scanned=1_024 * MB)
    run = last(world)
    assert answer == f"run {run.run_id} is SUCCEEDED"
    assert (run.state, active(world), run.billed) == ("SUCCEEDED", 0, (0, 0, 0, 0, 1_000))
    assert run.result["output"] == f"{TARGET['output']}{made.id}.csv"
    assert world.targets.queries.calls == ["StartQueryExecution", "BatchGetQueryExecution"]


def test_w22_a_foreign_query_changes_nothing_and_is_not_read() -> None:
    world = world_with()
    begin(world)
    world.targets.queries.calls.clear()
    theirs = Query("theirs", {"WorkGroup": "primary"}, world.clock.now(), "FAILED")
    answer = world.event(event_of(theirs, world.clock.now()))
    assert answer == "theirs of athena was not started by Sluice"
    assert (states(world), world.targets.queries.calls) == (["RUNNING"], [])


@pytest.mark.parametrize("said", ["RUNNING", "lost"])
def test_w18_a_poll_behind_the_event_loses_no_result(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Athena is eventually consistent. The event is delivered again."""
    world = world_with()
    made = begin(world)
    world.pass_by("5m")
    world.targets.queries.end(made, "SUCCEEDED")
    event = event_of(made, world.clock.now())
    with monkeypatch.context() as patch:
        patch.setattr(made, *(("shown", False) if said == "lost" else ("state", said)))
        with pytest.raises(RuntimeError, match="does not show its end yet; its event is delivered again"):
            world.event(event)
        assert states(world) == ["RUNNING"]
    world.event(event)
    assert (states(world), last(world).result["query_execution_id"]) == (["SUCCEEDED"], made.id)


def test_w18_a_query_that_is_gone_succeeds_without_a_result() -> None:
    """The third delivery of an event comes three minutes after the first."""
    world = world_with(retries=TWICE)
    made = begin(world)
    world.pass_by("5m")
    world.targets.queries.end(made, "SUCCEEDED")
    event, made.shown = event_of(made, world.clock.now()), False
    world.clock.pass_by("1m")
    with pytest.raises(RuntimeError, match="does not show its end yet"):
        world.event(event)
    world.clock.pass_by("2m")
    world.event(event)
    run = last(world)
    assert (states(world), run.result, run.reason.text, active(world)) == (["SUCCEEDED"], None, "", 0)


def test_w22_a_failed_query_is_attempted_again() -> None:
    world = world_with(retries=TWICE)
    error = {"ErrorCategory": 1, "Retryable": True}
    world.query_says(begin(world), "FAILED", "no capacity", error=error)
    world.pass_by("2m")
    assert states(world) == ["RETRYING", "STARTING"]
    assert world.runs("clean")[0].reason.text == "no capacity (system error, may succeed if repeated)"
    assert len(world.targets.queries.queries) == 2, "each attempt is a query of its own"


@pytest.mark.parametrize(("on", "then"), [("timed_out", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w22_a_timeout_of_athena_is_a_timeout(on: str, then: list[str]) -> None:
    world = world_with(retries={**TWICE, "on": [on]})
    world.query_says(begin(world), "FAILED", "Query timeout")
    world.pass_by("2m")
    assert (states(world), world.runs("clean")[0].outcome) == (then, "timed_out")


def test_w7_the_end_of_a_query_without_an_event_is_polled() -> None:
    world = world_with()
    made = begin(world)
    world.targets.queries.end(made, "FAILED", "no such table")
    world.pass_by("12m")
    assert (states(world), last(world).reason.text, active(world)) == (["FAILED"], "no such table", 0)


def test_w6_a_cancelled_run_stops_its_query() -> None:
    world = world_with()
    made = begin(world)
    actions.cancel(world.ports, last(world).run_id, "ada")
    world.settle()
    assert (made.state, states(world), active(world)) == ("CANCELLED", ["CANCELLED"], 0)
    assert last(world).reason.text.startswith("cancelled by ada")


def test_w12_a_query_over_the_timeout_of_its_run_is_stopped() -> None:
    world = world_with(timeout="2h")
    made = begin(world)
    world.pass_by("2h5m")
    assert (made.state, states(world), last(world).outcome) == ("CANCELLED", ["FAILED"], "timed_out")


def test_w21_a_query_that_stays_queued_is_stopped() -> None:
    world = world_with(start_timeout="10m", retries={"attempts": 1})
    world.upload(day(1))
    world.settle()
    [made] = world.targets.queries.queries.values()
    world.pass_by("15m")
    assert (made.state, last(world).state, last(world).outcome) == ("CANCELLED", "FAILED", "timed_out")


@pytest.mark.parametrize("ends", [False, True])
def test_w10_an_unanswered_query_start_makes_one_query(ends: bool) -> None:
    world = world_with()
    world.targets.queries.lose_answers = 2
    world.upload(day(1))
    world.settle()
    if ends:
        world.targets.queries.end_all(lambda made: "SUCCEEDED")
    world.pass_by("12m")
    assert len(world.targets.queries.queries) == 1
    assert (states(world), active(world)) == ((["SUCCEEDED"], 0) if ends else (["STARTING"], 1))


def test_w10_a_query_of_a_closed_schedule_is_found_and_stopped() -> None:
    world = world_with()
    world.targets.queries.lose_answers = 1
    world.upload(day(1))
    world.settle()
    world.disable("clean")
    world.pass_by("12m")
    [made] = world.targets.queries.queries.values()
    assert (made.state, states(world), active(world)) == ("CANCELLED", ["CANCELLED"], 0)
    assert world.targets.queries.calls.count("StartQueryExecution") == 1


def test_c12_a_query_that_is_wrong_is_not_repeated() -> None:
    world = world_with(retries=TWICE)
    world.targets.queries.refusals = [refused("InvalidRequestException", "line 1:8: mismatched input")]
    world.upload(day(1))
    world.pass_by("5m")
    reason = "Athena refused the start: InvalidRequestException: line 1:8: mismatched input"
    assert (states(world), active(world), last(world).reason.text) == (["FAILED"], 0, reason)


def test_w15_the_log_of_a_run_of_athena_names_its_query() -> None:
    world = world_with()
    made = begin(world)
    assert made.id in logs.of_run(world.ports, last(world).run_id, None, 10)["why"]
