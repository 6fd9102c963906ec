"""Policies keep their limit and their pace when calls take time, one call takes a minute, or a server is
killed (E3).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis, duration
from tests.faults.scenarios_paced import beyond_pace
from tests.faults.slow_calls import SlowCalls, tick_once
from tests.support.crash import Crash
from tests.support.samples import parts
from tests.support.schedules import at
from tests.support.snapshot import Start
from tests.support.world import World, flights

POLICIES = [(1, "1s"), (2, "2s"), (1, "5s"), (20, "1m")]
A_LOT: Millis = 60 * SECOND


@lru_cache(maxsize=1)
def _queued(jobs: int, most: int, interval: str, workflow: str) -> Start:
    """A world in which this many jobs queue at one policy."""

    def build() -> World:
        world = World(wake_shards=1, history_shards=1)
        each = {f"s{number}": at("1 12 * * *", workflow, policy="calm") for number in range(jobs)}
        world.deploy({**flights(each), "policies": {"calm": {"max_events": most, "interval": interval}}})
        world.settle()
        tick_once(world)
        world.clock.wait_until(world.clock.now() + MINUTE)
        world.settle()
        return world

    return Start(build)


def backlog(jobs: int, most: int, interval: str, workflow: str = "notify") -> SlowCalls:
    """A world in which this many jobs queue at one policy, and calls begin to take time."""
    return SlowCalls(_queued(jobs, most, interval, workflow).again())


def quiet(jobs: int, most: int, interval: str, workflow: str = "notify") -> SlowCalls:
    """The same world, run without further events until all jobs have started."""
    slow = backlog(jobs, most, interval, workflow)
    while len(slow.started_at) < jobs - 1:
        slow.work(slow.clock.now() + SECOND // 2)
    return slow


def allowed(starts: list[Instant], most: int, interval: Millis) -> float:
    """The number of starts as a share of the allowed starts between the first and the last of them."""
    return (len(starts) - 1) * interval / most / (starts[-1] - starts[0])


@pytest.mark.parametrize("workflow", ["notify", "clean"])
@pytest.mark.parametrize(("most", "interval"), POLICIES)
def test_e3_a_queue_runs_at_the_pace_of_its_policy(most: int, interval: str, workflow: str) -> None:
    jobs = 61
    slow = backlog(jobs, most, interval, workflow)
    slow.work(slow.clock.now() + 2 * jobs * duration(interval) // most + MINUTE)
    starts = slow.started_at
    assert len(starts) == jobs - 1, "one started before they began to queue"
    assert beyond_pace(starts, most, duration(interval)) == []
    assert allowed(starts, most, duration(interval)) >= 0.95


# A policy, how many jobs queue for it, and which calls `make test` makes slow: every so many. There are more jobs than
# the policy allows in an interval.
SLOW = [(1, "1s", 5, 1), (2, "2s", 6, 5), (1, "10s", 5, 3), (20, "1m", 25, 61)]


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "others go on"])
@pytest.mark.parametrize(("most", "interval", "jobs", "every"), SLOW)
def test_e3_a_policy_keeps_its_limit_with_calls_of_a_minute(
    most: int, interval: str, jobs: int, every: int, meanwhile: bool
) -> None:
    """Each call up to the first start is slow in turn: a table's, the bucket's, a start's."""
    _slow_in_turn(most, interval, jobs, every, meanwhile, "notify")


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "others go on"])
@pytest.mark.parametrize(("most", "interval", "jobs", "every"), SLOW)
def test_e3_a_policy_holds_at_emr_with_calls_of_a_minute(
    most: int, interval: str, jobs: int, every: int, meanwhile: bool
) -> None:
    _slow_in_turn(most, interval, jobs, 5 * every, meanwhile, "clean")


@pytest.mark.long
@pytest.mark.parametrize("workflow", ["notify", "clean"])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "others go on"])
@pytest.mark.parametrize(("most", "interval", "jobs", "every"), SLOW)
def test_e3_a_policy_holds_whichever_call_takes_a_minute(
    most: int, interval: str, jobs: int, every: int, meanwhile: bool, workflow: str
) -> None:
    _slow_in_turn(most, interval, jobs, 7 if jobs > 10 else 1, meanwhile, workflow)


