"""How many requests a second a namespace may send, as each process of the API counts them."""

from __future__ import annotations

from chalicelib.core.instants import SECOND, Instant

BURST = 10  # seconds of the rate that may come at once
MAX_KNOWN = 10_000  # namespaces that a process remembers


class Rates:
    """A token bucket for each namespace. It is full at first, and holds `BURST` seconds of the rate."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[Instant, float]] = {}

    def take(self, namespace: str, rate: float, now: Instant) -> bool:
        """Whether the namespace may send one more request now."""
        full = max(1.0, rate * BURST)
        at, left = self._left.pop(namespace, (now, full))
        left = min(full, left + max(0, now - at) * rate / SECOND)
        allowed = left >= 1
        self._left[namespace] = (now, left - 1 if allowed else left)
        if len(self._left) > MAX_KNOWN:
            del self._left[next(iter(self._left))]
        return allowed
