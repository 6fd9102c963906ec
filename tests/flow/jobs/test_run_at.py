"""Run X at time Y (W8): a run without its trigger that is due at a later instant, and how it is withdrawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.flow.jobs import actions
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import lists
from tests.acceptance.words import concurrency, doze, kinds, on, partition, reasons, states
from tests.support.schedules import partitions
from tests.support.world import World, day, flights, full


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    made = make_world(wake_shards=1, history_shards=1)
    made.deploy(flights({"clean": on(partition(count=2))}))
    return made


def test_w8_a_run_for_later_time_starts_then_with_its_properties(world: World) -> None:
    at = world.clock.now() + 90 * SECOND
    job_id = world.run_now("clean", at=at, day="2013-01-01")
    assert [job.job_id for job in lists.jobs_of_schedule(world.ports, full("clean"), 10, None).items] == [job_id]
    world.pass_by("89s")
    assert world.runs("clean") == []
    world.pass_by("1s")

    [run] = world.runs("clean")
    assert (run.run_id, run.start_requested_at, run.kind) == (job_id, at, "run_now")
    assert run.request.properties == {"day": "2013-01-01"}
    assert run.fired_by.text == "run requested for 2026-03-02T12:01:30.000Z"
    assert world.context(run)["logical_start_time"] == at


@pytest.mark.parametrize("lost", [False, True])
def test_w8_run_due_in_days_starts_on_time_though_hints_are_lost(world: World, lost: bool) -> None:
    at = world.clock.now() + 3 * DAY + 7 * SECOND
    world.hints.lose = lost
    world.run_now("clean", at=at)
    world.hints.lose = False
    doze(world, "3d")
    assert world.runs("clean") == []
    world.pass_by("1m")
    assert [run.claimed_at for run in world.runs("clean")] == [at]  # and its timeout of a day counts from then


def test_w8_one_request_is_one_run_however_often_it_is_repeated(world: World) -> None:
    at = world.clock.now() + HOUR
    first = world.run_now("clean", request="r1", at=at)
    assert world.run_now("clean", request="r1", at=at + MINUTE) == first
    assert world.run_now("clean", request="r2", at=at) != first
    doze(world, "61m")
    assert world.run_now("clean", request="r1", at=at) == first
    world.settle()
    assert len(world.runs("clean")) == 2


def test_w8_an_instant_of_the_last_minute_is_now(world: World) -> None:
    """A request takes time. What is longer past is refused."""
    with pytest.raises(SluiceError, match="expected an instant from now on"):
        world.run_now("clean", at=world.clock.now() - MINUTE - 1)
    world.run_now("clean", at=world.clock.now() - MINUTE)
    world.settle()
    assert [run.claimed_at for run in world.runs("clean")] == [world.clock.now()]


def test_w8_a_run_at_waits_for_constraints(world: World) -> None:
    world.deploy(flights({"clean": partitions(constraints=[concurrency(1)])}))
    world.upload(day(1))
    world.run_now("clean", at=world.clock.now() + MINUTE)
    world.pass_by("2m")
    assert states(world, "clean") == ["STARTING"]
    world.finish()
    world.settle()
    assert states(world, "clean") == ["SUCCEEDED", "STARTING"]


def test_w8_a_disable_keeps_a_timed_run_and_a_delete_drops_it(world: World) -> None:
    world.run_now("clean", request="kept", at=world.clock.now() + MINUTE)
    world.disable("clean")
    world.pass_by("1m")
    assert len(world.runs("clean")) == 1
    world.run_now("clean", request="dropped", at=world.clock.now() + MINUTE)
    world.delete("clean")
    world.pass_by("2m")
    assert len(world.runs("clean")) == 1
    assert reasons(world, "clean") == ["DROPPED: the schedule was deleted"]


def test_w8_a_run_at_cancelled_by_its_id_never_runs(world: World) -> None:
    job_id = world.run_now("clean", at=world.clock.now() + MINUTE)
    record = actions.withdraw(world.ports, job_id, "ada")
    assert (record.id, record.kind, record.reason.text) == (job_id, "DROPPED", "cancelled by ada")
    world.pass_by("2m")
    assert world.runs("clean") == []
    assert kinds(world, "clean") == ["DROPPED"]
    # The same request again names the same job, which has already run.
    assert world.run_now("clean", at=world.clock.now() + MINUTE) == job_id
    world.pass_by("2m")
    assert world.runs("clean") == []
    assert actions.withdraw(world.ports, job_id, "ada") == record, "a repeat gets the answer of the first"
    with pytest.raises(SluiceError, match="no job named") as raised:
        actions.withdraw(world.ports, job_id, "bob")
    assert "cancelled by ada" in (raised.value.hint or "")


def test_w8_a_cancelled_job_leaves_its_queue(world: World) -> None:
    world.deploy(flights({"clean": partitions(by=["day"], constraints=[concurrency(1)])}))
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    second, _ = sorted(world.jobs("clean"), key=lambda job: (job.created_at, job.job_id))
    actions.withdraw(world.ports, second.job_id, "ada")
    assert world.limit_state("workflow:demo.flights.clean").waiters == 1
    world.finish()
    world.settle()
    assert states(world, "clean") == ["SUCCEEDED", "STARTING"]


def test_w8_a_workflow_without_a_schedule_runs_at_a_message_time(world: World) -> None:
    world.message("once", workflow="join", due_time="2026-03-02T12:00:30Z", data={"day": 1})
    world.pass_by("30s")
    [run] = world.runs("~once")
    assert (run.workflow, run.start_requested_at) == (full("join"), world.clock.now())
    world.finish()
    world.settle()
    assert states(world, "~once") == ["SUCCEEDED"]
    assert messages.known(world.ports, "demo.flights", "once") == full("~once")
