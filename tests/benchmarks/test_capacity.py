"""Known items cost known units: sizes, roundings, transactions and indexes by AWS's published rules."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cost import capacity
from benchmarks.cost.capacity import Index

WAKE = Index("wake", keys=("shard", "at"), table_keys=("pk",), local=False, whole=False)
EVENTS = Index("events", keys=("pk", "job"), table_keys=("pk",), local=True, whole=True)


def item(length: int, **attributes: str) -> dict[str, Any]:
    """An item of exactly this many bytes."""
    made: dict[str, Any] = {"pk": {"S": "p"}} | {name: {"S": value} for name, value in attributes.items()}
    return {**made, "x": {"S": "x" * (length - capacity.size(made) - 1)}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": "day"}, 3),
        ({"S": "ü"}, 2),
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "1772452800000"}, 5),  # 17724528, without its trailing zeros
        ({"N": "-12.5"}, 4),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "12"}]}, 3 + (1 + 2) + (1 + 2)),
        ({"M": {"day": {"S": "1"}}}, 3 + (1 + 3 + 1)),
        ({"SS": ["ab", "c"]}, 3),
    ],
)
def test_a_value_is_billed_with_the_size_of_its_name(value: dict[str, Any], expected: int) -> None:
    assert capacity.size({"name": value}) == 4 + expected


@pytest.mark.parametrize(("length", "units"), [(100, 1), (1024, 1), (1025, 2), (2048, 2), (2049, 3)])
def test_a_write_costs_a_unit_per_kb_and_double_in_a_transaction(length: int, units: int) -> None:
    assert capacity.write_units(None, item(length), transactional=False) == units
    assert capacity.write_units(None, item(length), transactional=True) == 2 * units


def test_a_write_costs_the_larger_of_the_item_before_and_after() -> None:
    assert capacity.write_units(item(3000), item(100), transactional=False) == 3
    assert capacity.write_units(item(3000), None, transactional=False) == 3


def test_deleting_nothing_and_checking_nothing_cost_a_write_each() -> None:
    assert capacity.write_units(None, None, transactional=False) == 1
    assert capacity.write_units(None, None, transactional=True) == 2


def test_a_get_costs_a_unit_per_4_kb_and_half_when_eventual() -> None:
    assert capacity.get_units(item(4096), strong=True) == 1
    assert capacity.get_units(item(4097), strong=True) == 2
    assert capacity.get_units(item(4097), strong=False) == 1
    assert capacity.get_units(None, strong=True) == 1


def test_a_query_rounds_the_sum_and_not_each_item() -> None:
    assert capacity.query_units([item(1000)] * 4, strong=True) == 1
    assert capacity.query_units([item(1000)] * 5, strong=False) == 1
    assert capacity.query_units([], strong=False) == 0.5


AWAKE, LATER, ASLEEP = item(200, shard="1", at="10"), item(200, shard="1", at="20"), item(200)


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (None, AWAKE, 1),
        (ASLEEP, AWAKE, 1),
        (AWAKE, ASLEEP, 1),
        (AWAKE, None, 1),
        (AWAKE, LATER, 2),
        (AWAKE, {**AWAKE, "y": {"S": "not projected"}}, 0),
        (ASLEEP, None, 0),
        (None, ASLEEP, 0),
    ],
)
def test_an_index_costs_a_write_for_each_entry_added_or_removed(before: Any, after: Any, units: int) -> None:
    assert capacity.index_units(WAKE, before, after, transactional=False) == units
    # A global index is updated later, outside of the transaction.
    assert capacity.index_units(WAKE, before, after, transactional=True) == units


def test_an_index_of_keys_costs_by_the_size_of_the_keys() -> None:
    assert capacity.index_units(WAKE, None, item(5000, shard="1", at="10"), transactional=False) == 1


def test_an_index_of_everything_costs_by_the_size_of_the_item() -> None:
    marker = item(1500, job="j")
    assert capacity.index_units(EVENTS, None, marker, transactional=False) == 2
    assert capacity.index_units(EVENTS, marker, {**marker, "y": {"S": "1"}}, transactional=False) == 2
    assert capacity.index_units(EVENTS, None, item(1500), transactional=False) == 0


def test_a_local_index_is_written_with_its_table_in_transaction() -> None:
    assert capacity.index_units(EVENTS, None, item(1500, job="j"), transactional=True) == 4
