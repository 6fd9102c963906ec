"""Policies of several starts a second keep their limit and lose no job when a call takes a minute, or a Lambda dies
(E3)."""

from __future__ import annotations

from functools import lru_cache

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis, duration
from chalicelib.core.limits import blocks
from chalicelib.core.limits.permits import LEAD
from chalicelib.flow.definitions import store
from chalicelib.flow.limits import queues
from chalicelib.flow.system.dispatch import dispatch_together
from tests.faults.invariants import check
from tests.faults.scenarios_paced import beyond_pace
from tests.faults.slow_calls import SlowCalls, tick_once
from tests.support.crash import Crash
from tests.support.samples import parts
from tests.support.schedules import at, partitions
from tests.support.snapshot import Start
from tests.support.world import World, day, flights

LIMIT = "policy:demo.calm"
JOINS: Millis = SECOND // 2  # from the upload until its job is in the queue, with calls of 10 ms
A_LOT: Millis = 60 * SECOND
EVERY = 7  # of the calls; the remainders of the two backlogs differ
PARTS = 4  # of these calls
# Policies and their jobs: one queue with few and with many starts in a block, and a queue in parts.
SWEPT = [(3, 6), (100, 24), pytest.param(200, 24, marks=pytest.mark.long), (500, 24)]


@lru_cache(maxsize=8)
def _queued(jobs: int, most: int, interval: str) -> Start:
    """A world in which this many jobs, due at one instant, have joined the queue of a policy together."""

    def build() -> World:
        world = World(wake_shards=1, history_shards=1)
        each = {f"s{number}": at("1 12 * * *", "notify", policy="calm") for number in range(jobs)}
        world.deploy({**flights(each), "policies": {"calm": {"max_events": most, "interval": interval}}})
        world.settle()
        tick_once(world)
        instant = world.clock.now() // MINUTE * MINUTE + MINUTE
        world.clock.wait_until(instant)
        refs = [ref for ref in world.hints.due(instant) if ref.kind == "job"]
        assert dispatch_together(world.ports, refs, instant) == []
        assert waiting(world) == jobs, "they joined together"
        return world

    return Start(build)


def backlog(jobs: int, most: int, interval: str) -> SlowCalls:
    return SlowCalls(_queued(jobs, most, interval).again())


def waiting(world: World) -> int:
    """How many jobs wait in the queue of the policy, in all its parts."""
    return queues.state_of(world.ports, LIMIT).waiters


def sent(slow: SlowCalls) -> list[str]:
    return [run_id for run_id, _ in slow.world.targets.queue.messages]


