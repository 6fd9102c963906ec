"""Misleading reports about a run: from EMR, from runs of other users, and missing ones (W6, W7, W12)."""

from __future__ import annotations

from collections import Counter

import pytest

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.runs import actions
from tests.acceptance.workflows.test_dags import begin as begin_dag
from tests.flow.runs.test_run_control import CLEAN, begin, states, world_with
from tests.support import dags
from tests.support.fakes import EmrRun
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.world import EMR, World, day, flights

EMRS_OWN = "Job run was cancelled by sluice-check"


def test_w7_a_foreign_run_of_the_same_name_does_not_affect_ours() -> None:
    """A user who clones a job run in EMR Studio gets a run of the same name."""
    world = world_with()
    begin(world)
    ours = world.targets.emr.runs["jr00001"]
    world.targets.emr.runs["clone"] = EmrRun("clone", ours.name, "another token")
    world.emr_says("clone", "FAILED", "their trouble")
    assert states(world) == ["RUNNING"]
    world.emr_says("jr00001", "SUCCESS")
    assert states(world) == ["SUCCEEDED"]


@pytest.mark.parametrize("late", ["2h", "2h5m"])
def test_w12_a_run_ended_by_emr_for_its_time_has_failed_for_that(late: str) -> None:
    """Sluice did not cancel it. EMR has the limit, too, and only EMR's event comes."""
    world = world_with(timeout="2h", retries={"attempts": 2, "delay": "1m", "on": ["timed_out"]})
    begin(world)
    world.clock.pass_by(late)
    world.emr_says("jr00001", "CANCELLED", "Job run timed out")
    run = world.runs("clean")[0]
    assert (run.state, run.outcome) == ("RETRYING", "timed_out")
    assert run.reason.text.startswith("timed out: the run took longer than 2h")


def test_w6_a_cancel_at_emr_has_the_emr_reason() -> None:
    world = world_with(timeout="2h")
    begin(world)
    world.emr_says("jr00001", "CANCELLED", "cancelled by eve")
    run = world.runs("clean")[0]
    assert (run.state, run.reason.text) == ("CANCELLED", "cancelled by eve")


def test_w6_the_cancel_author_is_shown_before_the_target_answer() -> None:
    world = world_with()
    run_id = begin(world)
    world.targets.emr.cancel = lambda run: None
    actions.cancel(world.ports, run_id, "ada")
    world.settle()
    world.emr_says("jr00001", "CANCELLED", EMRS_OWN)
    assert world.runs("clean")[0].reason.text == f"cancelled by ada; {EMRS_OWN}"


def test_w6_a_worker_cancelled_by_person_has_that_in_its_reason() -> None:
    world = world_with(PULLED)
    world.upload(day(1))
    world.settle()
    ann = PullWorker(world, "ann")
    ann.claim()
    ann.beat()
    actions.cancel(world.ports, world.runs("clean")[0].run_id, "ada")
    ann.fail(exit_code=-15)
    run = world.runs("clean")[0]
    assert (run.state, run.reason.text) == ("CANCELLED", "cancelled by ada; exit code -15")


def test_w7_a_failure_that_busy_emr_cannot_explain_does_not_wait() -> None:
    world = world_with(retries={"attempts": 2, "delay": "1m"})
    begin(world)
    world.targets.emr.status = lambda run: None
    world.emr_says("jr00001", "FAILED", "no memory")
    run = world.runs("clean")[0]
    assert (run.state, run.reason.text) == ("RETRYING", "the target has not given the reason; see its log")


@pytest.mark.parametrize("what", ["what became of them", "what they were billed"])
def test_w7_many_runs_are_polled_at_the_rate_that_emr_allows(what: str) -> None:
    """GetJobRun: 10 a second. The tick hints fifty of them, and the next fifty five seconds later."""
    world = World(start_burst=200)
    world.deploy(flights({"clean": CLEAN}, brief={"target": EMR}))
    for number in range(1, 61):
        begin(world, number)
    asked: list[int] = []
    if what == "what they were billed":
        world.targets.emr.reckons_after = HOUR
        world.finish()
    world.clock.pass_by("11m")
    began = world.clock.now()
    ask = world.targets.emr.status
    world.targets.emr.status = lambda run: (asked.append(world.clock.now() - began), ask(run))[1]

    world.tick()
    world.pass_by("50s")

    assert Counter(asked) == {0: 50, 5 * SECOND: 10}


def test_w15_a_dag_node_rerun_alone_does_not_change_its_dag() -> None:
    world = World()
    world.deploy(dags.app(dags.dag(*dags.DIAMOND)))
    begin_dag(world)
    for node in "abcd":
        dags.ends(world, node)
    node = world.ports.runs.runs("workflow", "demo.flights.w_b", 1, None).items[0]

    actions.rerun(world.ports, node.run_id, "k")
    world.settle()
    dags.ends(world, "b")
    world.pass_by("1h")

    assert dags.ran(world) == ["a", "b", "c", "d", "b"]
    assert len(dags.views(world)) == 1
    schedule_state = world.ports.rows.get(ScheduleState, f"{node.schedule[:-1]}d")
    assert schedule_state is not None
    assert world.ports.jobs.jobs(schedule_state.schedule, schedule_state.generation, 10, None).items == (), (
        "what follows gathers nothing"
    )


def test_w15_a_rerun_can_be_rerun_and_an_old_key_makes_no_other() -> None:
    world = world_with()
    first = begin(world)
    world.emr_says("jr00001", "FAILED", "no memory")
    world.clock.pass_by("1m")
    again = actions.rerun(world.ports, first, "k")
    world.settle()
    world.emr_says("jr00002", "SUCCESS")

    assert actions.rerun(world.ports, first, "k") == again
    assert world.jobs("clean") == []
    world.clock.pass_by("1m")
    third = actions.rerun(world.ports, again, "k")
    world.settle()

    assert [run.run_id for run in world.runs("clean")] == [first, again, third]
    assert [run.rerun_of for run in world.runs("clean")] == [None, first, first], "all have the arguments of the first"


def test_w7_event_with_recorded_run_id_needs_no_lookup_by_name() -> None:
    world = world_with()
    asked: list[str] = []
    world.targets.emr.run_name = asked.append
    begin(world)
    world.emr_says("jr00001", "SUCCESS")
    assert (states(world), asked) == (["SUCCEEDED"], [])
