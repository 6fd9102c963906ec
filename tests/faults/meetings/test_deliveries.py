"""Fires go to a queue, and two or three invocations meet there (C13, E6, W8).

In each order that is tried, the promises of `books.py`, of `invariants.py` and of the acts themselves hold, at once and
at rest. `make test` tries some orders of each meeting, `make test-long` hundreds, or all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import SECOND
from tests.faults.meetings import situations_deliveries as here
from tests.faults.meetings.entry import BOUNDED, LONG, Named, meetings, try_orders
from tests.faults.meetings.orders import parse
from tests.faults.meetings.search import Meeting
from tests.faults.meetings.situation import Played
from tests.support.row_cache import rows_are_cached

MEETINGS = meetings(
    {
        "fire": here.FIRE,
        "fire_refused": here.FIRE_REFUSED,
        "fire_unanswered": here.FIRE_UNANSWERED,
        "batch": here.BATCH,
        "overdue": here.OVERDUE,
        "overlap": here.OVERLAP,
        "bundle": here.BUNDLE,
        "bundle_refused": here.BUNDLE_REFUSED,
        "dead_letter": here.DEAD_LETTER,
        "redriven": here.REDRIVEN,
    }
)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_deliveries_keep_promises_in_a_bounded_number_of_orders(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, BOUNDED, record_property)


@pytest.mark.long
@pytest.mark.parametrize("meeting", MEETINGS)
def test_deliveries_keep_promises_in_every_order_or_large_sample(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, LONG, record_property)


@pytest.mark.parametrize("acts", [("batch", "check"), ("part", "check"), ("batch", "part"), ("check", "check")])
def test_overlapping_messages_send_each_job_once_in_every_order(acts: tuple[str, str]) -> None:
    with rows_are_cached():
        found = Meeting(here.OVERLAP, acts).try_classes("", most=500)
    assert (found.whole, found.broken) == (True, [])


def test_a_job_that_two_invocations_leave_is_tried_again_soon() -> None:
    """Each of them writes its lease before it reads that of the other."""
    due: list[int] = []

    def note(played: Played) -> None:
        assert len(played.log.sent) == 11
        due.extend(at - played.world.clock.now() for at, _ in played.world.hints.sent)

    with rows_are_cached():
        meeting = Meeting(replace(here.OVERLAP, ended=note), ("batch", "check"))
        assert meeting.try_order(parse("a8 b11 a b"))[0] == ""
    assert due == [2 * SECOND, 2 * SECOND]
