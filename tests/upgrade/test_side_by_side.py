"""The baseline and the present code share tables, queues and job runs for an hour (O11).

A deployment replaces Lambdas while work continues: at first the old code handles all invocations, then the new one
some, then all. A rollback goes the other way. Within the hour each version has written rows of the other.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.upgrade.account import Account, current
from tests.upgrade.agreement import answers_are_alike, history_is_alike, rows_read_alike
from tests.upgrade.counted import nothing_is_lost_or_doubled
from tests.upgrade.lambdas import Version
from tests.upgrade.rolling_world import RollingWorld


def goes_forward(minute: int) -> float:
    """The new code's share of the invocations: an upgrade."""
    return 0.0 if minute < 15 else 1.0 if minute >= 45 else 0.5


def goes_back(minute: int) -> float:
    """The same for an upgrade that is rolled back."""
    return 1.0 - goes_forward(minute)


DIRECTIONS = {"an upgrade": goes_forward, "the way back": goes_back}


def play(old: Version, new: Version, share: Callable[[int], float], seed: int) -> RollingWorld:
    world = RollingWorld(current(), old, new, share, seed)
    with world.logged():
        world.hour(30)
        rows_read_alike(world)
        answers_are_alike(world)
        world.goes_on(60)
        rows_read_alike(world)
        world.rest()
        rows_read_alike(world)
    return world


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_o11_two_versions_side_by_side_lose_and_double_nothing(direction: str, old: Version, new: Version) -> None:
    world = play(old, new, DIRECTIONS[direction], 1)

    nothing_is_lost_or_doubled(world)
    assert world.errors.found == []
    assert world.rows.lost == []
    assert len(world.at_switches) == 2 and min(map(min, world.at_switches)) > 0, "runs, jobs and queues at each switch"
    assert (
        len(world.read_alike) >= 18
        and {"Job", "Run", "LimitState", "ScheduleState", "Timer", "Waiter"} <= world.read_alike
    )
    assert answers_are_alike(world) > 100
    assert history_is_alike(world) > 0
    for kind in ("Job", "Run", "LimitState"):
        assert world.rows.taken_over[kind, "old"] > 5 and world.rows.taken_over[kind, "new"] > 5, kind
        assert world.rows.kept[kind] > 5, kind
    assert world.deaths > 0 and world.crossed["old in new"] > 0 and world.crossed["new in old"] > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 14))
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_o11_two_versions_side_by_side_at_length(direction: str, seed: int, old: Version, new: Version) -> None:
    world = play(old, new, DIRECTIONS[direction], seed)

    nothing_is_lost_or_doubled(world)
    assert world.errors.found == []
    answers_are_alike(world)


def test_the_versions_share_only_the_account(old: Version, new: Version, environment: Account) -> None:
    """Otherwise one code would be tested against itself."""
    assert old.module("core.states") is not new.module("core.states")
    assert old.request("PUT", "/v1/namespaces/demo", {})[0] == 201
    assert new.request("PUT", "/v1/namespaces/demo", {})[1]["did"] == "unchanged"
    rows = [name for name, _ in environment.tables.rows()]
    assert rows == ["CatalogTable", "RunsTable"], "the namespace, and the record of who made it"
