"""Older code replaces rows of newer code and keeps their attributes (O11): it copies unknown ones from read to write.

The tests add attributes that no field names, of every shape that an item may have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from chalicelib.aws.tables import items
from chalicelib.core.rows import kinds
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run, StartRequest
from chalicelib.core.why import Why
from tests.support.clock import NOON
from tests.support.reasons import says

KINDS: tuple[Any, ...] = tuple(row for row in kinds.ROWS if row is not LimitState)
ADDED: dict[str, Any] = {
    "zz_text": {"S": "kept"},
    "zz_number": {"N": "1E+2"},
    "zz_set": {"SS": ["b", "a"]},
    "zz_map": {"M": {"deep": {"L": [{"BOOL": True}, {"NULL": True}, {"B": b"\x00"}]}}},
}


def sample(kind: Any) -> Any:
    """A row of a kind with its required fields only."""
    hints = get_type_hints(kind)
    needed = (each for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING)
    return kind(**{each.name: _value(hints[each.name]) for each in needed})


def _value(hint: Any) -> Any:
    if hint in (Event, StartRequest):
        return sample(hint)
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if hint is int:
        return NOON
    if hint is str:
        return "demo.flights.clean"
    if hint is Why:
        return says("a test")
    return {} if get_origin(hint) is Mapping else ()


def stored(row: Any) -> dict[str, Any]:
    return items.to_item(row, 4, 4)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_o11_unknown_attributes_go_from_the_read_to_the_write(kind: Any) -> None:
    written = {**stored(sample(kind)), **ADDED}

    row = items.from_item(kind, written)

    assert row == sample(kind), "the row means the same"
    assert stored(row) == written
    assert stored(replace(row)) == written


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_rows_written_by_this_code_have_no_unknown_attributes(kind: Any) -> None:
    for row in (sample(kind), _with_times(sample(kind))):
        assert items.from_item(kind, stored(row)).unknown == ()


def test_a_row_leaving_wake_index_is_not_restored_by_its_read() -> None:
    job = items.from_item(Job, {**stored(replace(sample(Job), wake_at=NOON, expires_at=NOON)), **ADDED})

    after = stored(replace(job, wake_at=None, expires_at=None, queued_in="workflow:demo.flights.w"))

    assert not {"wake_at", "wake_shard", "ttl", "expires_at"} & after.keys()
    assert ADDED.items() <= after.items()


def test_o11_an_event_and_a_request_keep_unknown_attributes() -> None:
    job = replace(sample(Job), event=sample(Event))
    item = stored(job)
    item["event"] = {"S": json.dumps({**json.loads(item["event"]["S"]), "zz": {"a": [1]}}, separators=(",", ":"))}

    read = items.from_item(Job, item)
    run = replace(sample(Run), event=read.event, request=replace(sample(StartRequest), unknown=(("zz", 1),)))

    assert read.event == sample(Event)
    assert stored(read) == item
    again = items.from_item(Run, stored(run))
    assert again.event is not None
    assert again.event.unknown == (("zz", {"a": [1]}),)
    assert again.request.unknown == (("zz", 1),)


def test_o11_the_progress_of_a_leaf_keeps_unknown_numbers() -> None:
    item = stored(replace(sample(Job), leaves={"0": Progress(1, NOON, NOON, 5)}))
    item["leaves"]["M"]["0"]["L"] += [
        {"S": ""},
        {"S": ""},
        {"N": "7"},
    ]  # no parts, no words, and newer code's

    read = items.from_item(Job, item)

    assert read.leaves["0"] == Progress(1, NOON, NOON, 5)
    assert stored(read) == item
    assert stored(replace(read, leaves={"0": read.leaves["0"].plus(1, NOON)}))["leaves"]["M"]["0"]["L"][6] == {"N": "7"}


def test_o11_a_row_of_an_unknown_layout_is_refused_not_misread() -> None:
    item = {**stored(sample(Job)), "format": {"N": str(items.OF_BUNDLES + 1)}}

    with pytest.raises(items.NewerLayout, match=f"layout {items.OF_BUNDLES + 1}.*up to {items.OF_BUNDLES}"):
        items.from_item(Job, item)


def _with_times(row: Any) -> Any:
    named = {each.name for each in fields(row)} & {"wake_at", "expires_at"}
    return replace(row, **dict.fromkeys(named, NOON))
