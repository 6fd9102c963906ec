"""Fires of many events that share rows, under a policy of many starts a second (E2, E3)."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.rows.job import Job
from chalicelib.flow.definitions import store
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.jobs.check import check_job
from tests.acceptance.targets.test_policies import most_in, under
from tests.support import events
from tests.support.clock import NOON
from tests.support.deliveries_crossed import Interfering
from tests.support.schedules import at
from tests.support.world import World

ONE = "0 13 * * *"
FIRST = NOON + HOUR


def _world(per_second: int, *counts: int, over: str | None = None, **rest: object) -> World:
    world = World(wake_shards=1, history_shards=1)
    spreads = [{"count": count} | ({"over": over} if over else {}) for count in counts]
    schedules = {
        f"batch{number}": at(ONE, "notify", policy="calm", spread=spread, **rest)
        for number, spread in enumerate(spreads)
    }
    world.deploy(under({"max_events": per_second, "interval": "1s"}, schedules))
    world.clock.wait_until(FIRST - MINUTE - 1)
    return world


@pytest.mark.parametrize(("per_second", "counts"), [(500, (600,)), (20, (38, 38, 38)), (20, (7, 100))])
def test_e3_events_of_bundles_keep_the_pace_of_their_policy(per_second: int, counts: tuple[int, ...]) -> None:
    world = _world(per_second, *counts)
    world.pass_by("1m")
    assert all(job.is_bundle for number in range(len(counts)) for job in world.jobs(f"batch{number}"))
    world.pass_by("3m")
    starts = world.targets.queue.sent_at
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == sum(counts)
    assert most_in(starts, SECOND) <= per_second
    assert min(starts) >= FIRST
    for number, count in enumerate(counts):
        assert len(events.sent(world, f"batch{number}")) == count
        assert world.jobs(f"batch{number}") == []
    assert world.limit_state("policy:demo.calm").waiters == 0


def test_e3_no_event_of_a_window_starts_before_its_instant() -> None:
    world = _world(100, 120, over="6s")
    world.pass_by("4m")
    sent = dict(zip((run_id for run_id, _ in world.targets.queue.messages), world.targets.queue.sent_at, strict=True))
    assert len(sent) == 120
    for run_id, sent_at in sent.items():
        assert sent_at >= FIRST + int(run_id.rpartition("-")[2], 36) * 50


def test_w8_an_event_is_cancelled_in_the_queue() -> None:
    world = _world(20, 100)
    world.pass_by("62s")
    cancelled = events.waiting(world, "batch0")[-1]
    withdraw(world.ports, cancelled, "tester")
    world.pass_by("3m")
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == 99
    assert cancelled not in ids
    assert [record.id for record in world.records("batch0")] == [cancelled]


def test_l3_a_disable_drops_what_waits_in_the_queue() -> None:
    world = _world(20, 300)
    calls: list[None] = []

    def disable_once() -> None:
        calls.append(None)
        if len(calls) == 10:
            world.disable("batch0")

    Interfering(world, after=disable_once)
    world.pass_by("3m")
    sent = len(world.targets.queue.messages)
    assert 10 <= sent <= 60
    assert len(events.sent(world, "batch0")) == sent
    assert events.on_record(world, "batch0") == 300 - sent
    assert world.limit_state("policy:demo.calm").waiters == 0


def test_e3_a_slower_policy_divides_what_waits() -> None:
    world = _world(20, 100)
    world.pass_by("62s")
    store.put(world.ports, "policy", "demo.calm", {"max_events": 20, "interval": "1m"}, "tester")
    world.pass_by("10m")
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == 100


def test_e3_a_bundle_that_is_checked_alone_joins_the_queue() -> None:
    world = _world(20, 100)
    [bundle] = [job for job in _prepared(world) if job.is_bundle]
    world.clock.wait_until(FIRST)
    assert check_job(world.ports, (bundle.schedule, bundle.generation, bundle.sort_key)).ended == "queued"
    world.pass_by("3m")
    assert len({run_id for run_id, _ in world.targets.queue.messages}) == 100


def _prepared(world: World) -> list[Job]:
    world.tick()
    return world.jobs("batch0")
