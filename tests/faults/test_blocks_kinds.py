"""Jobs of every kind that wait for a permit of a fast policy are sent in blocks: events, run-now, redrives, backfills
(E3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.targets.answers import Never
from chalicelib.flow.definitions import store
from chalicelib.flow.runs import dead_letters
from tests.faults import slow_calls
from tests.faults.invariants import check
from tests.faults.scenarios_paced import beyond_pace
from tests.faults.slow_calls import SlowCalls
from tests.support import backfills
from tests.support.crash import Crash
from tests.support.samples import parts
from tests.support.schedules import at, partitions
from tests.support.snapshot import Start
from tests.support.world import World, day, flights

LIMIT = "policy:demo.calm"
JOBS = 16
MOST = 10
EVERY = 11  # of the calls
PARTS = 3  # of these calls
SLOW_TO_START = {"max_events": 1, "interval": "1h"}  # so that all jobs but the first wait


def _world(schedules: dict[str, object]) -> World:
    world = World(wake_shards=1, history_shards=1)
    world.deploy({**flights(schedules), "policies": {"calm": SLOW_TO_START}})
    world.settle()
    return world


def _events() -> World:
    """One partition fires many schedules, each of which gathers events."""
    each = {f"s{number:02d}": partitions(workflow="notify", policy="calm") for number in range(JOBS)}
    world = _world(each)
    world.upload(day(1))
    return world


def _detached() -> World:
    """Each partition is a job of its own."""
    world = _world({"s00": partitions(workflow="notify", policy="calm", coalesce=False)})
    for number in range(1, JOBS + 1):
        world.upload(day(number))
    return world


def _correlated() -> World:
    world = _world({"s00": partitions(workflow="notify", policy="calm", by=["day"])})
    for number in range(1, JOBS + 1):
        world.upload(day(number))
    return world


def _requested() -> World:
    world = _world({"s00": at("1 3 * * *", "notify", policy="calm")})
    for number in range(JOBS):
        world.run_now("s00", request=f"r{number}")
    return world


def _redriven() -> World:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"s00": partitions(workflow="notify", coalesce=False)}))
    world.targets.queue.down = Never("no such queue")
    for number in range(1, JOBS + 1):
        world.upload(day(number))
    world.settle()
    world.targets.queue.down = None
    each = {"s00": partitions(workflow="notify", policy="calm", coalesce=False)}
    world.deploy({**flights(each), "policies": {"calm": SLOW_TO_START}})
    world.settle()
    assert len(dead_letters.redrive_all(world.ports, "demo", "demo.flights.s00", JOBS).run_ids) == JOBS
    return world


def _backfilled(at_a_time: int = JOBS) -> World:
    world = _world({"s00": at("1 3 * * *", "notify", policy="calm")})
    days = {"from_": "2026-01-01T00:00:00Z", "to": f"2026-01-{JOBS:02d}T23:00:00Z"}
    backfills.begin(world, "s00", **days, concurrency=at_a_time)
    return world


KINDS: dict[str, Callable[[], World]] = {
    "events": _events,
    "detached events": _detached,
    "correlated events": _correlated,
    "run now": _requested,
    "redrives": _redriven,
    "a backfill": _backfilled,
}


@lru_cache(maxsize=len(KINDS))
def _waiting(kind: str) -> Start:
    """A world in which all jobs but the first wait, and the policy has just become fast."""

    def build() -> World:
        world = KINDS[kind]()
        world.settle()
        store.put(world.ports, "policy", "demo.calm", {"max_events": MOST, "interval": "1s"}, "tester")
        assert world.limit_state(LIMIT).waiters == JOBS - 1, world.limit_state(LIMIT)
        return world

    return Start(build)


@pytest.mark.parametrize("kind", KINDS)
def test_e3_waiting_jobs_of_every_kind_are_sent_in_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_calls, "START", slow_calls.TABLE)
    slow = SlowCalls(_waiting(kind).again())
    slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
    sent = [run_id for run_id, _ in slow.world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == JOBS
    assert beyond_pace(sorted(slow.started_at), MOST, SECOND) == []
    assert max(slow.started_at) - min(slow.started_at) <= 4 * SECOND, "one by one they take over six seconds"
    check(slow.world)


@pytest.mark.parametrize("part", parts(PARTS))
def test_t16_an_event_that_comes_amid_its_block_is_in_a_message(part: int) -> None:
    """A second partition comes before any call of the block. Each schedule then sends it: in the message of the job
    that waited, or in another one."""
    whole = SlowCalls(_waiting("events").again())
    whole.work(whole.clock.now() + MINUTE)
    for number in range(1 + EVERY * part, whole.calls + 1, EVERY * PARTS):
        slow = SlowCalls(_waiting("events").again())
        slow.at, slow.surprise = number, lambda slow=slow: slow.world.upload(day(2))
        slow.work(slow.clock.now() + 3 * MINUTE, ticks=True)
        told = Counter[str]()
        for _, context in slow.world.targets.queue.messages:
            told.update(event["id"] for event in context["events"])
        assert set(told.values()) == {JOBS}, f"call {number}"
        assert len(told) == 2, f"call {number}"
        assert beyond_pace(sorted(slow.started_at), MOST, SECOND) == [], f"call {number}"
        check(slow.world)


@pytest.mark.parametrize("kind", ["events", "redrives", "a backfill"])
@pytest.mark.parametrize("part", parts(PARTS))
def test_e3_a_death_amid_a_block_of_any_kind_loses_permits_only(kind: str, part: int) -> None:
    whole = SlowCalls(_waiting(kind).again())
    whole.work(whole.clock.now() + MINUTE)
    for number in range(1 + EVERY * part, whole.calls + 1, EVERY * PARTS):
        slow = SlowCalls(_waiting(kind).again())

        def die() -> None:
            raise Crash

        slow.at, slow.surprise = number, die
        slow.work(slow.clock.now() + 3 * MINUTE, ticks=True)
        sent = {run_id for run_id, _ in slow.world.targets.queue.messages}
        assert len(sent) == JOBS, f"call {number}"
        assert beyond_pace(sorted(slow.started_at), MOST, SECOND) == [], f"call {number}"
        assert slow.world.limit_state(LIMIT).waiters == 0, f"call {number}"
        check(slow.world)


def _becomes(world: World, most: int) -> None:
    store.put(world.ports, "policy", "demo.calm", {"max_events": most, "interval": "1s"}, "tester")


@pytest.mark.parametrize("refused", [0, 3])
@pytest.mark.parametrize("most", [MOST, 300], ids=["one queue", "a queue in parts"])
@pytest.mark.parametrize("at_a_time", [1, 5, JOBS])
def test_l12_a_backfill_sent_in_blocks_goes_on_to_its_end(at_a_time: int, most: int, refused: int) -> None:
    """Each block that is recorded wakes its backfill, which creates the next jobs. It used to wait for ever."""
    world = _backfilled(at_a_time)
    world.settle()  # all but the first wait
    _becomes(world, most)
    slow = SlowCalls(world)
    slow.world.targets.queue.answers = [Never("no such queue")] * refused
    slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
    [row] = world.ports.jobs.backfills("demo.flights.s00")
    assert (row.succeeded, row.failed, row.ended_at is not None) == (JOBS - refused, refused, True)
    check(world)


@pytest.mark.parametrize("at_a_time", [1, JOBS])
def test_l12_a_backfill_in_blocks_goes_on_without_hints(at_a_time: int) -> None:
    world = _backfilled(at_a_time)
    world.settle()
    _becomes(world, MOST)
    for _ in range(3 * JOBS):
        world.settle()
        world.hints.sent = []
        world.clock.pass_by("1m")
        world.tick()
    [row] = world.ports.jobs.backfills("demo.flights.s00")
    assert (row.succeeded, row.ended_at is not None) == (JOBS, True)


@pytest.mark.parametrize("part", parts(PARTS))
def test_l12_a_stopped_backfill_sends_nothing_of_its_block(part: int) -> None:
    """It is stopped before any call of the block. Then no call begins later than 100 ms after that."""
    whole = SlowCalls(_waiting("a backfill").again())
    whole.work(whole.clock.now() + MINUTE)
    for number in range(1 + EVERY * part, whole.calls + 1, EVERY * PARTS):
        slow = SlowCalls(_waiting("a backfill").again())
        world, stopped = slow.world, list[int]()

        def stop(world: World = world, stopped: list[int] = stopped) -> None:
            [row] = world.ports.jobs.backfills("demo.flights.s00")
            backfills.stop(world, "s00", row.id)
            stopped.append(world.clock.now())

        slow.at, slow.surprise = number, stop
        slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
        assert stopped, f"call {number}"
        assert all(start <= stopped[0] + 100 for start in slow.started_at), f"call {number}"
        check(world)


def test_e6_an_undeliverable_event_is_redriven_with_its_context() -> None:
    """A failed delivery of a block keeps its context, since the events of its generation may be gone at the redrive."""
    slow = SlowCalls(_waiting("events").again())
    slow.world.targets.queue.down = Never("no such queue")
    slow.work(slow.clock.now() + MINUTE)
    [failed] = slow.world.runs("s05")
    assert failed.state == "FAILED"
    kept = slow.world.context(failed)
    assert [event["path"] for event in kept["events"]], kept
