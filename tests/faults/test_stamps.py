"""The stamp of a schedule state or a job changes with every write that changes the row. A delivery checks it before it
sends.
"""

from __future__ import annotations

from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import stamp_of
from chalicelib.core.rows.schedule import ScheduleState
from tests.faults.dying import SMALL, play
from tests.faults.test_crash_points import SCENARIOS
from tests.support import rows
from tests.support.world import World

STAMPS = {"schedule_state": kinds.ROWS[ScheduleState].stamp, "job": kinds.ROWS[Job].stamp}
UNDECIDED = ("wake_at", "wake_shard", "wake_cursor", "ttl", "expires_at")
Rows = dict[tuple[str, str, str], Any]


def test_the_stamp_of_a_row_is_what_was_read_of_it() -> None:
    for row in (rows.schedule_state(), rows.job()):
        item = items.to_item(row, 1, 1)
        assert items.picked(item, kinds.ROWS[type(row)].stamp) == stamp_of(row)


def test_every_write_to_a_state_or_job_changes_its_stamp() -> None:
    """Plays the crash scenarios once without a kill. Compares each row before and after each call."""
    changes = {"schedule_state": 0, "job": 0}
    for name, scenario in SCENARIOS.items():
        world = World(**{**SMALL, **scenario.tuned})
        before: Rows = {}

        def observe(world: World = world, name: str = name) -> None:
            nonlocal before
            after = _states_and_jobs(world)
            for place, item in after.items():
                old = before.get(place)
                if old is None or old is item or _content(old) == _content(item):
                    continue
                kind = place[0]
                changes[kind] += 1
                stamps = [items.picked(each, STAMPS[kind]) for each in (old, item)]
                assert stamps[0] != stamps[1], f"{name}: {place} changed from {old} to {item}"
            before = after

        world.tables.after_write = observe
        play(scenario, world)
    assert min(changes.values()) > 50, changes


def _states_and_jobs(world: World) -> Rows:
    return {(_kind(row), row["pk"]["S"], row["sk"]["S"]): row for _, row in world.tables.rows() if _kind(row)}


def _content(row: Any) -> Any:
    """The row without the attributes of the sweep, of waking and of the TTL: a delivery decides nothing on these."""
    return {name: value for name, value in row.items() if name not in UNDECIDED}


def _kind(row: Any) -> str:
    if row["pk"]["S"].startswith("SCHEDULE#") and row["sk"]["S"] == "STATE":
        return "schedule_state"
    return "job" if {"sort_key", "job_id", "leaves"} <= row.keys() else ""
