"""A clock that only a test moves."""

from __future__ import annotations

from chalicelib.core.instants import Instant, duration


class HandClock:
    """Implements `ports.Clock`."""

    def __init__(self, now: Instant) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def wait_until(self, instant: Instant) -> None:
        self._now = max(self._now, instant)

    def pass_by(self, span: str) -> None:
        self._now += duration(span)
