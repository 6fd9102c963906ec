"""How runs are polled, time out, are cancelled, and run again (W6, W7, W12, W15)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.ref import Ref
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import actions
from chalicelib.flow.system import dispatch
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.world import EMR, World, day, flights

CLEAN: dict[str, Any] = {
    "workflow": "brief",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "properties": {"depth": 1},
}
ON_FAILURE: dict[str, Any] = {
    "workflow": "notify",
    "enabled": True,
    "trigger": {"type": "program_status", "workflow": "brief", "statuses": ["FAILED", "KILLED"]},
}


def world_with(target: dict[str, Any] = EMR, **workflow: Any) -> World:
    world = World()
    world.deploy(flights({"clean": CLEAN, "on_failure": ON_FAILURE}, brief={"target": target, **workflow}))
    return world


def begin(world: World, number: int = 1) -> str:
    """A partition comes, and its run begins."""
    world.upload(day(number))
    world.settle()
    world.emr_says(f"jr{number:05d}", "RUNNING")
    world.settle()
    return world.runs("clean")[-1].run_id


def states(world: World) -> list[str]:
    return [run.state for run in world.runs("clean")]


def test_w12_a_run_over_its_timeout_is_cancelled_and_has_failed() -> None:
    world = world_with(timeout="2h")
    begin(world)
    world.pass_by("1h58m")
    assert states(world) == ["RUNNING"]

    world.pass_by("4m")

    run = world.runs("clean")[0]
    assert world.targets.emr.runs["jr00001"].state == "CANCELLED", "it was cancelled at the target"
    assert (run.state, run.outcome) == ("FAILED", "timed_out")
    assert run.reason.text == "timed out: the run took longer than 2h and was cancelled"
    assert [context["events"][0]["status"] for _, context in world.targets.queue.messages] == ["FAILED"]
    assert world.limit_state("workflow:demo.flights.brief").active == 0


def test_w12_a_timeout_reported_by_an_event_has_the_same_result() -> None:
    """EMR's event CANCELLED arrives before any poll."""
    world = world_with(timeout="2h")
    begin(world)
    world.clock.pass_by("2h1m")
    emr = world.targets.emr
    emr.cancel = lambda run: None
    world.tick()
    assert states(world) == ["RUNNING"]
    world.emr_says("jr00001", "CANCELLED", "cancelled by a user")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome, run.reason.text[:9]) == ("FAILED", "timed_out", "timed out")


def test_w12_a_timed_out_attempt_is_followed_by_another() -> None:
    world = world_with(timeout="2h", retries={"attempts": 2, "delay": "1m"})
    begin(world)
    world.pass_by("2h5m")
    assert states(world) == ["RETRYING", "STARTING"]
    assert world.targets.queue.messages == []


@pytest.mark.parametrize(("on", "then"), [("timed_out", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w1_a_timed_out_attempt_is_retried_where_retries_name_it(on: str, then: list[str]) -> None:
    world = world_with(timeout="2h", retries={"attempts": 2, "delay": "1m", "on": [on]})
    begin(world)
    world.pass_by("2h5m")
    assert states(world) == then


def test_w12_a_dropped_retry_says_so_beside_the_timeout() -> None:
    world = world_with(timeout="2h", retries={"attempts": 2, "delay": "1h"})
    begin(world)
    world.pass_by("2h5m")
    world.disable("clean")
    world.pass_by("1h")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome) == ("FAILED", "timed_out")
    assert run.reason.text.startswith("timed out: the run took longer than 2h and was cancelled; not attempted again: ")


def test_w1_a_run_unknown_to_its_target_is_lost_and_retriable() -> None:
    world = world_with(retries={"attempts": 2, "delay": "1m", "on": ["lost"]})
    run_id = begin(world)
    gone = RunUpdate("FAILED", world.clock.now(), "the target no longer knows this run", outcome="lost")
    world.targets.emr.status = lambda run: gone
    world.pass_by("12m")
    first = world.runs("clean")[0]
    assert (first.run_id, first.state, first.outcome) == (run_id, "RETRYING", "lost")


def test_w12_run_that_ended_before_its_timeout_has_not_timed_out() -> None:
    world = world_with(timeout="5m")
    begin(world)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("7m")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome, run.reason.text) == ("SUCCEEDED", None, "")


def test_w12_a_run_that_succeeds_during_its_cancel_has_succeeded() -> None:
    world = world_with(timeout="2h")
    begin(world)
    world.clock.pass_by("2h1m")
    world.targets.emr.cancel = lambda run: None
    world.tick()
    world.emr_says("jr00001", "SUCCESS")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome, run.reason.text) == ("SUCCEEDED", None, "")


