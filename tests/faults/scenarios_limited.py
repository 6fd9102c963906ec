"""Constraints, for `test_crash_points.py`: rates, gaps, groups, cancelled older runs, freshness, a slow pace (C1, C4,
C5, C7).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from chalicelib.core.instants import MINUTE
from tests.faults.dying import Scenario, finish, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.crash import lost
from tests.support.examples import constraints_drawn
from tests.support.schedules import partitions
from tests.support.world import World


def limited(*constraints: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return partitions(by=["day"], constraints=list(constraints), **fields)


RATE = {"type": "rate", "max": 1, "per": "10m"}
GAP = {"type": "since_last_run", "at_least": "10m", "on_unmet": "wait"}
GROUP = {"type": "concurrency", "max": 1, "group": "cluster", "on_unmet": "wait"}
ROOM = {"type": "concurrency", "max": 1, "on_unmet": "cancel_other"}
FRESH = {"type": "fresh", "workflows": ["clean"], "within": "1h", "on_unmet": "wait"}


def _apart_by(world: World, *names: str) -> int:
    """The shortest time between two starts, in ms; 0 without two starts."""
    starts = sorted(run.claimed_at for name in names for run in world.runs(name))
    return min((later - earlier for earlier, later in pairwise(starts)), default=0)


def _one_each(world: World) -> None:
    """A third schedule of the workflow, put between the starts, has another rate."""
    upload(world, 1)
    people(world, lambda: world.put("more", limited({"type": "rate", "max": 9, "per": "day"}, dataset="weather")))
    finish(world)
    passes(world, "10m1s")
    finish(world)


def _make_room(world: World) -> None:
    upload(world, 1)
    world.clock.pass_by("1s")
    upload(world, 2)
    passes(world, "1m")
    finish(world)


def _become_fresh(world: World) -> None:
    upload(world, 1, "weather", "x.csv")
    upload(world, 1)
    finish(world)
    finish(world)


def _all_that_comes(world: World) -> None:
    """What meets a constraint of any kind: data of both datasets, and time."""
    upload(world, 1, "weather", "x.csv")
    upload(world, 1)
    passes(world, "10m")
    finish(world)


def _drained_while_stale(world: World) -> None:
    """A job that was met before the drain still waits for its upstream, and the upstream's success still wakes it."""
    upload(world, 1, "weather", "x.csv")
    people(world, lambda: world.pause("join", "drain"))
    upload(world, 1)
    finish(world)
    people(world, lambda: world.disable("clean"))


def _wait_at_a_slow_pace(world: World) -> None:
    for number in (1, 2, 3):
        upload(world, number)
    for _ in range(5):
        world.clock.pass_by("5s")
        world.settle(lost)
    finish(world)


def _through_plenty(world: World) -> None:
    """Jobs enter the rate window one by one, and wait for the pace together."""
    for number in (1, 2):
        people(world, lambda number=number: world.run_now("plenty", f"r{number}"))
        upload(world, number)
    for _ in range(12):
        world.clock.pass_by("5s")
        world.settle(lost)
    finish(world)


def _leave_a_slow_pace(world: World) -> None:
    """Two jobs hold a slot and an entry of the rate window while they queue for the pace. Then the schedule is
    disabled.
    """
    for number in (1, 2, 3):
        upload(world, number)
    people(world, lambda: world.disable("paced"))


SLOW = {"start_burst": 1, "start_rate_per_second": 0.1}
PACED = limited({"type": "concurrency", "max": 3, "on_unmet": "wait"}, {"type": "rate", "max": 5, "per": "hour"})


def _ends_unheard(world: World) -> None:
    """A run holds the only slot, and the event of its end is lost. The queue causes a poll of its state."""
    upload(world, 1)
    for run in list(world.targets.emr.runs.values()):
        lost(lambda run=run: world.emr_says(run.id, "RUNNING"))
        run.state = "SUCCESS"
    upload(world, 2)
    passes(world, "1m10s", "1m")
    finish(world)


LIMITED = {
    "a slot whose run has ended without an event": Scenario(
        {"clean": CLEAN}, _ends_unheard, [({"clean": ["SUCCEEDED", "SUCCEEDED"]}, 2)]
    ),
    "a rate, and two schedules that share it": Scenario(
        {"a": limited(RATE), "b": limited(RATE)},
        _one_each,
        [({"a": ["SUCCEEDED"], "b": ["SUCCEEDED"]}, 2)],
        holds=lambda world: _apart_by(world, "a", "b") > 10 * MINUTE - 1,
    ),
    "a gap after the last run, and two schedules that keep it": Scenario(
        {"a": limited(GAP), "b": limited(GAP)},
        _one_each,
        [({"a": ["SUCCEEDED"], "b": ["SUCCEEDED"]}, 2)],
        holds=lambda world: _apart_by(world, "a", "b") >= 10 * MINUTE,
    ),
    "a group of two workflows": Scenario(
        {"a": limited(GROUP), "b": limited(GROUP, workflow="join")},
        _one_each,
        [({"a": ["SUCCEEDED"], "b": ["SUCCEEDED"]}, 2)],
    ),
    "a newcomer that cancels the older run": Scenario(
        {"a": limited(ROOM)},
        _make_room,
        # Killed before the older run was started: the job is withdrawn, or the older run ends before a cancel is
        # needed.
        [({"a": [first, "SUCCEEDED"]}, started) for first in ("CANCELLED", "SUCCEEDED") for started in (2, 1)],
    ),
    "a freshness that an upstream's success meets": Scenario(
        {"clean": CLEAN, "join": limited(FRESH, workflow="join", dataset="weather", timeout="never")},
        _become_fresh,
        [({"clean": ["SUCCEEDED"], "join": ["SUCCEEDED"]}, 2)],
    ),
    **{
        f"a job that {each['type']} holds": Scenario(
            {"join": limited(each, workflow="join", dataset="weather", timeout="never")},
            _all_that_comes,
            [({"join": ["SUCCEEDED"]}, 1)],
        )
        for each in constraints_drawn()
    },
    "a freshness that is met after a drain": Scenario(
        {"clean": CLEAN, "join": limited(FRESH, workflow="join", dataset="weather", timeout="never")},
        _drained_while_stale,
        [({"clean": [clean], "join": ["SUCCEEDED"]}, 2) for clean in ("SUCCEEDED",)]
        # Killed in between: the upstream is closed before it has run, and the join waits for ever.
        + [({"clean": clean, "join": []}, started) for clean in ([], ["ABORTED"], ["CANCELLED"]) for started in (0, 1)],
        later=lambda world: world.disable("join"),
    ),
    "a pace that keeps who holds a slot and a rate": Scenario(
        {"paced": PACED}, _wait_at_a_slow_pace, [({"paced": ["SUCCEEDED"] * 3}, 3)], tuned=SLOW
    ),
    "a rate, and a pace that others keep busy": Scenario(
        {"plenty": partitions(9, "join"), "paced": limited({"type": "rate", "max": 1, "per": "15s"})},
        _through_plenty,
        [({"plenty": ["SUCCEEDED"] * 2, "paced": ["SUCCEEDED"] * 2}, 4)],
        tuned=SLOW,
    ),
    "a disable of who holds a slot and a rate": Scenario(
        {"paced": PACED},
        _leave_a_slow_pace,
        [({"paced": ["SUCCEEDED"]}, 1), ({"paced": ["CANCELLED"]}, 1), ({"paced": ["ABORTED"]}, 0), ({"paced": []}, 0)],
        tuned=SLOW,
    ),
}