def _slow_in_turn(most: int, interval: str, jobs: int, every: int, meanwhile: bool, workflow: str) -> None:
    calls = quiet(jobs, most, interval, workflow).calls
    assert calls > 60
    stale = 0
    for number in range(1, calls + 1, every):
        slow = backlog(jobs, most, interval, workflow)
        slow.at = number
        slow.surprise = lambda slow=slow: slow.work(slow.clock.now() + A_LOT, ticks=True) if meanwhile else None
        slow.slow = 0 if meanwhile else A_LOT
        slow.work(slow.clock.now() + 8 * MINUTE, ticks=True)
        starts = sorted(slow.started_at)
        assert beyond_pace(starts, most, duration(interval)) == [], f"call {number}"
        made = [run for name in range(jobs) for run in slow.world.runs(f"s{name}")]
        sent = {run_id for run_id, _ in slow.world.targets.queue.messages}
        started = sent or {run.name.rpartition("-")[0] for run in slow.world.targets.emr.runs.values()}
        assert sorted(started) == sorted(run.run_id for run in made), f"call {number}"
        # One started before. A start call that outlasts its lease is repeated under its id, if other invocations
        # continue.
        assert jobs - 1 <= len(starts) <= jobs - 1 + meanwhile, f"call {number}"
        stale += max(b - a for a, b in pairwise(starts)) > 2 * duration(interval) // most
    assert stale, "some of these calls came between a permit and its start"


@pytest.mark.parametrize("workflow", ["notify", "clean"])
@pytest.mark.parametrize("part", parts(3))
def test_e3_a_server_that_dies_delays_its_queue_by_tick_at_most(workflow: str, part: int) -> None:
    """The run of its own recorded call waits for the lease of that call; all others continue."""
    jobs, interval = 6, "2s"
    calls = quiet(4, 1, interval, workflow).calls
    for number in range(1 + part, calls + 1, 3):
        slow = backlog(jobs, 1, interval, workflow)
        died: list[Instant] = []

        def die(slow: SlowCalls = slow, died: list[Instant] = died) -> None:
            died.append(slow.clock.now())
            raise Crash

        slow.at, slow.surprise = number, die
        slow.work(slow.clock.now() + 3 * MINUTE, ticks=True)
        assert died, f"call {number}"
        later = [start for start in slow.started_at if start > died[0]]
        assert min(later) - died[0] <= MINUTE + 10 * SECOND, f"call {number}: the queue stood still"
        others = jobs - 2 - (len(slow.started_at) - len(later))
        assert len(later) >= others, f"call {number}"
        assert later[others - 1] - died[0] <= MINUTE + (10 + 3 * others) * SECOND, f"call {number}"
        slow.work(slow.clock.now() + 5 * MINUTE, ticks=True)
        assert all(len(slow.world.runs(f"s{name}")) == 1 for name in range(jobs)), f"call {number}: lost or doubled"
        assert beyond_pace(slow.started_at, 1, duration(interval)) == [], f"call {number}"
        started = {run_id for run_id, _ in slow.world.targets.queue.messages} or set(slow.world.targets.emr.runs)
        assert len(started) == jobs, f"call {number}"


def test_e3_a_job_joining_the_queue_of_a_dead_server_serves_it() -> None:
    slow = backlog(6, 1, "2s")
    slow.work(slow.clock.now() + 3 * SECOND)
    before = len(slow.started_at)
    slow.surprise, slow.at = dies, slow.calls + 1
    slow.work(slow.clock.now() + 6 * SECOND)
    assert len(slow.started_at) == before
    assert slow.world.limit_state("policy:demo.calm").waiters
    slow.world.run_now("s0")
    slow.work(slow.clock.now() + 20 * SECOND)
    assert len(slow.started_at) == 6, "no tick was needed"


def dies() -> None:
    raise Crash
