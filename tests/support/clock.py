"""A clock that tests set, at first to noon."""

from __future__ import annotations

from chalicelib.core.instants import Instant, parse_instant
from sluice.testing import clock

NOON = parse_instant("2026-03-02T12:00:00Z")


class HandClock(clock.HandClock):
    def __init__(self, now: Instant = NOON) -> None:
        super().__init__(now)
