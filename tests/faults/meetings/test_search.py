"""Tests of the search: it plays the order that it names, restores the world, and finds a planted defect."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.rows.definition import Definition
from chalicelib.core.writes import Put
from tests.faults.meetings.orders import Order, parse
from tests.faults.meetings.scheduler import Stage
from tests.faults.meetings.search import Meeting
from tests.faults.meetings.situation import Act, Played, Situation
from tests.faults.meetings.situations_queues import THROTTLED, made
from tests.faults.meetings.summary import bounds
from tests.support.row_cache import rows_are_cached
from tests.support.schedules import partitions
from tests.support.snapshot import Snapshot, fingerprint
from tests.support.world import World, day, flights


def a_world() -> World:
    return made(flights({"daily": partitions(enabled=False)}))


def read(world: World) -> int:
    row = world.ports.rows.get(Definition, "policy", "demo.counter")
    return row.document["count"] if row else 0


def add_one(world: World) -> None:
    """A read and a write without a condition, so another invocation can write in between."""
    count = read(world)
    row = Definition("policy", "demo.counter", {"count": count + 1}, 1, world.clock.now(), "tester")
    world.ports.ledger.put_all([Put(row)])


def counted(*acts: str) -> Any:
    def finally_(played: Played) -> None:
        assert read(played.world) == len(acts), "an addition was lost"

    return finally_


def adding(*acts: str) -> Situation:
    return Situation(a_world, {name: Act(add_one) for name in acts}, finally_=counted(*acts), spans=())


@pytest.mark.parametrize("text", ["a b", "a4 b12 +65s a3 b a", "b1 ~6s c a b", "a1 c2 b a c"])
def test_an_order_is_printed_as_it_is_parsed(text: str) -> None:
    assert str(parse(text)) == text


def test_an_invalid_order_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a segment such as a4"):
        parse("a4 first")


@pytest.mark.parametrize("text", ["", "5", "0-3", "9-3", "a-b"])
def test_an_invalid_range_of_meetings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected MEETINGS as a range such as 1-100"):
        bounds(text)


def test_calls_are_made_in_the_requested_order() -> None:
    world = a_world()
    stage = Stage(world)
    acts = [(lambda: add_one(world), lambda: None)] * 2
    stage.play(acts, parse("a1 b1 a b"), None, lambda span: None)
    assert stage.log.called == [(0, "tables.get_item"), (1, "tables.get_item"),
                                (0, "tables.batch_write_item"), (1, "tables.batch_write_item")]  # fmt: skip
    assert read(world) == 1, "the second wrote over the first"


def test_a_lost_update_of_two_or_three_is_found_and_replayable() -> None:
    for acts in (("one", "other"), ("one", "other", "third")):
        meeting = Meeting(adding(*acts), acts)
        found = meeting.search(most=200, seed=1, stop_at=1000)
        assert found.whole
        broken = {str(order) for order, _ in found.broken}
        assert any("lost" in why for _, why in found.broken)
        for order in broken:
            assert "lost" in meeting.try_order(parse(order))[0], order
        assert meeting.try_order(Order(()).to_the_end(len(acts)))[0] == ""


def test_a_sample_has_so_many_orders_and_is_the_same_for_a_seed() -> None:
    with rows_are_cached():
        samples = [Meeting(THROTTLED, ("serve", "disable")).search(most=12, seed=seed) for seed in (1, 1)]
    assert [(sample.orders, sample.whole) for sample in samples] == [(12, False)] * 2
    assert samples[0].broken == samples[1].broken


def test_a_world_is_restored_as_it_was() -> None:
    world = made(flights({"daily": partitions()}))
    begin = Snapshot(world)
    before = fingerprint(world)
    world.upload(day(1))
    world.settle()
    world.finish()
    world.clock.pass_by("1m")
    assert fingerprint(world) != before
    begin.restore()
    assert fingerprint(world) == before
    assert (world.runs("daily"), world.targets.emr.runs, world.hints.sent) == ([], {}, [])
