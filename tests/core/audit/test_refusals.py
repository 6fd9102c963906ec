"""A flood of refusals costs a bounded number of records, and each record counts what it stands for."""

from __future__ import annotations

from chalicelib.core.audit.refusals import MAX_A_MINUTE, MAX_KNOWN, Refusals
from chalicelib.core.instants import MINUTE


def test_equal_refusals_of_a_minute_share_a_record() -> None:
    refusals = Refusals()
    first = [refusals.count(("eve", "put_schedule"), now) for now in range(0, 1000, 10)]
    assert first == [1, *[0] * 99]
    assert refusals.count(("eve", "put_schedule"), MINUTE) == 100


def test_a_flood_of_different_refusals_is_bounded() -> None:
    refusals = Refusals()
    written = sum(refusals.count((f"eve{number}",), number % 50) > 0 for number in range(10_000))
    assert written == MAX_A_MINUTE
    assert refusals.count(("ada",), MINUTE + 1) == 1


def test_a_refusal_that_a_flood_left_out_is_counted_later() -> None:
    refusals = Refusals()
    for number in range(MAX_A_MINUTE):
        refusals.count((f"eve{number}",), 0)
    assert [refusals.count(("ada",), 1), refusals.count(("ada",), MINUTE)] == [0, 2]


def test_a_process_remembers_a_bounded_number_of_refusals() -> None:
    refusals = Refusals()
    for number in range(3 * MAX_KNOWN):
        refusals.count((f"eve{number}",), number)
    assert len(refusals._known) <= MAX_KNOWN
