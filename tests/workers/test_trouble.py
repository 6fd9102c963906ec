"""Faults that a claim meets: unreadable contexts, offers without a run, many waiting workers (W5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.run import Offer
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Delete, Put
from chalicelib.flow.runs import workers
from tests.support.pull_workers import POOL, PULLED, PullWorker, lease_lost, run_now
from tests.support.world import World, flights
from tests.workers.conftest import NIGHTLY, TWICE

AT_NOON: dict[str, Any] = {**NIGHTLY, "trigger": {"type": "time", "expression": "1 12 2 3 *"}}


def fails_for(world: World, monkeypatch: pytest.MonkeyPatch, run_id: str) -> None:
    """Make the context of one run unreadable."""
    read = world.payloads.context

    def context(which: str) -> Any:
        if which == run_id:
            raise OSError("S3 is not well")
        return read(which)

    monkeypatch.setattr(world.payloads, "context", context)


def before_a_write_of(world: World, monkeypatch: pytest.MonkeyPatch, kind: type, act: Callable[[], Any]) -> None:
    """Call a function right before the first write of this kind to an offer."""
    inner = world.ports.ledger.commit

    def commit(writes: Any) -> Any:
        if any(isinstance(write, kind) and isinstance(write.row, Offer) for write in writes):
            monkeypatch.undo()
            act()
        return inner(writes)

    monkeypatch.setattr(world.ports.ledger, "commit", commit)


def test_w5_one_run_that_cannot_be_claimed_costs_no_other_lease(
    world: World, ann: PullWorker, bob: PullWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, bad, last = (run_now(world, request=each) for each in ("a", "b", "c"))
    fails_for(world, monkeypatch, bad)

    taken = {each["run_id"] for each in ann.claim(10)}

    assert taken == {first, last}
    monkeypatch.undo()
    assert [(each["run_id"], each["attempt"]) for each in bob.claim(10)] == [(bad, 1)], "it lies in the pool again"


def test_w5_a_claim_that_gets_nothing_for_an_error_says_so(
    world: World, ann: PullWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_for(world, monkeypatch, run_now(world))
    with pytest.raises(SluiceError) as refused:
        ann.claim()
    assert refused.value.status == 503


def test_w5_worker_silent_beyond_its_timeout_has_lost_its_lease(world: World, ann: PullWorker) -> None:
    """The attempt has failed for its timeout, although its worker stopped sending heartbeats as well."""
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": {**PULLED, "heartbeat": "3m"}, "timeout": "1m"}))
    run_now(world)
    ann.claim()
    ann.beat()
    world.pass_by("5m")
    assert [(run.state, run.outcome) for run in world.runs("nightly")] == [("FAILED", "timed_out")]

    assert "timed out: the run took longer than 1m" in lease_lost(ann.succeed)
    assert [record.kind for record in world.records("nightly")] == ["LATE"]


def test_w5_a_timeout_reported_by_its_worker_may_be_repeated(world: World, ann: PullWorker) -> None:
    world.deploy(flights({"nightly": NIGHTLY}, pulled={"target": {**PULLED, "heartbeat": "3m"}, "timeout": "1m"}))
    run_now(world)
    ann.claim()
    ann.beat()
    world.clock.pass_by("2m")
    assert ann.beat()["cancel"] is True
    assert ann.fail()["state"] == "FAILED"
    assert ann.fail()["state"] == "FAILED"
    assert world.records("nightly") == []


def test_w5_an_offer_that_returns_during_its_removal_is_not_lost(
    world: World, ann: PullWorker, bob: PullWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob reads the offer, and then the run, which Ann holds. She releases it, and then he deletes the offer."""
    run_id = run_now(world)
    offer = world.ports.jobs.offers(POOL, 1)[0]
    ann.claim()
    before_a_write_of(world, monkeypatch, Delete, ann.release)
    assert workers._lease(world.ports, offer, "bob", "secret of bob") is None
    assert [each["run_id"] for each in bob.claim()] == [run_id]


