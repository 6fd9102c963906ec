"""A run that misses the instant of its permit gives the permit back, unless jobs have acquired later ones (E3)."""

from __future__ import annotations

from functools import lru_cache

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND, iso
from chalicelib.core.limits.names import policy_limit
from tests.faults.scenarios_paced import beyond_pace
from tests.faults.slow_calls import SlowCalls, tick_once
from tests.support.samples import parts
from tests.support.schedules import at
from tests.support.snapshot import Start
from tests.support.world import World, flights

SPACING = 6 * HOUR + 2 * SECOND
PARTS = 3  # of the calls
CALM = policy_limit("demo.calm")


@lru_cache(maxsize=2)
def _due(jobs: int, workflow: str) -> Start:
    """A world with so many jobs that are due in a minute, under a policy of one start in six hours."""

    def build() -> World:
        world = World(wake_shards=1, history_shards=1)
        each = {f"s{number}": at("1 12 * * *", workflow, policy="calm") for number in range(jobs)}
        world.deploy({**flights(each), "policies": {"calm": {"max_events": 1, "interval": "6h"}}})
        world.settle()
        tick_once(world)
        return world

    return Start(build)


def started(jobs: int, workflow: str, call: int, seconds: int = 60) -> SlowCalls:
    """That world ten minutes later; this call took so many seconds."""
    slow = SlowCalls(_due(jobs, workflow).again())
    slow.at, slow.slow = call, seconds * SECOND
    slow.work(slow.clock.now() + 10 * MINUTE, ticks=True)
    return slow


@pytest.mark.parametrize(("jobs", "workflow"), [(3, "notify"), (1, "clean"), (3, "clean")])
@pytest.mark.parametrize("part", parts(PARTS))
def test_a_start_that_misses_its_permit_follows_within_minutes(jobs: int, workflow: str, part: int) -> None:
    """Each call before the first start takes a minute in turn: a permit that was acquired before it is too old."""
    undisturbed = started(jobs, workflow, call=-1)
    missed = 0
    for call in range(1 + part, undisturbed.calls + 1, PARTS):
        slow = started(jobs, workflow, call)
        [first] = slow.started_at
        state = slow.world.limit_state(CALM)
        assert first <= undisturbed.started_at[0] + 2 * MINUTE, f"call {call}: started at {iso(first)}"
        assert state.head - SPACING <= first <= state.head - SPACING + 2 * SECOND, f"call {call}"
        assert state.waiters == jobs - 1, f"call {call}"
        slow.work(first + 6 * HOUR + 5 * MINUTE, ticks=True)
        assert len(slow.started_at) == min(jobs, 2), f"call {call}: the next one waits for its own permit alone"
        assert beyond_pace(slow.started_at, 1, 6 * HOUR) == [], f"call {call}"
        missed += first > undisturbed.started_at[0] + 30 * SECOND
    assert missed or part, "some of the calls of the first part came between the permit and the start"


@pytest.mark.parametrize("part", parts(PARTS))
def test_a_missed_permit_is_lost_if_another_job_has_a_later_one(part: int) -> None:
    """Both start, and no interval has two starts."""
    undisturbed = started(2, "clean", call=-1)
    for call in range(1 + 3 * part, undisturbed.calls + 1, 3 * PARTS):
        slow = started(2, "clean", call, seconds=6 * 3600 + 30)
        slow.work(slow.clock.now() + 13 * HOUR, ticks=True)
        assert len(slow.started_at) == 2, f"call {call}"
        assert beyond_pace(slow.started_at, 1, 6 * HOUR) == [], f"call {call}"
