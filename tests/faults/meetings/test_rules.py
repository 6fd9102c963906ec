"""Two invocations meet at a schedule, a constraint, a leaf or a timer (C9, C13, T16, W10).

In every order, all expected work has run once in the end. `situations_people.py`, `situations_rules.py`,
`situations_lifecycle.py` and `situations_grants.py` list the invocations that meet, and the ends that are right.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.faults.meetings.entry import BOUNDED, LONG, Named, meetings, try_orders
from tests.faults.meetings.situations_grants import GRANTS_CROSS
from tests.faults.meetings.situations_lifecycle import LIFECYCLE_CROSS
from tests.faults.meetings.situations_people import PEOPLE_CROSS
from tests.faults.meetings.situations_rules import RULES_CROSS

MEETINGS = meetings(
    {
        f"rules-{re.sub(r'[^a-z]+', '_', name)}": crossing.situation()
        for name, crossing in {**PEOPLE_CROSS, **RULES_CROSS, **LIFECYCLE_CROSS, **GRANTS_CROSS}.items()
    }
)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_rules_keep_promises_in_a_bounded_number_of_orders(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, 3 * BOUNDED, record_property)


@pytest.mark.long
@pytest.mark.parametrize("meeting", MEETINGS)
def test_rules_keep_promises_in_every_order_or_a_large_sample(meeting: Named, record_property: Any) -> None:
    try_orders(meeting, LONG, record_property)
