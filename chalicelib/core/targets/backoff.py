"""Pauses between repeated calls: exponential, with a jitter that is computed from an id."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, SECOND, Millis


def backoff(tries: int, salt: str) -> Millis:
    """The pause in ms after ``tries`` calls: exponential, 1 s to 5 min, then jittered by `scattered` with ``salt``."""
    return scattered(min(doubled(SECOND, tries + 1), 5 * MINUTE), tries, salt)


def doubled(first: Millis, number: int) -> Millis:
    """The pause in ms before the n-th try, from 1 on: ``first``, then twice as long each time. The caller bounds it."""
    return first << min(max(number - 1, 0), 40)


def scattered(span: Millis, number: int, salt: str) -> Millis:
    """A pause between half of ``span`` and all of it, computed from an id (``salt``) and a number.

    Calls that a target refused at the same instant are so repeated at different instants."""
    jitter = int(ids.digest(salt, number, length=4), 16) / 0xFFFF
    return round(span * (0.5 + jitter / 2))
