"""Leases that end early: crashed workers, cancels, closed schedules, offers that are lost or left behind (W5)."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.writes import Delete, Put
from chalicelib.flow.runs import follow
from tests.support.pull_workers import POOL, PULLED, PullWorker, lease_lost, run_now
from tests.support.reasons import says
from tests.support.world import World, flights, full
from tests.workers.conftest import NIGHTLY


def test_w5_heartbeats_keep_a_lease_and_wake_no_job(world: World, ann: PullWorker) -> None:
    run_now(world)
    ann.claim()
    for _ in range(10):
        ann.beat()
        world.pass_by("50s")
    assert world.runs("nightly")[0].state == "RUNNING"
    ann.succeed()
    assert [run.state for run in world.runs("nightly")] == ["SUCCEEDED"]


def test_w5_a_dead_worker_is_noticed_and_its_job_goes_to_another(
    world: World, ann: PullWorker, bob: PullWorker
) -> None:
    run_id = run_now(world)
    ann.claim()
    ann.beat()
    died = world.clock.now()

    world.pass_by("2m6s")

    lost = world.runs("nightly")[0]
    assert (lost.state, lost.outcome) == ("RETRYING", "lost")
    assert lost.reason.text.startswith("lost: worker ann has sent no heartbeat since ")
    assert lost.ended_at is not None
    assert lost.ended_at - died <= 1 * MINUTE + 1 * MINUTE + 6 * SECOND
    world.pass_by("10s")
    assert [(each["run_id"], each["attempt"]) for each in bob.claim()] == [(run_id, 2)]
    bob.beat()
    bob.succeed()
    assert [run.state for run in world.runs("nightly")] == ["RETRYING", "SUCCEEDED"]


def test_w5_the_last_lost_attempt_is_a_failure_with_that_reason(world: World, ann: PullWorker) -> None:
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": {**PULLED, "heartbeat": "10s"}}))
    run_now(world)
    ann.claim()
    ann.beat()
    world.pass_by("76s")
    run = world.runs("nightly")[0]
    assert (run.state, run.outcome) == ("FAILED", "lost")
    assert world.limit_state(f"workflow:{full('pulled')}").active == 0


def test_w5_a_claim_whose_answer_is_lost_uses_up_no_attempt(world: World, ann: PullWorker, bob: PullWorker) -> None:
    """Without a heartbeat the work has not begun, so the run is offered again when the lease ends."""
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": PULLED}))
    run_id = run_now(world)
    ann.claim()
    world.pass_by("2m")
    [run] = world.runs("nightly")
    assert (run.state, run.target_id) == ("STARTING", None)
    assert run.reason.text == "offered again: worker ann claimed it and sent no heartbeat"

    assert [(each["run_id"], each["attempt"]) for each in bob.claim()] == [(run_id, 1)]
    assert "is held by bob under lease" in lease_lost(ann.beat)
    bob.beat()
    bob.succeed()
    assert [(run.state, run.attempt) for run in world.runs("nightly")] == [("SUCCEEDED", 1)]
    assert world.limit_state(f"workflow:{full('pulled')}").active == 0


def test_w5_a_heartbeat_that_comes_before_the_tick_keeps_the_run(world: World, ann: PullWorker) -> None:
    run_now(world)
    ann.claim()
    world.clock.pass_by("61s")
    [run] = world.runs("nightly")
    ann.beat()
    follow.poll(world.ports, run)  # a tick that read the run before the heartbeat
    assert [(run.state, run.target_id) for run in world.runs("nightly")] == [("RUNNING", "ann")]


def test_w5_a_run_that_nobody_begins_is_lost_after_ten_leases(world: World, ann: PullWorker) -> None:
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": PULLED}))
    run_now(world)
    for _ in range(10):
        assert len(ann.claim()) == 1
        world.pass_by("2m")
    [run] = world.runs("nightly")
    assert (run.state, run.outcome, run.lease) == ("FAILED", "lost", 10)
    assert ann.claim() == []


def test_w6_a_cancelled_run_not_begun_is_not_offered_again(world: World, ann: PullWorker) -> None:
    run_id = run_now(world)
    ann.claim()
    follow.request_cancel(world.ports, run_id, 1, says("somebody said so"))
    world.pass_by("2m")
    assert [run.state for run in world.runs("nightly")] == ["CANCELLED"]
    assert ann.claim() == []


@pytest.mark.parametrize(("on", "then"), [("lost", ["RETRYING", "STARTING"]), ("failed", ["FAILED"])])
def test_w1_an_attempt_of_a_dead_worker_is_retried_where_named(
    world: World, ann: PullWorker, on: str, then: list[str]
) -> None:
    retries = {"attempts": 2, "delay": "10s", "on": [on]}
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": PULLED, "retries": retries}))
    run_now(world)
    ann.claim()
    ann.beat()
    world.pass_by("3m")
    assert [run.state for run in world.runs("nightly")] == then


def test_w5_a_late_report_is_refused_naming_the_holder_on_record(
    world: World, ann: PullWorker, bob: PullWorker
) -> None:
    run_now(world)
    ann.claim()
    ann.beat()
    world.pass_by("3m")

    assert "waits in pool demo.etl" in lease_lost(ann.succeed)
    bob.claim()
    bob.beat()
    assert "attempt 2 is held by bob" in lease_lost(ann.succeed)
    assert "attempt 2 is held by bob" in lease_lost(ann.beat)
    bob.succeed()

    assert [run.state for run in world.runs("nightly")] == ["RETRYING", "SUCCEEDED"]
    late = world.records("nightly")
    assert [(record.kind, record.id) for record in late] == [("LATE", ann.leases[0]["lease"])]
    assert "a report of worker ann came too late" in late[0].reason.text


def test_w5_a_late_heartbeat_not_yet_noticed_keeps_the_lease(world: World, ann: PullWorker) -> None:
    run_now(world)
    ann.claim()
    ann.beat()
    world.clock.pass_by("70s")
    assert ann.beat()["state"] == "RUNNING"
    world.tick()
    assert world.runs("nightly")[0].state == "RUNNING"


def test_w5_a_heartbeat_during_the_poll_keeps_the_lease(world: World, ann: PullWorker) -> None:
    """The sweep reads the overdue row, and then a heartbeat arrives. The write that would end the attempt must fail."""
    run_now(world)
    ann.claim()
    ann.beat()
    world.clock.pass_by("70s")
    overdue = world.runs("nightly")[0]
    ann.beat()
    follow.poll(world.ports, overdue)
    assert world.runs("nightly")[0].state == "RUNNING"


def test_w5_a_cancel_of_an_unclaimed_run_ends_it_at_once(world: World, ann: PullWorker) -> None:
    run_id = run_now(world)
    follow.request_cancel(world.ports, run_id, 1, says("somebody said so"))
    world.settle()
    run = world.runs("nightly")[0]
    assert (run.state, run.reason.text) == ("CANCELLED", "somebody said so")
    assert ann.claim() == []
    assert world.ports.jobs.offers(POOL, 10) == ()


def test_w5_a_cancel_of_a_claimed_run_comes_with_next_heartbeat(world: World, ann: PullWorker) -> None:
    run_id = run_now(world)
    ann.claim()
    ann.beat()
    follow.request_cancel(world.ports, run_id, 1, says("somebody said so"))
    world.settle()

    answer = ann.beat()
    assert (answer["cancel"], answer["reason"]) == (True, "somebody said so")
    ann.fail(exit_code=-15)
    run = world.runs("nightly")[0]
    assert run.state == "CANCELLED"
    assert world.ports.jobs.offers(POOL, 10) == ()


@pytest.mark.parametrize("hints", ["arrive", "lost"])
def test_w5_a_release_during_a_cancel_ends_the_run_at_once(world: World, ann: PullWorker, hints: str) -> None:
    run_id = run_now(world)
    ann.claim()
    follow.request_cancel(world.ports, run_id, 1, says("somebody said so"))
    world.settle()
    world.hints.lose = hints == "lost"
    ann.release()
    world.hints.lose = False
    world.pass_by("70s" if hints == "lost" else "1s")
    assert [(run.state, run.reason.text) for run in world.runs("nightly")] == [("CANCELLED", "somebody said so")]


def test_w5_a_worker_that_dies_during_a_cancel_ends_it(world: World, ann: PullWorker) -> None:
    run_id = run_now(world)
    ann.claim()
    ann.beat()
    follow.request_cancel(world.ports, run_id, 1, says("somebody said so"))
    world.pass_by("2m6s")
    assert world.runs("nightly")[0].state == "CANCELLED"


def test_w5_disable_stops_offered_work_and_claimed_work_goes_on(world: World, ann: PullWorker) -> None:
    """A run-now starts even if the schedule is disabled; a fire does not (C13)."""
    world.clock.wait_until(world.clock.now() + 15 * 60 * MINUTE - 30 * SECOND)
    world.tick()
    world.pass_by("40s")
    assert [run.state for run in world.runs("nightly")] == ["STARTING"]
    held, left = ann.claim(1), world.ports.jobs.offers(POOL, 10)
    assert (len(held), len(left)) == (1, 1)

    world.disable("nightly")
    world.disable("urgent")
    assert ann.claim() == []

    world.settle()
    ann.beat()
    ann.succeed()
    states = sorted(run.state for name in ("nightly", "urgent") for run in world.runs(name))
    assert states == ["ABORTED", "SUCCEEDED"]
    assert world.ports.jobs.offers(POOL, 10) == ()


def test_w5_unclaimed_work_is_withdrawn_after_a_delete(world: World) -> None:
    run_now(world)
    world.delete("nightly")
    world.pass_by("12m")
    run = world.runs("nightly")[0]
    assert (run.state, "deleted" in run.reason.text) == ("ABORTED", True)
    assert world.ports.jobs.offers(POOL, 10) == ()


def test_w5_a_lost_offer_is_written_again(world: World, ann: PullWorker) -> None:
    run_now(world)
    world.ports.ledger.commit([Delete(world.ports.jobs.offers(POOL, 1)[0])])
    world.pass_by("11m")
    assert len(ann.claim()) == 1


def test_w5_a_stale_offer_of_a_finished_run_is_removed_by_claim(world: World, ann: PullWorker) -> None:
    run_now(world)
    stale = world.ports.jobs.offers(POOL, 1)[0]
    ann.claim()
    ann.succeed()
    world.ports.ledger.commit([Put(stale)])
    assert ann.claim() == []
    assert world.ports.jobs.offers(POOL, 10) == ()
