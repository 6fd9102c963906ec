"""Which changes of a schedule are counted as closings (C13), and which counts may be relied on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.core.fires import lifetime
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.delivery_lease import ClosingCount
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import closings, lifecycle
from chalicelib.core.writes import PutState, Write
from tests.core.builders import NAME, NOON, TICK, schedule

NOW = NOON + HOUR
DAILY, HASTE = schedule(TICK), schedule(TICK, priority=9)
OPEN = ScheduleState(NAME, 7, 3, "enabled", NOON, "bob", rev=4, since=NOON, mode_at=NOON)
COMPLETED = replace(OPEN, mode="completed")
HELD = replace(OPEN, mode="hold")
OFF, GONE = replace(OPEN, mode="disabled"), replace(OPEN, mode="deleted")
Plan = Callable[[], tuple[ScheduleState, list[Write]]]
CLOSING: dict[str, Plan] = {
    "disable": lambda: lifecycle.disable(OPEN, DAILY, NOW, "ada"),
    "delete": lambda: lifecycle.delete(OPEN, DAILY, NOW, "ada"),
    "hold": lambda: lifecycle.pause(OPEN, DAILY, "hold", False, NOW, "ada"),
    "backlog": lambda: lifecycle.pause(OPEN, DAILY, "backlog", False, NOW, "ada"),
    "drain": lambda: lifecycle.pause(OPEN, DAILY, "drain", False, NOW, "ada"),
    "resume from drain": lambda: lifecycle.resume(replace(OPEN, mode="drain"), DAILY, NOW, "ada"),
    "replace when completed": lambda: lifecycle.put(NAME, HASTE, DAILY, COMPLETED, None, NOW, "ada"),
    "replace": lambda: lifecycle.put(NAME, HASTE, DAILY, OPEN, None, NOW, "ada"),
    "carry": lambda: lifecycle.put(NAME, HASTE, DAILY, OPEN, None, NOW, "ada", carry=True),
    "another description": lambda: lifecycle.put(NAME, schedule(TICK, description="x"), DAILY, OPEN, None, NOW, "ada"),
}
HARMLESS: dict[str, Plan] = {
    "a new schedule": lambda: lifecycle.put(NAME, DAILY, None, None, True, NOW, "ada"),
    "the end of its fires": lambda: lifecycle.complete(OPEN, NOW),
    "the removal after its end": lambda: lifecycle.delete(COMPLETED, DAILY, NOW, lifetime.BY),
    "stopped timeouts": lambda: lifecycle.pause(HELD, DAILY, "hold", True, NOW, "ada"),
    "a resume": lambda: lifecycle.resume(HELD, DAILY, NOW, "ada"),
    "an enable": lambda: lifecycle.enable(OFF, DAILY, NOW, "ada"),
    "another one under its name": lambda: lifecycle.put(NAME, HASTE, None, GONE, True, NOW, "ada"),
}


@pytest.mark.parametrize("what", CLOSING)
def test_c13_a_change_of_a_schedule_is_counted(what: str) -> None:
    _, plan = CLOSING[what]()
    assert closings.closed_by(plan) == {"demo"}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_closes_no_prepared_fire_is_not_counted(what: str) -> None:
    _, plan = HARMLESS[what]()
    assert closings.closed_by(plan) == frozenset()


@pytest.mark.parametrize(
    "marked",
    [replace(OPEN, rev=5, wake_at=NOW), replace(OPEN, rev=5, uncounted=True), replace(OPEN, rev=5, wake_cursor="5|x")],
)
def test_a_mark_for_another_step_is_not_counted(marked: ScheduleState) -> None:
    assert closings.closed_by([PutState(marked, OPEN)]) == frozenset()


def test_a_plan_for_several_namespaces_counts_once_in_each() -> None:
    states = [replace(OPEN, schedule=name) for name in ("a.app.x", "a.app.y", "b.app.x")]
    plan = [PutState(replace(state, mode="disabled", updated_at=NOW), state) for state in states]
    assert closings.closed_by(plan) == {"a", "b"}


def test_c5_a_rate_is_counted_in_the_namespace_of_its_workflow() -> None:
    rated = schedule(TICK, workflow="lake.core.load", constraints=[{"type": "rate", "max": 3, "per": "hour"}])
    _, plan = lifecycle.put("demo.app.rated", rated, None, None, True, NOW, "ada")
    assert closings.closed_by(plan) == {"lake"}


def test_a_count_is_relied_on_a_minute_after_its_closing() -> None:
    rows = {name: ClosingCount(name, 5, NOW - ago) for name, ago in (("a", MINUTE), ("b", MINUTE + 1), ("c", 0))}
    assert closings.settled({**rows, "new": None}, NOW) == {"b": 5, "new": 0}
