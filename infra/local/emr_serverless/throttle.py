"""Token buckets: the request rates that EMR Serverless grants an account, per API."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import errors


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


class Throttle:
    """One bucket per API named in `rates`; other APIs pass. The emulator serves one account in one region."""

    def __init__(self, rates: Mapping[str, Rate], clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._buckets = {operation: TokenBucket(rate, clock) for operation, rate in rates.items()}

    def admit(self, operation: str) -> None:
        """Raise ThrottlingException when `operation` comes faster than its rate."""
        bucket = self._buckets.get(operation)
        if bucket is not None and not bucket.take():
            rate = self._rates[operation]
            raise errors.throttled(operation, rate.per_second, rate.burst)
