"""Runs are active, fail and are repeated, and two or three invocations meet there (L12, W4, W5, W6, W15).

In each order that is tried, the promises of `books.py`, of `invariants.py` and of the acts themselves hold, at once and
at rest. `make test` tries some orders of each meeting, `make test-long` hundreds, or all of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.meetings import situations_runs as here
from tests.faults.meetings.entry import BOUNDED, LONG, Named, meetings, try_orders

MEETINGS = meetings(
    {
        "offered": here.OFFERED,
        "leased": here.LEASED,
        "expired": here.EXPIRED,
        "living": here.LIVING,
        "retrying": here.RETRYING,
        "ended": here.ENDED,
        "backfill": here.BACKFILL,
        "dag": here.DAG,
        "dag_failed": here.DAG_FAILED,
    }
)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_runs_keep_promises_in_a_bounded_number_of_orders(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, BOUNDED, record_property)


@pytest.mark.long
@pytest.mark.parametrize("meeting", MEETINGS)
def test_runs_keep_promises_in_every_order_or_a_large_sample(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, LONG, record_property)
