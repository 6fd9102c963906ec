"""Token buckets, which limit the rate of calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """`per_second` requests on average (0 or less: no limit), `burst` at once."""

    per_second: float
    burst: int


class TokenBucket:
    """Starts full with `burst` tokens and gains `per_second` of them each second."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._filled_at = clock()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take one token if there is one."""
        if self._rate.per_second <= 0:
            return True
        with self._lock:
            now = self._clock()
            gained = (now - self._filled_at) * self._rate.per_second
            self._tokens = min(float(self._rate.burst), self._tokens + gained)
            self._filled_at = now
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True