def test_w5_slots_of_a_dead_worker_return_and_failures_hold(ann: PullWorker, world: World) -> None:
    """`pool` is the pool of the slots; the target's own `pool` is the one from which workers claim the run."""
    pulled = {"target": PULLED, "pool": "etl", "slots": 2, "notify": []}
    parts = flights({"nightly": {**NIGHTLY, "pause_after_failures": 1}}, pulled=pulled)
    world.deploy({**parts, "pools": {"etl": {"size": 3}}})
    for request in ("a", "b"):
        run_now(world, request=request)
    assert len(ann.claim(10)) == 1, "two slots of three are taken"
    assert world.limit_state("pool:demo.etl").active == 2
    ann.beat()
    world.pass_by("3m")

    assert [run.state for run in world.runs("nightly")] == ["FAILED", "STARTING"]
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.nightly")
    assert schedule_state is not None
    assert schedule_state.mode == "hold"
    assert len(ann.claim(10)) == 1
    ann.succeed()
    assert world.limit_state("pool:demo.etl").active == 0


def test_w5_a_dead_worker_is_noticed_by_the_tick_after_its_lease(world: World, ann: PullWorker) -> None:
    world.clock.wait_until((world.clock.now() // MINUTE + 1) * MINUTE - 2_000)
    run_now(world)
    ann.claim()
    ann.beat()
    world.clock.wait_until(world.clock.now() + MINUTE + 2_000)
    world.tick()
    assert world.runs("nightly")[0].outcome == "lost", "its lease expired two seconds before the tick"


def test_w5_many_unclaimed_offers_are_checked_ever_less_often(world: World) -> None:
    run_now(world)
    revisions = []
    for _ in range(24 * 6):
        world.pass_by("10m")
        revisions.append(world.runs("nightly")[0].rev)
    assert len(set(revisions)) <= 48 + 6
    run = world.runs("nightly")[0]
    assert run.wake_at is not None
    assert run.wake_at - world.clock.now() <= 30 * MINUTE


def test_w5_an_update_applies_to_an_offered_fire_and_its_context(world: World, ann: PullWorker) -> None:
    world.deploy(flights({"clean": AT_NOON}, pulled=TWICE))
    world.pass_by("2m")
    world.put("clean", {**AT_NOON, "properties": {"depth": 2}, "on_update": "carry"})
    [lease] = ann.claim()
    assert lease["properties"] == {"depth": 2}
    assert lease["context"]["properties"] == {"depth": 2}
    assert world.context(world.runs("clean")[0])["properties"] == {"depth": 2}


@pytest.mark.parametrize("close", ["disable", "delete"])
def test_w5_a_claim_overtaken_by_a_close_of_schedule_gets_none(
    world: World, ann: PullWorker, monkeypatch: pytest.MonkeyPatch, close: str
) -> None:
    """The schedule was open when the claim read its state. The disable is acknowledged before the claim is written."""
    world.deploy(flights({"clean": AT_NOON}, pulled=TWICE))
    world.pass_by("2m")
    before_a_write_of(world, monkeypatch, Delete, lambda: getattr(world, close)("clean"))
    assert ann.claim() == []
    assert [run.state for run in world.runs("clean")] == ["ABORTED"]
    assert world.ports.jobs.offers(POOL, 10) == ()


def test_w5_a_disable_that_overtakes_an_offer_empties_the_pool(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(flights({"clean": AT_NOON}, pulled=TWICE))
    before_a_write_of(world, monkeypatch, Put, lambda: world.disable("clean"))
    world.pass_by("2m")
    assert [run.state for run in world.runs("clean")] == ["ABORTED"]
    assert world.ports.jobs.offers(POOL, 10) == ()


def test_w5_a_report_of_a_lease_lost_meanwhile_ends_nothing(
    world: World, ann: PullWorker, bob: PullWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann's lease was held when it was read. Then she released the run, and Bob claimed it."""
    run_now(world)
    ann.claim()

    def put_all(writes: Any) -> None:
        monkeypatch.undo()
        ann.release()
        bob.claim()

    monkeypatch.setattr(world.ports.ledger, "put_all", put_all)
    assert "is held by bob" in lease_lost(lambda: ann.succeed(output="done"))
    run = world.runs("nightly")[0]
    assert (run.state, run.target_id) == ("STARTING", "bob")
    assert bob.succeed()["state"] == "SUCCEEDED"
