"""Each two kinds of acts meet, related or not (C9, C13, W3, W5, E3, E6).

In each order that is tried, the promises of `books.py`, of `invariants.py` and of the acts themselves hold, at once and
at rest. `make test` tries some orders of each meeting, `make test-long` hundreds, or all of them.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pytest

from tests.faults.meetings import situations_crowd as here
from tests.faults.meetings import test_deliveries, test_queues, test_runs
from tests.faults.meetings.entry import BOUNDED, LONG, Named, meetings, try_orders
from tests.faults.meetings.search import Meeting
from tests.support.samples import every

MEETINGS = meetings({"crowd": here.CROWD})


def test_each_two_kinds_of_acts_meet_or_have_a_reason_why_not() -> None:
    met = here.met_elsewhere()
    in_the_crowd = {tuple(name.partition(" ")[0] for name in pair) for pair in here.CROWD.together or ()}
    for pair in combinations_with_replacement(here.KINDS, 2):
        places = [pair in met, pair in in_the_crowd, bool(here.APART.get(pair))]
        assert sum(places) == 1, f"{pair}: add acts that meet, or a sentence to APART"


def test_situations_of_the_matrix_are_those_that_are_searched() -> None:
    searched = {param.values[0][0].partition("-")[0]
                for module in (test_queues, test_runs, test_deliveries) for param in module.MEETINGS}  # fmt: skip
    assert searched == set(here.OTHERS)


def test_each_kind_has_an_act_in_the_crowd() -> None:
    assert {name.partition(" ")[0] for name in here.ACTS} == set(here.KINDS)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_crowd_keeps_promises_in_a_bounded_number_of_orders(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, BOUNDED, record_property)


@pytest.mark.parametrize("meeting", every(2, MEETINGS))
def test_a_crowd_keeps_promises_while_time_passes(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, BOUNDED, record_property, Meeting.sample_late)


@pytest.mark.long
@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_crowd_keeps_promises_in_every_order_or_a_large_sample(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, LONG, record_property)
