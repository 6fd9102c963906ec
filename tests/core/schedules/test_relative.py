"""Spans count from the put that began the trigger, or that changed the ttl (T3, L10)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import HOUR, MINUTE, Instant, iso
from chalicelib.core.schedules import relative
from chalicelib.core.schedules.relative import Counted
from tests.core.builders import NAME, NOON, PARTITION, schedule

ONCE: dict[str, Any] = {"type": "time", "due_time": "1h"}
LATER = NOON + 30 * MINUTE


def sent(trigger: dict[str, Any] = ONCE, **fields: Any) -> Schedule:
    return schedule(trigger, **fields)


def at(counted: Counted) -> tuple[Any, str | None]:
    return counted.definition.model_dump()["trigger"].get("due_time"), counted.definition.ttl


def first(**fields: Any) -> Counted:
    return relative.counted(sent(**fields), NAME, None, NOON)


def put(document: Schedule, old: Counted, now: Instant = LATER) -> Counted:
    return relative.counted(document, NAME, old, now)


def test_t3_the_first_put_counts_from_its_instant() -> None:
    made = first(ttl="2h")
    assert (at(made), made.spans_from) == ((iso(NOON + HOUR), iso(NOON + 2 * HOUR)), (NOON, NOON))


def test_t3_the_same_spans_go_on_counting() -> None:
    made = put(sent(ttl="2h", priority=9), first(ttl="2h"))
    assert (at(made), made.spans_from) == ((iso(NOON + HOUR), iso(NOON + 2 * HOUR)), (NOON, NOON))
    assert relative.is_same(sent(ttl="2h", priority=9), NAME, made)
    assert not relative.is_same(sent(ttl="2h"), NAME, made)


def test_l10_another_ttl_counts_from_its_put_and_then_goes_on() -> None:
    made = put(sent(ttl="3h"), first(ttl="2h"))
    assert (at(made), made.spans_from) == ((iso(NOON + HOUR), iso(LATER + 3 * HOUR)), (NOON, LATER))
    again = put(sent(ttl="3h", priority=9), made, LATER + MINUTE)
    assert (at(again), again.spans_from) == (at(made), made.spans_from)
    assert put(sent(), made).definition.ttl is None


def test_t3_another_trigger_counts_everything_again() -> None:
    made = put(sent(ONCE | {"due_time": "2h"}, ttl="2h"), first(ttl="2h"))
    assert (at(made), made.spans_from) == ((iso(LATER + 2 * HOUR), iso(LATER + 2 * HOUR)), (LATER, LATER))
    others = put(sent(PARTITION, by=["day"], ttl="2h"), relative.counted(sent(PARTITION, ttl="2h"), NAME, None, NOON))
    assert others.definition.ttl == iso(LATER + 2 * HOUR)


def test_t3_bounds_that_no_longer_fit_are_another_trigger() -> None:
    instant: dict[str, Any] = {"type": "time", "expression": "@every 1m", "end": "10m"}
    made = relative.counted(sent(instant), NAME, None, NOON)
    after = put(sent(instant | {"start": iso(NOON + HOUR), "end": "2h"}), made)
    assert after.spans_from == (LATER, LATER)
    begun = put(sent(instant | {"start": iso(NOON + 20 * MINUTE)}), made)
    assert begun.spans_from == (LATER, LATER)
