"""The fires of a schedule with many events, while Lambdas are replaced: the baseline prepares a job for each event, the
present code a row for many. Each event is delivered once (E2, O11)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE
from tests.faults import invariants
from tests.upgrade import documents
from tests.upgrade.account import current
from tests.upgrade.lambdas import Version
from tests.upgrade.rolling_world import APP, NS, RollingWorld
from tests.upgrade.test_unlike_versions import causes

COUNT = 30
BATCH: dict[str, Any] = {
    "workflow": "notify",
    "trigger": {"type": "time", "expression": "*/5 * * * *"},
    "spread": {"count": COUNT, "over": "2s"},
    "enabled": True,
}


def _deployed(old: Version, new: Version, share: Callable[[int], float], seed: int = 1) -> RollingWorld:
    world = RollingWorld(current(), old, new, share, seed, troubled=False)
    world.ask("PUT", NS, {})
    assert world.ask("PUT", APP, {**documents.app(), "schedules": {"batch": BATCH}, "dags": {}}), world.refusals
    return world


def _pass(world: RollingWorld, until: int) -> None:
    while world.minute < until:
        world.pass_minute()


def _delivered(world: RollingWorld) -> Counter[tuple[int, int]]:
    """How often each event was delivered: by the minute of its fire, and its number."""
    found = [json.loads(each["MessageBody"]) for each in world.account.sqs.delivered]
    return Counter(((each["events"][0]["instant"] - world.began) // MINUTE, each["spread"]["index"]) for each in found)


def _rows(world: RollingWorld) -> tuple[int, int]:
    """How many jobs are bundles, and how many are events."""
    jobs = [job for job in invariants.Stock(world.account.books).jobs if not job.closed]
    return sum(job.is_bundle for job in jobs), sum(not job.is_bundle for job in jobs)


@pytest.mark.parametrize("spread", [None, {"count": 40, "over": "2s"}, {"count": COUNT, "over": "3s"}])
def test_e2_jobs_of_older_code_are_delivered_once_beside_bundles(
    old: Version, new: Version, spread: dict[str, Any] | None
) -> None:
    """The baseline has prepared the fire of minute 5 when it is replaced. ``spread``: an update changes it then."""
    world = _deployed(old, new, lambda minute: float(minute >= 4))
    with world.logged():
        _pass(world, 4)
        assert _rows(world) == (0, COUNT)
        if spread is not None:
            changed = {**BATCH, "spread": spread, "on_update": "carry"}
            assert world.ask("PUT", f"{APP}/schedules/batch", changed), world.refusals
        _pass(world, 9)
        assert _rows(world)[0] > 0
        _pass(world, 12)
    count = spread["count"] if spread is not None else COUNT  # of the fires that were not prepared at the update
    delivered = _delivered(world)
    assert set(delivered.values()) == {1}
    assert {number for minute, number in delivered if minute == 10} == set(range(count))
    assert {number for minute, number in delivered if minute == 5} == set(range(COUNT))
    assert world.errors.found == []


def test_e2_bundles_wait_for_newer_code_after_a_rollback(old: Version, new: Version) -> None:
    """The present code has prepared the fire of minute 5 when the baseline takes its place, until minute 8."""
    world = _deployed(old, new, lambda minute: float(not 4 <= minute < 8))
    with world.logged():
        _pass(world, 4)
        assert _rows(world)[0] > 0
        _pass(world, 12)
    delivered = _delivered(world)
    assert set(delivered) == {(minute, number) for minute in (5, 10) for number in range(COUNT)}
    assert set(delivered.values()) == {1}
    assert {name for _, error in world.errors.found for name in causes(error)} <= {"NewerLayout"}
