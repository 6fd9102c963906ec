"""The tables throttle any call. A short throttling has no effect; a long one fails the invocation, and a tick repairs
the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from sluice.testing.memory_tables import MemoryTables
from tests.faults.dying import Scenario, Stage, play, world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.faults.unreliable_tables import Unreliable
from tests.support.crash import is_invoked
from tests.support.world import World

# More than the repeats of one call in the time that the tables get.
LONG = 20
STRIDE = 3
EVERY_OTHER = range(1, 1_000_000, 2)  # so that each repeat succeeds
SHORT = (
    "a run that fails and is attempted again",
    "one fire each to a queue, to EMR, and to a trigger of two leaves",
    "a disable while jobs wait in a queue",
)


def _during_act(scenario: Scenario, faults: Callable[[MemoryTables], Unreliable], seen: list[Unreliable]) -> Scenario:
    """Play the scenario with tables that throttle during its act."""

    def act(world: World) -> None:
        tables = world.tables
        seen.append(faults(tables))
        scenario.act(world)
        seen[-1].in_act = seen[-1].calls

    return replace(scenario, act=act)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_throttled_once_is_repeated_without_effect(name: str) -> None:
    scenario, seen = SCENARIOS[name], list[Unreliable]()

    play(_during_act(scenario, lambda tables: Unreliable(tables, throttled=EVERY_OTHER), seen), world_for(scenario))

    assert seen[0].calls > 20


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_write_with_a_lost_answer_is_recognized_without_effect(name: str) -> None:
    scenario, seen = SCENARIOS[name], list[Unreliable]()

    play(_during_act(scenario, lambda tables: Unreliable(tables, unanswered=EVERY_OTHER), seen), world_for(scenario))

    assert seen[0].writes >= 3


@pytest.mark.parametrize("name", SHORT)
def test_tables_busy_for_long_at_any_call_lose_no_work(name: str) -> None:
    """Busy from every third call on; `make test-long` plays the calls in between."""
    _busy_at_calls(SCENARIOS[name], first=1, stride=STRIDE)


@pytest.mark.long
@pytest.mark.parametrize("first", range(2, STRIDE + 1))
@pytest.mark.parametrize("name", SHORT)
def test_tables_busy_from_the_calls_in_between_lose_no_work(name: str, first: int) -> None:
    _busy_at_calls(SCENARIOS[name], first, STRIDE)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in SHORT])
def test_long_busy_tables_lose_no_work_in_any_scenario(name: str) -> None:
    _busy_at_calls(SCENARIOS[name], first=1, stride=1)


def _busy_at_calls(scenario: Scenario, first: int, stride: int) -> None:
    """Play with busy tables from every ``stride``-th call on, from ``first``."""
    stage, seen = Stage(scenario), list[Unreliable]()
    stage.play(scenario=_during_act(scenario, _busy_in_no_call, seen))
    for number in range(first, (seen[0].in_act or 0) + 1, stride):
        try:
            stage.play(0, scenario=_during_act(scenario, partial(_busy_from, number=number), seen))
        except AssertionError as error:
            raise AssertionError(f"busy from call {number} on: {error}") from error


def _busy_from(tables: MemoryTables, number: int) -> Unreliable:
    """Busy from a call of an invocation on. The test itself reads the tables undisturbed."""
    return Unreliable(tables, throttled=range(number, number + LONG), counts=is_invoked)


def _busy_in_no_call(tables: MemoryTables) -> Unreliable:
    return Unreliable(tables, counts=is_invoked)
