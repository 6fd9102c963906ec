"""Pauses that double have a last doubling (E6)."""

from __future__ import annotations

from chalicelib.core.targets import retries


def test_a_pause_doubles_from_the_second_try_on() -> None:
    assert [retries.doubled(3, number) for number in (0, 1, 2, 3)] == [3, 3, 6, 12]
    assert retries.doubled(1, 41) == retries.doubled(1, 42) == retries.doubled(1, 1_000) == 1 << 40
