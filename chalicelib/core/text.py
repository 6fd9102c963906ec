"""Small helpers for texts that users read."""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    """A number with its noun: ``1 event``, ``2 events``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
