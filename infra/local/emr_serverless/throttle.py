"""The request rates of EMR Serverless per account and API, and the calls that the local cloud throttles."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from infra.local.rates import Rate, TokenBucket
from infra.local.throttle import Switch

from . import errors


class Throttle:
    """One bucket per API in `rates`; other APIs are not limited. The emulator serves one account in one region."""

    def __init__(
        self, rates: Mapping[str, Rate], switch: Switch | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = rates
        self._switch = switch
        self._buckets = {operation: TokenBucket(rate, clock) for operation, rate in rates.items()}

    def admit(self, operation: str, application_id: str = "") -> None:
        """Raise ThrottlingException if `operation` exceeds its rate, or if a rule of the local cloud throttles it."""
        bucket = self._buckets.get(operation)
        if bucket is not None and not bucket.take():
            rate = self._rates[operation]
            raise errors.throttled(operation, rate.per_second, rate.burst)
        if self._switch is not None and self._switch.refuses([f"emr-serverless:{operation}:{application_id}"]):
            raise errors.refused(operation)