@pytest.mark.parametrize(
    ("most", "interval"), [(2, "1s"), (10, "1s"), (100, "1s"), (200, "1s"), (500, "1s"), (600, "1m")]
)
def test_e3_a_fast_policy_sends_all_its_jobs_and_keeps_its_limit(most: int, interval: str) -> None:
    jobs = 30
    slow = backlog(jobs, most, interval)
    slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
    assert len(sent(slow)) == len(set(sent(slow))) == jobs
    assert beyond_pace(slow.started_at, most, duration(interval)) == []
    assert [run.state for name in range(jobs) for run in slow.world.runs(f"s{name}")] == ["SUCCEEDED"] * jobs
    assert waiting(slow.world) == 0
    check(slow.world)


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "others go on"])
@pytest.mark.parametrize(("most", "jobs"), SWEPT)
@pytest.mark.parametrize("part", parts(PARTS))
def test_e3_a_fast_policy_keeps_its_limit_with_calls_of_a_minute(
    most: int, jobs: int, meanwhile: bool, part: int
) -> None:
    """Each call is slow in turn: a table's, a start's. The rest of the system goes on meanwhile, or stands still."""
    whole = backlog(jobs, most, "1s")
    while len(whole.started_at) < jobs:
        whole.work(whole.clock.now() + SECOND // 2)
    assert whole.calls > 20
    for number in range(1 + EVERY * part, whole.calls + 1, EVERY * PARTS):
        slow = backlog(jobs, most, "1s")
        slow.at = number
        slow.surprise = lambda slow=slow: slow.work(slow.clock.now() + A_LOT, ticks=True) if meanwhile else None
        slow.slow = 0 if meanwhile else A_LOT
        slow.work(slow.clock.now() + 3 * MINUTE, ticks=True)
        assert beyond_pace(sorted(slow.started_at), most, SECOND) == [], f"call {number}"
        assert len(set(sent(slow))) == jobs, f"call {number}"
        # A call, or its record, that outlasts its lease is repeated under its ids, if other invocations go on.
        assert len(sent(slow)) == jobs or meanwhile, f"call {number}"
        check(slow.world)


@pytest.mark.parametrize(("most", "jobs"), SWEPT)
@pytest.mark.parametrize("part", parts(PARTS))
def test_e3_death_while_a_block_is_sent_loses_permits_only(most: int, jobs: int, part: int) -> None:
    whole = backlog(jobs, most, "1s")
    while len(whole.started_at) < jobs:
        whole.work(whole.clock.now() + SECOND // 2)
    for number in range(1 + EVERY * part, whole.calls + 1, EVERY * PARTS):
        slow = backlog(jobs, most, "1s")
        died: list[Instant] = []

        def die(slow: SlowCalls = slow, died: list[Instant] = died) -> None:
            died.append(slow.clock.now())
            raise Crash

        slow.at, slow.surprise = number, die
        slow.work(slow.clock.now() + 3 * MINUTE, ticks=True)
        assert died, f"call {number}"
        assert beyond_pace(sorted(slow.started_at), most, SECOND) == [], f"call {number}"
        assert len(set(sent(slow))) == jobs, f"call {number}: lost"
        assert all(len(slow.world.runs(f"s{name}")) == 1 for name in range(jobs)), f"call {number}"
        assert waiting(slow.world) == 0, f"call {number}"
        check(slow.world)


def test_e3_an_urgent_job_passes_all_but_the_acquired_blocks() -> None:
    """A job of an event trigger with a high priority joins a long queue, and starts after about a second."""
    slow = backlog(60, 10, "1s")
    slow.world.put("urgent", partitions(workflow="notify", policy="calm", priority=9))
    slow.world.enable("urgent")
    slow.work(slow.clock.now() + 2 * SECOND)
    assert waiting(slow.world) > 30
    now = slow.clock.now()
    slow.world.upload(day(1))
    slow.work(now + 3 * SECOND)
    [urgent] = slow.world.runs("urgent")
    # It joins, and then waits for the end of the blocks that are acquired: their last appointment is at most the lead
    # ahead, and its own is at most a block later.
    assert urgent.start_requested_at is not None
    assert urgent.start_requested_at - now <= JOINS + LEAD + blocks.MAX_SPAN
    assert waiting(slow.world) > 20, "the others still wait"
    slow.work(now + MINUTE, ticks=True)
    assert len(sent(slow)) == len(set(sent(slow))) == 61
    assert beyond_pace(sorted(slow.started_at), 10, SECOND) == []
    check(slow.world)


@pytest.mark.parametrize("act", ["disable", "delete"])
def test_c13_a_closed_schedule_sends_nothing_of_its_block(act: str) -> None:
    """The schedule is closed before any call of the block that reads or writes: then no call of it begins later than
    100 ms after that."""
    whole = backlog(4, 10, "1s")
    while len(whole.started_at) < 4:
        whole.work(whole.clock.now() + SECOND // 2)
    for number in range(1, whole.calls + 1):
        slow = backlog(4, 10, "1s")
        world, closed = slow.world, list[Instant]()

        def close(world: World = world, closed: list[Instant] = closed, slow: SlowCalls = slow) -> None:
            for name in range(4):
                getattr(world, act)(f"s{name}")
            closed.append(slow.clock.now())

        slow.at, slow.surprise = number, close
        slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
        assert closed, f"call {number}"
        assert all(start <= closed[0] + 100 for start in slow.started_at), f"call {number}"
        check(world)


def test_e3_a_job_that_joins_a_part_of_an_idle_queue_is_served() -> None:
    """The job joins before any call of the service that finds all parts empty, and no tick comes."""

    def nearly_empty() -> SlowCalls:
        slow = backlog(4, 500, "1s")
        slow.world.put("late", partitions(workflow="notify", policy="calm"))
        slow.world.enable("late")
        while len(slow.started_at) < 4:
            slow.work(slow.clock.now() + SECOND // 10)
        slow.calls = 0
        return slow

    whole = nearly_empty()
    whole.work(whole.clock.now() + 5 * SECOND)
    calls = whole.calls
    assert whole.world.limit_state(LIMIT).wake_at is None, "it sleeps"
    for number in range(1, calls + 1):
        slow = nearly_empty()

        def join(slow: SlowCalls = slow) -> None:
            slow.world.upload(day(1))
            slow.work(slow.clock.now() + SECOND // 2)

        slow.at, slow.surprise = number, join
        slow.work(slow.clock.now() + 10 * SECOND)
        assert len(sent(slow)) == len(set(sent(slow))) == 5, f"call {number}"
        assert slow.world.limit_state(LIMIT).wake_at is None, f"call {number}"
        check(slow.world)


@pytest.mark.parametrize("most", [300, 20])
def test_e3_a_policy_with_a_backlog_changes_to_and_from_parts(most: int) -> None:
    """Jobs wait in one queue when the policy becomes fast enough for parts, or in parts when it becomes slow: all are
    sent, the urgent one first."""
    slow = backlog(12, 20 if most == 300 else 300, "1s")
    world = slow.world
    store.put(world.ports, "policy", "demo.calm", {"max_events": most, "interval": "1s"}, "tester")
    world.put("urgent", partitions(workflow="notify", policy="calm", priority=9))
    world.enable("urgent")
    world.upload(day(1))
    slow.work(slow.clock.now() + 2 * MINUTE, ticks=True)
    assert len(sent(slow)) == len(set(sent(slow))) == 13
    assert beyond_pace(sorted(slow.started_at), most, SECOND) == []
    assert waiting(world) == 0
    check(world)
