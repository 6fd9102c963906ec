"""Expressions in the words of people (L11)."""

from __future__ import annotations

from chalicelib.core.expressions import Interval, parse
from chalicelib.core.instants import Instant, spell_duration


def describe(expression: str, zone_name: str = "UTC", first: Instant | None = None) -> str:
    """The expression in words, for people: ``every 10s`` or ``at '0 5 * * *' in UTC``."""
    parsed = parse(expression)
    if not isinstance(parsed, Interval):
        return f"at '{expression}' in {zone_name}"
    return f"every {spell_duration(parsed.every)}{'' if parsed.times is None else f', {parsed.times} times'}"
