"""Every kind of row is exported, or named as left out: a new kind needs a decision (L14)."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.rows import kinds
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.reprocess import Reprocess
from sluice.operations.rules.owner import namespace_of, plans_of, unheard
from tests.aws.tables.test_unknown_attributes import ADDED, sample, stored
from tests.support import archives, rows
from tests.support.rows import event
from tests.support.world import World

KINDS: tuple[Any, ...] = tuple(row for row in kinds.ROWS if row is not LimitState)


def example(kind: Any) -> Any:
    """A row of a kind, of the namespace demo if rows of this kind belong to one."""
    own = {"namespace": "demo", "limit_name": "workflow:demo.flights.clean", "job_id": "demo.flights.clean.1.a"}
    row = sample(kind)
    fitting = {name: text for name, text in own.items() if name in {field.name for field in fields(row)}}
    posted = {"event": event(key="event:demo:closed")} if kind.__name__ == "PostedEvent" else {}
    return replace(row, **fitting, **posted)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_a_namespace_or_is_left_out(kind: Any) -> None:
    row = example(kind)
    found = namespace_of(row)
    assert (found is None) == (bool(kinds.ROWS[kind].left_out) or kind.__name__ == "PlanPart"), found
    assert found in (None, "demo")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_key_of_a_row_tells_its_kind(kind: Any) -> None:
    assert kinds.kind_of(kinds.key_of(example(kind))).row is kind


def test_keys_of_limits_and_unknown_rows_tell_their_kind() -> None:
    assert kinds.kind_of(kinds.key(LimitState, "workflow:demo.flights.clean")).row is LimitState
    with pytest.raises(ValueError, match="expected the key of a row of jobs, got NEW#1"):
        kinds.kind_of(kinds.Key("jobs", "NEW#1", "X"))


@pytest.mark.parametrize("limit", ["workflow:demo.flights.clean", "rate:demo.flights.clean:3/3600000", "pool:demo.p"])
def test_a_limit_belongs_to_the_namespace_in_its_name(limit: str) -> None:
    assert namespace_of(LimitState(limit)) == "demo"


@pytest.mark.parametrize("limit", ["application:00app", "emr:starts"])
def test_limits_of_emr_belong_to_no_namespace(limit: str) -> None:
    assert namespace_of(LimitState(limit)) is None


def test_a_plan_belongs_to_its_backfill_or_re_processing() -> None:
    steps = tuple({"schedule": f"demo.flights.{plan}", "plan": plan} for plan in ("p1", "p2"))
    assert plans_of(rows.backfill(plan="p9")) == ("p9",)
    assert plans_of(replace(sample(Reprocess), steps=steps)) == ("p1", "p2")
    assert plans_of(rows.run()) == ()


@pytest.mark.parametrize(
    ("backfill", "told"), [(None, True), ("b1", True), (ids.step_of("r1", 1), False)], ids=["none", "own", "step"]
)
def test_a_status_in_a_re_processing_is_for_no_other_schedule(backfill: str | None, told: bool) -> None:
    """Its plan starts what follows."""
    run = rows.run(backfill=backfill, announce=("STARTED", "COMPLETED"))
    assert [each.status for each in unheard(run)] == (["STARTED", "COMPLETED"] if told else [])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_copy_of_a_row_keeps_what_this_code_does_not_know(kind: Any) -> None:
    world, new = World(), World()
    item = {**stored(example(kind)), **ADDED}
    key = kinds.key_of(example(kind))
    table = f"{key.table.capitalize()}Table"
    world.tables.put_item(TableName=table, Item=item)
    [copy] = archives.copies_of(world).page(key.table, None)[0]
    copies = archives.copies_of(new)
    copies.put_asleep([copies.copy_of(key.table, json.loads(json.dumps(copy.item)))])
    [(_, arrived)] = new.tables.rows()
    assert {**arrived, "zz_set": {"SS": sorted(arrived["zz_set"]["SS"])}} == {**item, "zz_set": {"SS": ["a", "b"]}}
