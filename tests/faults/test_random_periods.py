"""Random lives of schedules with a job for each period: each period that is complete runs, none runs twice for the same
partitions, and a partition that starts nothing is on record (T24 to T28)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib.log import logger
from tests.faults import period_world


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = logger.log_level
    logger.setLevel("CRITICAL")
    yield
    logger.setLevel(level)


def _check(seed: int, kind: str | None = None) -> None:
    life = period_world.play(seed, kind=kind)
    assert life.problems() == [], "\n".join([f"seed {seed}", *life.said])


# Short lives of each kind, then one that has found a defect: a job did not learn what had come during a drain.
SEEDS = (1, 2, 3, 5, 7, 9, 11, 15, 20, 22, 24, 25, 28, 52)


@pytest.mark.parametrize("seed", SEEDS)
def test_t25_random_lives_of_periods(seed: int) -> None:
    _check(seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(20))
def test_t25_thousands_of_random_lives_of_periods(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        _check(seed)
