"""Scenarios in which the life of a schedule ends, for `test_crash_points.py` (L10)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.schedule import ScheduleState, Timer
from tests.faults.dying import Scenario, passes, upload
from tests.support.fakes import EmrRun
from tests.support.world import World, full

ONCE: dict[str, Any] = {"type": "time", "due_time": "70s"}
PARTITION: dict[str, Any] = {"type": "partition", "dataset": "flights"}
NAMES = ("message", "nightly", "two", "one")


def _lives(world: World) -> None:
    """Two schedules fire once and are complete. Two wait for data; one of them has gathered too little when its ttl
    ends.
    """
    upload(world, 1)
    passes(world, "20s", "50s", "60s", "60s")


def _all_gone(world: World) -> bool:
    schedule_states = [world.ports.rows.get(ScheduleState, full(name)) for name in NAMES]
    left = [name for name in NAMES if world.ports.rows.get(Timer, full(name)) or world.jobs(name)]
    return (
        all(schedule_state is not None and schedule_state.mode == "deleted" for schedule_state in schedule_states)
        and not left
    )


def _first_fails(run: EmrRun) -> str:
    return "FAILED" if run.name.endswith("-1") else "SUCCESS"


ENDING = {
    "schedules whose life ends, by their last fire and by their ttl": Scenario(
        {
            "message": {"workflow": "notify", "enabled": True, "trigger": ONCE, "when_done": "delete"},
            "nightly": {"workflow": "twice", "enabled": True, "trigger": ONCE, "when_done": "delete"},
            "two": {"workflow": "clean", "enabled": True, "trigger": {**PARTITION, "count": 2}, "ttl": "2m"},
            "one": {"workflow": "join", "enabled": True, "trigger": PARTITION, "ttl": "2m"},
        },
        _lives,
        [({"message": ["SUCCEEDED"], "nightly": ["RETRYING", "SUCCEEDED"], "two": [], "one": ["SUCCEEDED"]}, 3),
         ({"message": ["SUCCEEDED"], "nightly": ["RETRYING", "SUCCEEDED"], "two": [], "one": ["FAILED"]}, 3)],
        messages=1,
        outcome=lambda run: _first_fails(run) if ".nightly." in run.name else "SUCCESS",
        holds=_all_gone,
    ),
}  # fmt: skip
