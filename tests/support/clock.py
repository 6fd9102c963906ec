"""A clock that tests turn by hand."""

from chalicelib.core.instants import Instant, duration, parse_instant

NOON = parse_instant("2026-03-02T12:00:00Z")


class HandClock:
    def __init__(self, now: Instant = NOON) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def wait_until(self, instant: Instant) -> None:
        self._now = max(self._now, instant)

    def pass_by(self, span: str) -> None:
        self._now += duration(span)
