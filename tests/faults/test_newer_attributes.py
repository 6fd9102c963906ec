"""Plays every scenario on tables whose rows newer code has written. Older code keeps the attributes that it does not
know (O11).

Each row gets an attribute of newer code when it is first stored. It keeps the attribute through every later write,
unless the row is created again.
"""

from __future__ import annotations

import pytest

from chalicelib.core.access.roles import Access
from chalicelib.core.quotas.document import Quotas
from chalicelib.flow.definitions import access, quotas
from sluice.testing.memory_tables import Item
from tests.faults.dying import play, world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.support.stored import class_of
from tests.support.world import World

NEWER = {"zz_newer": {"S": "kept"}}


class NewerRows:
    """Adds the attribute to every new row, and notes the rows that lose it without being created again."""

    def __init__(self, world: World) -> None:
        self.lost: list[tuple[str, Item, Item]] = []
        self.kept: set[str] = set()
        world.tables.as_stored = self.stored

    def stored(self, before: Item | None, item: Item) -> Item:
        kind = class_of(item)
        if before is None:
            return {**item, **NEWER}
        if "zz_newer" in item:
            self.kept.add(kind)
        elif "zz_newer" in before and not is_made_again(kind, before, item):
            self.lost.append((kind, before, item))
        return item


@pytest.mark.parametrize("name", SCENARIOS)
def test_o11_no_write_erases_an_attribute_that_it_does_not_know(name: str) -> None:
    scenario = SCENARIOS[name]
    world = world_for(scenario)
    rows = NewerRows(world)

    play(scenario, world)

    assert rows.lost == []
    KEPT.update(rows.kept)


def test_each_kind_of_rewritten_row_is_known_to_keep_attributes() -> None:
    """The scenarios above write each of these rows over a row with an unknown attribute."""
    again = {"NoticeWindow", "Backfill", "Reprocess", "DagRun", "Definition", "ScheduleState", "Job", "LimitState",
             "PendingNotice", "PlanPart", "Run", "LastArrival", "Timer", "DeadlineWatch"}  # fmt: skip
    for name in () if again <= KEPT else SCENARIOS:
        test_o11_no_write_erases_an_attribute_that_it_does_not_know(name)
    assert again - KEPT == set()


@pytest.mark.parametrize("kind", ["access", "allowed", "quotas", "grants"])
def test_o11_a_replaced_document_keeps_unknown_attributes(kind: str) -> None:
    world = World()
    world.deploy({})
    rows = NewerRows(world)
    member = "arn:aws:iam::123456789012:role/a"
    for number in (1, 2):
        match kind:
            case "access":
                members = [{"member": f"{member}{each}", "roles": ["admin"]} for each in range(number)]
                access.put(world.ports, "demo", Access.model_validate({"members": members}), "tester")
            case "allowed":
                world.allow("demo", applications=["00app"] * number)
            case "quotas":
                quotas.put(world.ports, "demo", Quotas(schedules=number), "tester")
            case _:
                world.grant("demo", {"grants": [{"to": "other", "run": [f"a.w{number}"]}]})
    assert rows.lost == []
    assert len(rows.kept) == 1


OUTBOXES = {
    "Partition": "partitions, a queue for one slot, and a join by day",
    "CountedObject": "objects that are enough together",
    "PostedEvent": "custom events for two schedules",
}


@pytest.mark.parametrize("kind", OUTBOXES)
def test_o11_outbox_finished_elsewhere_keeps_unknown_attributes(kind: str) -> None:
    """The invocation that wrote the outbox is killed before the event is applied. The tick reads the outbox and applies
    the event.
    """
    scenario = SCENARIOS[OUTBOXES[kind]]
    effects = play(scenario, world_for(scenario)).names
    first = next(number for number, name in enumerate(effects, start=1) if kind in name)
    world = world_for(scenario)
    rows = NewerRows(world)

    play(scenario, world, first)

    assert kind in rows.kept


KEPT: set[str] = set()
# An invocation writes these rows twice and keeps the first version in memory: it does not read them from the table.
_HELD = {"Partition", "CountedObject", "PostedEvent", "DeliveryLease"}
# These rows follow from their key and from a document, a job or a run. They keep nothing of the row before.
_DERIVED = {"Subscription", "Listing", "Failures", "Waiter", "Offer"}


def is_made_again(kind: str, before: Item, item: Item) -> bool:
    rewritten = {"Timer": ("generation", "anchor"), "Job": ("job_id",)}.get(kind, ())
    return kind in _HELD | _DERIVED or any(before.get(name) != item.get(name) for name in rewritten)
