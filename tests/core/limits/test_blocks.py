"""Blocks of permits: how many appointments a block has, when it begins, and when the queue is read again (E3)."""

from __future__ import annotations

import pytest

from chalicelib.core.limits import blocks
from chalicelib.core.limits.blocks import Block
from chalicelib.core.limits.permits import LEAD, Pace
from tests.support.clock import NOON

FIRST = NOON + blocks.READY


def pace(spacing: int, name: str = "policy:demo.calm") -> Pace:
    return Pace(name, spacing, 1)


@pytest.mark.parametrize(
    ("limit", "spacing", "fast"),
    [
        ("policy:demo.calm", 999, True),
        ("policy:demo.calm", 1_000, False),
        ("policy:demo.calm", 1_001, False),
        ("emr:starts", 20, False),
        ("workflow:demo.flights.clean", 20, False),
    ],
)
def test_e3_policies_of_several_starts_a_second_have_blocks(limit: str, spacing: int, fast: bool) -> None:
    assert blocks.is_fast(pace(spacing, limit)) is fast


def test_e3_a_block_has_a_permit_for_each_job_and_moves_the_head() -> None:
    found = blocks.next_block(pace(100), NOON, NOON, 3)
    assert found == Block((FIRST, FIRST + 100, FIRST + 200), FIRST + 300)


def test_e3_a_block_begins_at_the_head_if_that_is_later() -> None:
    assert blocks.next_block(pace(100), FIRST + 1, NOON, 1) == Block((FIRST + 1,), FIRST + 101)
    assert blocks.next_block(pace(100), FIRST - 1, NOON, 1) == Block((FIRST,), FIRST + 100)


@pytest.mark.parametrize(("spacing", "count"), [(100, 4), (133, 4), (134, 3), (399, 2), (400, 1), (50, 8)])
def test_e3_a_block_spans_less_than_400_ms(spacing: int, count: int) -> None:
    found = blocks.next_block(pace(spacing), NOON, NOON, 100)
    assert found is not None
    assert found.appointments == tuple(FIRST + number * spacing for number in range(count))
    assert found.head == FIRST + count * spacing
    assert blocks.most(pace(spacing)) == count


def test_e3_a_block_ends_at_most_a_second_ahead() -> None:
    found = blocks.next_block(pace(100), NOON + LEAD - 200, NOON, 100)
    assert found == Block((NOON + LEAD - 200, NOON + LEAD - 100, NOON + LEAD), NOON + LEAD + 100)
    assert blocks.next_block(pace(100), NOON + LEAD, NOON, 100) == Block((NOON + LEAD,), NOON + LEAD + 100)


def test_e3_no_block_begins_while_its_first_permit_is_far_ahead() -> None:
    assert blocks.next_block(pace(100), NOON + LEAD + 1, NOON, 100) is None


def test_e3_permits_of_a_block_are_rounded_once() -> None:
    """Three permits in 100 ms: 0, 34, 67 and 100 ms after the first one, and not 34 ms apart."""
    cycled = Pace("policy:demo.calm", 34, 1, cycle=(3, 100))
    found = blocks.next_block(cycled, NOON, NOON, 4)
    assert found == Block((FIRST, FIRST + 34, FIRST + 67, FIRST + 100), FIRST + 134)


def test_e3_a_queue_is_read_550_ms_before_the_next_block() -> None:
    assert blocks.served_at(NOON + 551, NOON) == NOON + 1
    assert blocks.served_at(NOON + 549, NOON) == NOON
