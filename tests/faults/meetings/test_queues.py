"""Jobs and runs queue, and two or three invocations meet there (C1, C9, E3, E8, W3, W10).

In each order that is tried, the promises of `books.py`, of `invariants.py` and of the acts themselves hold, at once and
at rest. `make test` tries some orders of each meeting, `make test-long` hundreds, or all of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.meetings import situations_queues as here
from tests.faults.meetings.entry import BOUNDED, LONG, Named, meetings, try_orders

MEETINGS = meetings(
    {
        "slot": here.SLOT,
        "freed": here.FREED,
        "throttled": here.THROTTLED,
        "pool": here.POOL,
        "cut": here.CUT,
        "backlog": here.BACKLOG,
        "block": here.BLOCK,
    }
)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_queues_keep_promises_in_a_bounded_number_of_orders(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, BOUNDED, record_property)


@pytest.mark.long
@pytest.mark.parametrize("meeting", MEETINGS)
def test_queues_keep_promises_in_every_order_or_a_large_sample(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, LONG, record_property)