def test_w12_time_before_running_does_not_count() -> None:
    world = world_with(timeout="1h")
    world.upload(day(1))
    world.pass_by("2h")
    assert states(world) == ["STARTING"]
    world.emr_says("jr00001", "RUNNING")
    world.pass_by("55m")
    assert states(world) == ["RUNNING"]
    forever = world_with(timeout="never")
    begin(forever)
    forever.pass_by("13h")
    assert states(forever) == ["RUNNING"]


def test_w12_the_default_timeout_is_twelve_hours() -> None:
    world = world_with()
    begin(world)
    assert world.runs("clean")[0].run_timeout == 12 * HOUR


def test_w12_a_worker_learns_at_its_heartbeat_that_time_is_over() -> None:
    world = world_with(PULLED, timeout="5m")
    world.upload(day(1))
    world.settle()
    ann = PullWorker(world, "ann")
    ann.claim()
    for _ in range(5):
        assert ann.beat()["cancel"] is False
        world.pass_by("55s")
    world.clock.pass_by("30s")
    answer = ann.beat()
    assert (answer["cancel"], answer["reason"]) == (True, "timed out: the run took longer than 5m and was cancelled")
    ann.fail(exit_code=-15)
    run = world.runs("clean")[0]
    assert (run.state, run.outcome, run.reason.text) == ("FAILED", "timed_out", answer["reason"])


def test_w12_worker_that_ignores_its_timeout_is_lost_when_silent() -> None:
    world = world_with({**PULLED, "heartbeat": "3m"}, timeout="1m")
    world.upload(day(1))
    world.settle()
    ann = PullWorker(world, "ann")
    ann.claim()
    ann.beat()
    world.pass_by("5m")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome) == ("FAILED", "timed_out")


def test_w6_a_cancelled_run_is_asked_to_end_and_becomes_killed() -> None:
    world = world_with(retries={"attempts": 3, "delay": "1m"})
    run_id = begin(world)
    actions.cancel(world.ports, run_id, "ada")
    world.settle()
    run = world.runs("clean")[0]
    assert (run.state, run.reason.text) == ("CANCELLED", "cancelled by ada")
    assert [context["events"][0]["status"] for _, context in world.targets.queue.messages] == ["KILLED"]
    assert states(world) == ["CANCELLED"], "no attempt follows"


def test_w6_a_polled_target_is_polled_at_its_interval() -> None:
    world = world_with({**EMR, "poll_every": "1m"})
    begin(world)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("2m10s")
    assert states(world) == ["SUCCEEDED"]
    silent = world_with()
    begin(silent)
    silent.targets.emr.runs["jr00001"].state = "SUCCESS"
    silent.pass_by("2m10s")
    assert states(silent) == ["RUNNING"], "without an interval EMR's event is waited for, ten minutes"


