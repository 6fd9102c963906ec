"""Shared by the tests of meetings: which acts meet, how many orders are tried, and how one order is played again.

    ORDER="a3 ~65s b13 a1 b a" python -m pytest tests/faults/meetings -k "throttled-serve-serve and not large"

plays one order of one meeting. ``ORDERS=5000`` tries up to 5,000 orders of each meeting, ``SEED=7`` chooses other
samples. ``MEETINGS=1-100`` selects the first hundred meetings (`summary.py`). With ``TIME=no``, the tests marked `long`
let no time pass between two calls.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping
from itertools import combinations, combinations_with_replacement
from typing import Any

import pytest

from tests.faults.meetings.orders import parse
from tests.faults.meetings.search import Found, Meeting
from tests.faults.meetings.situation import Situation
from tests.support.row_cache import rows_are_cached

BOUNDED, LONG = 2, 800  # orders with switches of each meeting in `make test`, and classes in `make test-long`
FEW = 20  # up to this number, orders are chosen one by one
Named = tuple[str, Situation, tuple[str, ...]]
Search = Callable[[Meeting, int, int], Found]


def meetings(situations: Mapping[str, Situation]) -> list[Any]:
    """All pairs of the acts of each situation, an act with itself included, and all triples of its small acts."""
    found: list[Any] = []
    for name, situation in situations.items():
        pairs = situation.together or [
            pair
            for pair in combinations_with_replacement(situation.acts, 2)
            if pair[0] != pair[1] or not situation.acts[pair[0]].alone
        ]
        for acts in [*pairs, *combinations(situation.small, 3)]:
            answer = "-".join([name, *(re.sub(r"\W+", "_", act) for act in acts)])
            found.append(pytest.param((answer, situation, acts), id=answer))
    return found


def try_two(situation: Situation, most: int, least: int, note: Any) -> None:
    """Try the orders of two invocations. None may break a promise of the situation."""
    tried: list[int] = []

    def noted(what: str, reported: Any) -> None:
        tried.append(reported[1])
        note(what, reported)

    name = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition(" (")[0]
    try_orders((f"others-{name}", situation, ("first", "second")), most, noted, Meeting.search)
    assert sum(tried) >= least or "ORDER" in os.environ, f"{sum(tried)} orders"


def _try_all(meeting: Meeting, most: int, seed: int) -> Found:
    return meeting.try_all(most, seed, timed=os.environ.get("TIME") != "no")


def try_orders(named: Named, most: int, note: Any, search: Search | None = None) -> None:
    """Fail with every promise that an order broke, and the command that plays this order again. Without a ``search``,
    a few orders are a sample, and many are all of the meeting, if there are not more classes.
    """
    answer, situation, acts = named
    with rows_are_cached():
        meeting = Meeting(situation, acts)
        if order := os.environ.get("ORDER"):
            broken, _ = meeting.try_order(parse(order))
            assert not broken, f"{order}: {broken}"
            return
        seed = int(os.environ.get("SEED", "0")) + zlib.crc32(answer.encode())
        most = int(os.environ.get("ORDERS", most))
        found = (search or (Meeting.sample if most <= FEW else _try_all))(meeting, most, seed)
    assert found.orders > 0, "no order was tried"
    note("orders", (answer, found.orders, found.whole, len(found.broken)))
    tried = f"all {found.orders} classes" if found.whole else f"{found.orders} orders, a sample"
    print(f"{answer}: {tried} of {found.possible:.3g} orders")
    first: dict[str, str] = {}
    for order, why in found.broken:
        again = f'ORDER="{order}" python -m pytest tests/faults -k "{answer} and not large"'
        first.setdefault(re.sub(r"\d+", "#", why)[:80], f"{why}\n  {again}")
    assert not first, f"{len(found.broken)} of {found.orders} orders broke a promise\n" + "\n".join(first.values())
