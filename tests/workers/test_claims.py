"""Pull workers claim, keep, report and release runs: the offers of a pool, their order, and their leases (W5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Output
from chalicelib.flow.runs import workers
from tests.support.answers import explain
from tests.support.pull_workers import POOL, PullWorker, lease_lost, run_now
from tests.support.world import World, flights, full
from tests.workers.conftest import AFTER, NIGHTLY, TWICE


def test_w5_a_run_stays_in_its_pool_until_a_worker_claims_it(world: World, ann: PullWorker) -> None:
    run_id = run_now(world, day="2026-03-01")
    offered = world.runs("nightly")[0]
    assert (offered.state, offered.reason.text) == ("STARTING", "waits for a worker of pool demo.etl")

    lease = ann.claim()[0]

    assert (lease["run_id"], lease["attempt"], lease["workflow"]) == (run_id, 1, full("pulled"))
    assert (lease["arguments"], lease["properties"]) == (["--fast"], {"day": "2026-03-01"})
    assert lease["context"]["run_id"] == run_id
    assert lease["heartbeat_seconds"] == 60
    assert ann.claim() == [], "it was the only one"
    assert world.runs("nightly")[0].target_id == "ann"


def test_w5_a_worker_of_another_pool_gets_nothing(world: World, ann: PullWorker) -> None:
    run_now(world)
    assert ann.claim(pool="demo.other") == []
    assert ann.claim(pool="other.etl") == []


def test_w5_the_first_heartbeat_begins_the_work_a_report_ends_it(world: World, ann: PullWorker) -> None:
    world.deploy(flights({"nightly": NIGHTLY, "after": AFTER}, pulled=TWICE))
    run_id = run_now(world)
    ann.claim()
    assert world.runs("nightly")[0].state == "STARTING"

    answer = ann.beat(message="read 3 files", rows=3)
    world.settle()
    running = world.runs("nightly")[0]
    assert (answer["state"], answer["cancel"], running.state) == ("RUNNING", False, "RUNNING")
    assert (running.reason.text, dict(running.metrics or {})) == ("read 3 files", {"rows": 3})

    world.clock.pass_by("20s")
    ended = ann.succeed(output="a\nall is well", metrics={"rows": 12})
    world.settle()

    run = world.runs("nightly")[0]
    assert (ended["state"], run.state, run.wake_at, dict(run.metrics or {})) == (
        "SUCCEEDED",
        "SUCCEEDED",
        None,
        {"rows": 12},
    )
    kept = world.ports.rows.get(Output, run_id, 1)
    assert kept is not None
    assert (kept.text, kept.exit_code) == ("a\nall is well", 0)
    assert len(world.targets.queue.messages) == 2, "STARTED and COMPLETED were announced, once each"
    assert world.limit_state(f"workflow:{full('pulled')}").active == 0


def test_w5_a_repeated_report_counts_once(world: World, ann: PullWorker) -> None:
    run_now(world)
    ann.claim()
    assert ann.fail(output="boom")["state"] == "RETRYING"
    assert ann.fail(output="boom")["state"] == "RETRYING"
    assert ann.succeed()["state"] == "RETRYING", "what was said first holds"
    world.pass_by("11s")
    assert [run.state for run in world.runs("nightly")] == ["RETRYING", "STARTING"]
    assert world.runs("nightly")[0].reason.text == "exit code 1: boom"


def test_w5_work_released_unstarted_goes_to_another_worker(world: World, ann: PullWorker, bob: PullWorker) -> None:
    run_id = run_now(world)
    ann.claim()
    ann.release(why="shutting down")
    assert world.runs("nightly")[0].reason.text == "released by worker ann: shutting down"

    assert [(each["run_id"], each["attempt"]) for each in bob.claim()] == [(run_id, 1)], "no attempt is used up"
    assert bob.leases[0]["lease"] != ann.leases[0]["lease"]
    assert "attempt 1 is held by bob" in lease_lost(ann.beat)
    bob.beat()
    bob.succeed()
    assert [run.state for run in world.runs("nightly")] == ["SUCCEEDED"]


def test_w5_work_that_has_begun_cannot_be_released(world: World, ann: PullWorker) -> None:
    run_now(world)
    ann.claim()
    ann.beat()
    with pytest.raises(SluiceError, match="has not begun"):
        ann.release()


def test_w5_the_pool_is_in_the_order_of_priority_then_age(world: World, ann: PullWorker) -> None:
    first = run_now(world, "nightly", "a")
    world.clock.pass_by("1s")
    second = run_now(world, "nightly", "b")
    world.clock.pass_by("1s")
    urgent = run_now(world, "urgent", "c")
    assert [each["run_id"] for each in ann.claim(10)] == [urgent, first, second]


def test_w14_of_equal_offers_the_earlier_latest_start_is_first(world: World, ann: PullWorker) -> None:
    hurried = {**NIGHTLY, "deadline": {"start_within": "1h"}}
    world.deploy(flights({"nightly": NIGHTLY, "hurried": hurried}, pulled=TWICE))
    first = run_now(world, "nightly", "a")
    world.clock.pass_by("1s")
    soon = run_now(world, "hurried", "b")
    assert [each["run_id"] for each in ann.claim(10)] == [soon, first]


def test_w5_a_claim_takes_at_most_ten_and_what_worker_can_run(world: World, ann: PullWorker) -> None:
    for number in range(13):
        run_now(world, "nightly", f"r{number}")
    assert len(ann.claim(2)) == 2
    assert len(ann.claim(50)) == 10
    assert len(ann.claim(50)) == 1


def waiting(world: World, seconds: float) -> None:
    """An installation in which a claim may wait this long."""
    world.ports = world.with_ports(settings=replace(world.ports.settings, worker_wait_seconds=seconds))


def test_w5_a_claim_waits_for_offers_for_a_bounded_time(world: World, ann: PullWorker) -> None:
    waiting(world, 60)
    before = world.clock.now()
    assert ann.claim(wait=60 * SECOND) == [], "longer than the API can keep a request"
    assert world.clock.now() - before == 20 * SECOND
    run_now(world)
    before = world.clock.now()
    assert len(ann.claim(wait=20 * SECOND)) == 1
    assert world.clock.now() == before


def test_w5_an_idle_worker_keeps_no_lambda_and_is_given_a_delay(world: World) -> None:
    before = world.clock.now()
    answer = workers.claim(world.ports, "demo.etl", "ann", 1)
    assert world.clock.now() == before
    assert (answer.leases, answer.retry_after, answer.wait) == ([], 5 * SECOND, 0)


def test_w5_a_worker_without_hint_support_is_kept_for_a_second(world: World) -> None:
    before = world.clock.now()
    workers.claim(world.ports, "demo.etl", "ann", 1, 20 * SECOND)
    assert world.clock.now() - before == 1 * SECOND, "or it would ask again at once, and for ever"


def test_w5_a_worker_that_waited_or_got_work_asks_again_at_once(world: World) -> None:
    waiting(world, 10)
    answer = workers.claim(world.ports, "demo.etl", "ann", 1)
    assert (answer.retry_after, answer.wait) == (5 * SECOND, 10 * SECOND)
    assert workers.claim(world.ports, "demo.etl", "ann", 1, answer.wait).retry_after == 0
    run_now(world)
    assert workers.claim(world.ports, "demo.etl", "ann", 1).retry_after == 0


def test_w5_a_run_now_in_the_pool_keeps_its_arguments(world: World, ann: PullWorker) -> None:
    run_id = run_now(world)
    world.put("nightly", {**NIGHTLY, "properties": {"depth": 2}, "on_update": "carry"})
    world.settle()
    lease = ann.claim()[0]
    assert lease["run_id"] == run_id
    assert lease["properties"] == {}


def test_w5_worker_runs_count_for_concurrency_of_their_workflow(world: World, ann: PullWorker) -> None:
    one = {**NIGHTLY, "constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]}
    world.put("nightly", one)
    run_now(world, request="a")
    run_now(world, request="b")
    assert len(ann.claim(10)) == 1
    ann.succeed()
    world.settle()
    assert len(ann.claim(10)) == 1


def test_w5_a_report_of_another_worker_is_refused(world: World, ann: PullWorker, bob: PullWorker) -> None:
    run_now(world)
    ann.claim()
    bob.leases = ann.leases
    assert "is held by ann" in lease_lost(bob.succeed)


def test_w6_why_shows_where_a_pool_run_is(world: World, ann: PullWorker) -> None:
    run_now(world)
    assert explain.why_run(world.runs("nightly")[0])["why"] == "waits for a worker of pool demo.etl"
    ann.claim()
    assert explain.why_run(world.runs("nightly")[0])["why"] == "claimed by worker ann, which has not begun the work yet"
    ann.beat(message="half way")
    assert explain.why_run(world.runs("nightly")[0])["why"] == "half way"


def test_w5_two_workers_reading_the_same_offer_never_get_one_run(
    world: World, ann: PullWorker, bob: PullWorker
) -> None:
    run_now(world)
    offer = world.ports.jobs.offers(POOL, 1)[0]
    first = workers._lease(world.ports, offer, "ann", "secret of ann")
    second = workers._lease(world.ports, offer, "bob", "secret of bob")
    assert first is not None
    assert second is None
