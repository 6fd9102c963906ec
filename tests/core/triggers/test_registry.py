"""The kinds of leaves: each has the full interface of a leaf, and is a member of the union of triggers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Leaf, Names, timed
from chalicelib.core.triggers.registry import event_fields
from tests.core.builders import NOON
from tests.support.kinds import GATHERING_TYPES, GIVEN_TYPES, LEAF_TYPES

DATA = {"type": "partition", "dataset": "flights"}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "time": {"type": "time", "expression": "*/10 * * * *"},
    "partition": DATA,
    "snapshot": DATA | {"type": "snapshot"},
    "size": {"type": "size", "dataset": "flights", "bytes": 1000},
    "program_status": {"type": "program_status", "workflow": "clean"},
    "event": {"type": "event", "event": "orders.closed", "pattern": {"note": ["waits to reach Rome"]}},
    "cloudwatch_alarm": {"type": "cloudwatch_alarm", "alarm": "disk full"},
    "quiet": {"type": "quiet", "of": DATA, "after": "10m"},
    "elapsed": {"type": "elapsed", "after": "4h"},
    "absent": {"type": "absent", "of": DATA, "within": "1h"},
}
NAMES = Names("demo", "flights", "Europe/Berlin", NOON)


def leaf(kind: str) -> Leaf:
    made: Leaf = TypeAdapter(tree.AnyTrigger).validate_python(DOCUMENTS[kind])
    return made


def test_every_type_of_every_kind_has_a_document_here() -> None:
    assert list(DOCUMENTS) == LEAF_TYPES


def test_any_event_leaf_may_be_inside_quiet_or_absent() -> None:
    assert set(GATHERING_TYPES) == DOCUMENTS.keys() - {"time", "quiet", "elapsed", "absent"}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_kind_describes_itself_and_what_came_and_is_missing(kind: str) -> None:
    made = leaf(kind).resolve(NAMES)
    progress = Progress(made.needed, NOON, NOON, amount=1000)
    before, after = made.evaluate(None, NOON), made.evaluate(progress, NOON + 10 * MINUTE)
    assert (before.met, before.arrived, before.missing) == (False, (), (made.missing(None),))
    assert (after.met, after.arrived[0], after.missing) == (True, made.arrived(progress), ())
    assert made.describe()


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_kind_is_found_by_its_events_or_by_its_timer(kind: str) -> None:
    made = leaf(kind).resolve(NAMES)
    if made.event_keys():
        assert made.datasets() or made.upstreams() or kind in ("event", "cloudwatch_alarm")
    else:
        assert timed(made).next_due(NOON, NOON) is not None


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_kind_has_full_names_in_its_references(kind: str) -> None:
    made = leaf(kind).resolve(NAMES)
    assert {each.name for each in made.datasets()} <= {"demo.flights"}
    assert {each.workflow for each in made.upstreams()} <= {"demo.flights.clean"}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_each_kind_can_be_played_in_a_dry_run(kind: str) -> None:
    assert (kind in GIVEN_TYPES) is (kind != "quiet")


def test_a_kind_that_no_leaf_counts_reaches_run_with_its_fields() -> None:
    """`run_now`, and any kind that newer code has stored."""
    for kind in ("run_now", "zz_newer"):
        assert event_fields(Event("e1", kind, "k", NOON, NOON, payload={"x": 1})) == {}


def test_a_pattern_is_described_as_it_was_written() -> None:
    assert "waits to reach Rome" in leaf("event").describe()
