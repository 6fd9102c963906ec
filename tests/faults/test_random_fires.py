"""Random lives of schedules with jitter, spreads, catch-up, outages, updates and pauses: no fire is lost (T4, T5)."""

from __future__ import annotations

import pytest

from tests.faults import fire_world
from tests.support.samples import every


def _check(seed: int) -> None:
    life = fire_world.play(seed)
    assert life.problems() == [], "\n".join([f"seed {seed}", *life.said])


@pytest.mark.parametrize("seed", every(3, range(24)))
def test_t4_every_event_runs_or_is_on_record(seed: int) -> None:
    _check(seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(10))
def test_t4_every_event_of_a_thousand_lives_runs_or_is_on_record(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        _check(seed)
