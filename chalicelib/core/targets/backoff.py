"""The decisions of the step *launch*: how a start call is put on record, and what each answer to it means."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, SECOND, Millis


def backoff(tries: int, salt: str) -> Millis:
    """Exponential, 1 s to 5 min, with a jitter computed from the id: a crowd refused together comes back apart."""
    return scattered(min(doubled(SECOND, tries + 1), 5 * MINUTE), tries, salt)


def doubled(first: Millis, number: int) -> Millis:
    """The pause before the n-th try, from 1 on: ``first``, then twice as long each time. The caller bounds it."""
    return first << min(max(number - 1, 0), 40)


def scattered(span: Millis, number: int, salt: str) -> Millis:
    """Between half of a span and all of it, computed from an id and a number."""
    jitter = int(ids.digest(salt, number, length=4), 16) / 0xFFFF
    return round(span * (0.5 + jitter / 2))
