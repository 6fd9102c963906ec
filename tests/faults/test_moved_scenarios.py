"""Each scenario of `test_crash_points.py` moves to an empty installation, and ends as if it had not (L14).

An invocation was killed before the move, so rows are half done. Only the files of the export reach the installation.
What a row names by its id, and the export lacks, would be missing there: a plan, an outbox, a waiter, a notice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from zlib import crc32

import pytest

from chalicelib.core.rows.event import PostedEvent
from chalicelib.core.rows.kinds import TABLES
from chalicelib.core.rows.limit import LimitState
from sluice.operations.archive.export import Wanted, pages_of
from sluice.operations.rules.owner import of_limit
from tests.faults.dying import Scenario, Stage
from tests.faults.test_crash_points import SCENARIOS
from tests.support.archives import copies_of, emptied, exported, imported
from tests.support.world import World

DEATHS = 1  # of each scenario


def _namespaces(world: World) -> list[str]:
    return [row.name for row in world.ports.catalog.definitions("namespace", "", 100, None).items]


def _moves(world: World) -> None:
    """Move the namespaces by their names, so that each row needs one of them."""
    named = _namespaces(world)
    left = _left_out(world, named)
    archive = exported(world, *named)
    emptied(world.tables)
    world.hints.sent = []
    imported(world, archive)
    assert set(left) <= {"DeliveryLease", "ClosingCount", "PrefixLock", "limit of EMR"}, f"not exported: {left}"


def _left_out(world: World, namespaces: list[str]) -> Counter[str]:
    """The kinds of rows that an export of all namespaces lacks. Changes of alarms belong to none; those that have
    reached every schedule stay."""
    copies, wanted = copies_of(world), Wanted(frozenset(namespaces))
    for table in TABLES:
        for copy in pages_of(copies, table):
            wanted.has(copy)
    found: Counter[str] = Counter()
    for table in TABLES:
        for copy in pages_of(copies, table):
            row = copy.row
            if isinstance(row, LimitState) and of_limit(row.limit_name) is None:
                found["limit of EMR"] += 1
            elif not wanted.has(copy) and not (isinstance(row, PostedEvent) and row.wake_at is None):
                found[copy.kind] += 1
    return found


def _moving(scenario: Scenario) -> Scenario:
    def act(world: World) -> None:
        scenario.act(world)
        _moves(world)

    return replace(scenario, act=act)


def _chosen(name: str, count: int, most: int) -> list[int]:
    """Effects after which the invocation is killed, spread over the scenario."""
    start = crc32(name.encode())
    return sorted({1 + (start + number * count // most) % count for number in range(most)})


@pytest.mark.parametrize("name", SCENARIOS)
def test_l14_a_scenario_ends_elsewhere_as_it_would_have_ended(name: str) -> None:
    stage = Stage(SCENARIOS[name])
    effects = stage.play().in_act or 1
    for number in _chosen(name, effects, DEATHS):
        try:
            stage.play(number, scenario=_moving(SCENARIOS[name]))
        except AssertionError as error:
            raise AssertionError(f"moved after a death after effect {number} of {effects}: {error}") from error


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_l14_a_scenario_that_moves_after_any_death_ends_so_too(name: str) -> None:
    stage = Stage(SCENARIOS[name])
    effects = stage.play().in_act or 1
    for number in range(1, effects + 1):
        try:
            stage.play(number, scenario=_moving(SCENARIOS[name]))
        except AssertionError as error:
            raise AssertionError(f"moved after a death after effect {number} of {effects}: {error}") from error