def test_w7_many_runs_without_news_are_polled_together() -> None:
    world = world_with()
    for number in range(1, 13):
        begin(world, number)
    for number in range(1, 12):
        world.targets.emr.runs[f"jr{number:05d}"].state = "SUCCESS" if number % 2 else "FAILED"
    world.clock.pass_by("11m")
    refs = [Ref("run", (run.run_id, "001")) for run in world.runs("clean")]

    assert dispatch.dispatch_together(world.ports, refs, world.clock.now()) == []

    assert world.targets.emr.polled_together == [12]
    by_target = sorted(world.runs("clean"), key=lambda run: str(run.target_id))
    assert [run.state for run in by_target] == ["SUCCEEDED", "FAILED"] * 5 + ["SUCCEEDED", "RUNNING"]
    last = by_target[-1]
    assert last.wake_at == world.clock.now() + 10 * MINUTE


@pytest.mark.parametrize("second", [1, 7, 30, 59])
def test_w7_a_lost_end_is_known_after_ten_minutes_and_a_tick(second: int) -> None:
    world = world_with()
    world.clock.pass_by(f"{second}s")
    begin(world)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("9m")
    assert states(world) == ["RUNNING"], "Sluice waits for the event of the end"
    world.pass_by("2m10s")
    assert states(world) == ["SUCCEEDED"]


def test_w7_few_runs_without_news_are_polled_one_by_one() -> None:
    world = world_with()
    for number in range(1, 4):
        begin(world, number)
        world.targets.emr.runs[f"jr{number:05d}"].state = "SUCCESS"
    refs = [Ref("run", (run.run_id, "001")) for run in world.runs("clean")]
    dispatch.dispatch_together(world.ports, refs, world.clock.now())
    assert world.targets.emr.polled_together == []
    assert states(world) == ["SUCCEEDED"] * 3


@pytest.mark.parametrize("order", [("RUNNING", "SUCCESS", "RUNNING"), ("SUCCESS", "RUNNING"), ("SUCCESS", "SUCCESS")])
def test_w7_events_in_any_order_or_missing_give_the_same_end(order: tuple[str, ...]) -> None:
    world = world_with()
    world.upload(day(1))
    world.settle()
    for state in order:
        world.emr_says("jr00001", state)
    assert states(world) == ["SUCCEEDED"]


def test_w15_a_rerun_has_the_properties_and_context_of_the_first() -> None:
    world = world_with()
    first = begin(world)
    world.emr_says("jr00001", "FAILED", "no memory")
    world.put("clean", {**CLEAN, "properties": {"depth": 9}})

    again = actions.rerun(world.ports, first, "k")
    assert actions.rerun(world.ports, first, "k") == again
    world.settle()

    old, new = world.runs("clean")
    assert (new.run_id, new.rerun_of, new.state) == (again, first, "STARTING")
    assert dict(new.request.properties) == {"depth": 1}
    assert (new.partition, new.accepted_at) == (old.partition, old.accepted_at)
    was, now = world.context(old), world.context(new)
    own = {"run_id", "rerun_of", "result_uri"}
    assert {name: value for name, value in now.items() if name not in own} == {
        name: value for name, value in was.items() if name not in own
    }
    assert now["events"][0]["partition"] == {"year": "2013", "month": "1", "day": "1"}


def test_w15_rerun_waits_at_constraints_and_its_retries_match_it() -> None:
    world = world_with(retries={"attempts": 2, "delay": "1m"})
    world.put("clean", {**CLEAN, "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]})
    first = begin(world)
    world.emr_says("jr00001", "SUCCESS")
    begin(world, 2)
    again = actions.rerun(world.ports, first, "k")
    world.settle()
    assert [job.job_id for job in world.jobs("clean")] == [again]
    world.emr_says("jr00002", "SUCCESS")
    world.settle()
    world.emr_says("jr00003", "FAILED", "no memory")
    world.pass_by("2m")
    attempts = world.ports.runs.attempts(again)
    assert [run.state for run in attempts] == ["RETRYING", "STARTING"]
    assert [run.rerun_of for run in attempts] == [first, first]
    assert world.context(attempts[1])["events"] == world.payloads.context(first)["events"]
