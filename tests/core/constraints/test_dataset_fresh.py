"""Freshness of a dataset: the span since its newest partition came, and what a schedule refers to (C18)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.constraints.constraint import Situation, Use
from chalicelib.core.instants import DAY, SECOND, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event, NewestPartition, newest_by
from tests.core.builders import NAME, NOON, met, schedule, sent

DATASET = "demo.flights"
RULE = "a partition of demo.flights came within 1d, else wait"
DOCUMENT = {"type": "dataset_fresh", "dataset": DATASET, "within": "1d", "on_unmet": "wait"}


def fresh(**fields: Any) -> Any:
    [made] = schedule(constraints=[DOCUMENT | fields]).constraints
    return made


def evaluated(newest: NewestPartition | None, **fields: Any) -> Any:
    known = {DATASET: newest, "demo.weather": NewestPartition("demo.weather", {"day": "1"}, NOON)}
    return fresh(**fields).evaluate(
        Situation(job=met(), workflow=NAME, namespace="demo", limit_states={}, successes={}, now=NOON, newest=known)
    )


@pytest.mark.parametrize(
    ("age", "is_met"), [(-SECOND, True), (0, True), (DAY, True), (DAY + 1, False), (9 * DAY, False)]
)
def test_c18_the_newest_partition_is_at_most_so_old(age: int, is_met: bool) -> None:
    found = evaluated(NewestPartition(DATASET, {"month": "09", "day": "1"}, NOON - age))
    came = f"the newest, month=09/day=1, came at {iso(NOON - age)}"
    why = came if is_met else f"{came} and was fresh until {iso(NOON - age + DAY)}"
    assert (found.met, found.until, found.why.text) == (is_met, None, f"{RULE}: {why}")


def test_c18_a_dataset_without_partitions_is_not_fresh() -> None:
    found = evaluated(None)
    assert (found.met, found.until, found.why.text) == (False, None, f"{RULE}: none has come yet")
    assert (found.waits, found.aborts) == (True, False)
    found = evaluated(None, on_unmet="abort")
    assert (found.waits, found.aborts) == (False, True)


def test_c18_a_put_checks_the_dataset_and_its_partitions_wake() -> None:
    made = fresh(dataset="flights").resolve(Names("demo", "flights", "UTC", NOON))
    assert made.dataset == DATASET
    assert list(made.references()) == [Use("dataset", DATASET, "dataset")]
    assert (made.datasets(), made.wake_keys(NAME)) == ((DATASET,), ("partition:demo.flights",))
    assert (made.awaits(), made.wait_reason, made.upstreams()) == ("a partition of demo.flights", "upstream", ())


@pytest.mark.parametrize("field", ["dataset", "on_unmet"])
def test_c18_each_field_is_required(field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        sent(constraints=[{key: value for key, value in DOCUMENT.items() if key != field}])
    assert errors.from_validation(caught.value).field == f"constraints.0.{field}"


def event(kind: str = "partition", **fields: Any) -> Event:
    return Event("e", kind, f"{kind}:{DATASET}", **{"instant": NOON, "accepted_at": NOON, "dataset": DATASET} | fields)


def test_c18_a_clock_that_is_ahead_makes_no_partition_newer() -> None:
    partition = {"month": "09", "day": "1"}
    late = newest_by(event(partition=partition, instant=NOON - DAY))
    assert late == NewestPartition(DATASET, partition, NOON - DAY)
    ahead = newest_by(event(partition=partition, instant=NOON + DAY))
    assert ahead == NewestPartition(DATASET, partition, NOON)


def test_c18_only_events_of_partitions_are_of_a_newest_one() -> None:
    assert newest_by(event("size", partition={"day": "1"})) is None
    assert newest_by(event(dataset=None)) is None
