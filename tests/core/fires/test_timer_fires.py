"""A prepared fire: the event that it becomes, its key, and when it is cancelled (T4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.fires import fire, timer
from chalicelib.core.instants import HOUR, MINUTE, Instant, iso
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.why import Why
from tests.core.builders import ELAPSED, NAME, NOON, TICK, job, schedule
from tests.support.reasons import says

PREPARED = job("fire", leaf="2", created_at=NOON - HOUR, due_at=NOON + MINUTE)


@pytest.mark.parametrize(
    ("fields", "which", "nominal", "due"),
    [
        ({}, ("2", NOON + MINUTE), NOON + MINUTE, NOON + MINUTE),
        ({"due_at": None}, ("2", NOON - HOUR), NOON - HOUR, NOON - HOUR),
        ({"nominal_at": NOON}, ("2", NOON), NOON, NOON + MINUTE),
        ({"nominal_at": NOON, "index": 3}, ("2", NOON, 3), NOON, NOON + MINUTE),
    ],
)
def test_t4_a_fire_is_the_event_of_its_nominal_accepted_when_due(
    fields: dict[str, Any], which: tuple[object, ...], nominal: Instant, due: Instant
) -> None:
    row = replace(PREPARED, **fields)
    assert fire.nominal_of(row) == nominal
    source = ids.event_id("absent", NAME, 7, *which)
    assert fire.fire_event(row, "absent") == Event(source, "absent", f"absent:{NAME}", nominal, due)


# -- fires that an update makes useless ----------------------------------------------------------------------------


def ended(at: Instant) -> Why | None:
    return timer.after_end(PREPARED, schedule(TICK, ttl=iso(at)))


def test_l6_a_fire_after_the_end_of_its_schedule_is_dropped() -> None:
    assert ended(NOON + MINUTE) is None
    assert ended(NOON + MINUTE - 1) == says(
        "the schedule was updated to end at 2026-03-02T12:00:59.999Z, before this fire of 2026-03-02T12:01:00.000Z"
    )
    assert timer.after_end(PREPARED, schedule(TICK)) is None


# -- a leaf whose instant moved ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "kept"), [(NOON + 9 * HOUR, True), (NOON + 9 * HOUR + 1, False)])
def test_t13_an_instant_beyond_end_of_its_schedule_is_not_due(at: Instant, kept: bool) -> None:
    made = schedule(ELAPSED, ttl=iso(NOON + 9 * HOUR))
    before = Timer(NAME, 7, 1, NOON, {"0": NOON + 4 * HOUR}, rev=3, wake_at=NOON + 4 * HOUR)
    wake_at = at if kept else NOON + 9 * HOUR + 1_000
    assert timer.rearm(before, made, "0", at) == replace(before, next={"0": at} if kept else {}, rev=4, wake_at=wake_at)
