"""Tests of the reduction: it leaves out only orders that end as one that was tried, and it finds planted defects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.schedules import closings as core_closings
from chalicelib.core.writes import (
    Conflict,
    Create,
    DeleteJob,
    ExpectDefinition,
    ExpectNotWaiting,
    Put,
    TakeLease,
    Write,
)
from chalicelib.flow.deliveries import send, unchanged
from chalicelib.flow.deliveries.ends import Ready
from chalicelib.ports import Ports
from tests.faults.meetings import situations_deliveries, situations_queues, situations_runs
from tests.faults.meetings.classes import Classes, Event, class_of
from tests.faults.meetings.footprints import Footprint
from tests.faults.meetings.orders import parse
from tests.faults.meetings.search import Meeting
from tests.faults.meetings.situation import Act, Played, Situation
from tests.faults.meetings.situations_queues import made
from tests.support.ledgers import LedgerBetween
from tests.support.row_cache import rows_are_cached
from tests.support.samples import every
from tests.support.schedules import partitions
from tests.support.snapshot import parts_of
from tests.support.world import World, flights

ALL = 100_000


class Watched(Classes):
    """Notes the class and the end of each order. Without ``reduced``, every order is a class of its own."""

    def __init__(self, meeting: Meeting, reduced: bool) -> None:
        super().__init__()
        self._meeting, self._reduced = meeting, reduced
        self._events: list[Event] = []
        self.seen: set[Any] = set()
        self.ends: set[Any] = set()

    def choose(self, able: Sequence[int]) -> int | None:
        if not self._made:
            self._events = []
        return super().choose(able)

    def made(self, actor: int, call: Footprint) -> None:
        self._events.append((actor, call))
        super().made(actor, call if self._reduced else Footprint(call.text, all=True))

    def ended(self, whole: bool) -> None:
        super().ended(whole)
        if whole:
            self.seen.add(class_of(self._events))
            self.ends.add(end_of(self._meeting.world))


def end_of(world: World) -> tuple[Any, ...]:
    """The stored items, the messages in any order, and the other parts of the world."""
    parts = parts_of(world)
    del parts["MemoryHints"]
    return world.tables.digest, str(sorted(map(repr, world.hints.sent))), str(sorted(parts.items()))


def compared(situation: Situation, acts: Sequence[str], span: str = "") -> tuple[Watched, Watched]:
    """Search all orders, and one of each class. Both must find the same classes and the same ends."""
    with rows_are_cached():
        meeting = Meeting(situation, acts)
        meeting._judged = lambda played: ""  # type: ignore[method-assign]  # the ends are compared, not judged
        every, reduced = Watched(meeting, reduced=False), Watched(meeting, reduced=True)
        for search in (every, reduced):
            assert meeting.try_classes(span, ALL, search=search).whole
    assert reduced.seen == every.seen
    assert reduced.ends == every.ends
    assert reduced.result.classes == len(every.seen), "an order of each class, and one only"
    return every, reduced


# -- a toy: counters without conditions --------------------------------------------------------------------------------


def _world() -> World:
    return made(flights({"daily": partitions(enabled=False)}))


def _count(world: World, name: str) -> int:
    row = world.ports.rows.get(Definition, "policy", f"demo.{name}")
    return row.document["count"] if row else 0


def _adds(*names: str) -> Act:
    def act(world: World) -> None:
        for name in names:
            row = Definition("policy", f"demo.{name}", {"count": _count(world, name) + 1}, 1, 0, "tester")
            world.ports.ledger.put_all([Put(row)])

    return Act(act)


def _lists(world: World) -> None:
    world.outside.kept["listed"] = len(world.ports.catalog.definitions("policy", "demo", 50, None).items)


def _toy(**acts: Act) -> Situation:
    def finally_(played: Played) -> None:
        assert _count(played.world, "x") == len(acts), "an addition was lost"

    return Situation(_world, acts, finally_=finally_, spans=())


@pytest.mark.parametrize(
    ("acts", "orders", "classes"),
    [
        ({"one": _adds("x"), "other": _adds("x")}, 6, 4),
        ({"one": _adds("x"), "other": _adds("y")}, 6, 1),
        ({"one": _adds("x", "y"), "other": _adds("y", "x")}, 70, 7),
        ({"one": _adds("x"), "other": _adds("x"), "third": _adds("y")}, 90, 4),
        ({"one": _adds("x"), "other": Act(_lists)}, 3, 2),
    ],
)
def test_a_reduced_search_finds_each_class_of_a_toy_once(acts: Any, orders: int, classes: int) -> None:
    every, reduced = compared(_toy(**acts), tuple(acts))
    assert every.result.classes == orders
    assert reduced.result.classes == classes


@pytest.mark.parametrize("actors", [2, 3])
def test_a_lost_update_is_found_in_each_reduced_search(actors: int) -> None:
    names = ("one", "other", "third")[:actors]
    meeting = Meeting(_toy(**{name: _adds("x") for name in names}), names)
    found = meeting.try_classes("", ALL, stop_at=ALL)
    assert found.whole
    assert {why for _, why in found.broken} == {"AssertionError: an addition was lost"}
    assert len(found.broken) == found.orders - len(names) * (len(names) - 1), "all but those one after the other"
    assert all("lost" in meeting.try_order(parse(str(order)))[0] for order, _ in found.broken)


def test_time_that_passes_conflicts_with_a_look_at_the_clock() -> None:
    def act(world: World) -> None:
        _count(world, "x")
        _count(world, "y")
        world.outside.kept["at"] = world.clock.now()

    every, reduced = compared(Situation(_world, {"one": Act(act)}), ("one",), "~65s")
    assert (every.result.classes, reduced.result.classes) == (3, 2)


# -- real meetings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("situation", "acts", "span"),
    every(
        4,
        [
            (situations_deliveries.DEAD_LETTER, ("redrive", "drop"), ""),
            (situations_deliveries.DEAD_LETTER, ("drop", "disable"), ""),
            (situations_runs.LEASED, ("succeed", "release"), ""),
            (situations_runs.LEASED, ("heartbeat", "release"), "~65s"),
        ],
    ),
)
def test_a_reduced_search_finds_every_end_of_a_meeting(situation: Situation, acts: tuple[str, ...], span: str) -> None:
    compared(situation, acts, span)


@pytest.mark.long
@pytest.mark.parametrize(
    ("situation", "acts"),
    [
        (situations_queues.THROTTLED, ("serve", "serve")),
        (situations_deliveries.DEAD_LETTER, ("redrive", "redrive")),
        (situations_runs.OFFERED, ("ann claims", "poll")),
        (situations_runs.OFFERED, ("ann claims", "disable")),
        (situations_deliveries.DEAD_LETTER, ("redrive", "drop", "delete")),
        (situations_deliveries.DEAD_LETTER, ("drop", "put")),
        (situations_deliveries.DEAD_LETTER, ("redrive", "disable")),
    ],
)
def test_a_reduced_search_finds_every_end_of_a_longer_meeting(situation: Situation, acts: tuple[str, ...]) -> None:
    compared(situation, acts)


class _Without(LedgerBetween):
    """Leaves out the guards of one kind, as if the code did not make them."""

    def __init__(self, inner: Any, guard: type[Write]) -> None:
        super().__init__(inner)
        self._guard = guard

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        return super().commit([write for write in writes if not isinstance(write, self._guard)])


class _DeliveredApart(LedgerBetween):
    """Keeps the books of a delivery without a condition: no lease before the call, and a run that replaces any other,
    in a transaction without the job."""

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        kept = [write for write in writes if not isinstance(write, TakeLease)]
        runs = [Put(write.row) for write in kept if isinstance(write, Create) and isinstance(write.row, Run)]
        if not runs:
            return super().commit(kept) if kept else None
        super().commit(runs)
        rest = [write for write in kept if not (isinstance(write, Create) and isinstance(write.row, Run))]
        if rest and super().commit(rest) is not None:
            for write in (write for write in rest if isinstance(write, DeleteJob)):
                super().commit([write])
        return None


def _planted(situation: Situation, between: Callable[[Any], Any], acts: Sequence[str]) -> set[str]:
    """What a search finds broken with a defect, after it found nothing without."""

    def build() -> World:
        world = situation.build()
        world.ports = world.with_ports(ledger=between(world.ports.ledger))
        return world

    with rows_are_cached():
        intact = Meeting(situation, acts).try_classes("", ALL)
        assert (intact.whole, intact.broken) == (True, [])
        meeting = Meeting(replace(situation, build=build), acts)
        found = meeting.try_classes("", ALL, stop_at=3)
        assert all(meeting.try_order(parse(str(order)))[0] == why for order, why in found.broken)
    return {why for _, why in found.broken}


def _served_unguarded() -> World:
    world = situations_queues.THROTTLED.build()
    world.ports = world.with_ports(ledger=_Without(world.ports.ledger, ExpectNotWaiting))
    return world


def test_a_server_that_read_a_run_late_removes_no_new_waiter() -> None:
    """The lease of the first server expires after it read the waiter. It reads the run while the second server calls
    the target, which throttles the call: the run queues again under the same key."""
    orders = [parse(f"a4 ~65s b{calls} a1 b a") for calls in range(1, 30)]
    with rows_are_cached():
        unguarded = Meeting(replace(situations_queues.THROTTLED, build=_served_unguarded), ("serve", "serve"))
        found = {why for order in orders if (why := unguarded.try_order(order)[0])}
        assert found == {"AssertionError: each place in a queue has its job or run, and each that waits its place"}
        intact = Meeting(situations_queues.THROTTLED, ("serve", "serve"))
        assert {intact.try_order(order)[0] for order in orders} == {""}


@pytest.mark.long
def test_a_search_finds_that_a_server_removes_a_new_waiter() -> None:
    """The first of about 12,000 orders, seven minutes."""
    with rows_are_cached():
        meeting = Meeting(replace(situations_queues.THROTTLED, build=_served_unguarded), ("serve", "serve"))
        found = meeting.try_classes("~65s", 20_000, stop_at=1)
    (broken,) = found.broken
    assert "each that waits its place" in broken[1]


def test_a_claim_without_the_guard_of_its_pool_is_found() -> None:
    """A user makes the pool smaller between the read of a check and its claim."""

    def build() -> World:
        world = situations_queues.POOL.build()
        world.ports = world.with_ports(ledger=_Without(world.ports.ledger, ExpectDefinition))
        return world

    with rows_are_cached():
        meeting = Meeting(replace(situations_queues.POOL, build=build), ("check", "shrink"))
        found = meeting.try_classes("", ALL)
        assert found.whole
        assert {why for _, why in found.broken} == {
            "AssertionError: 2 runs in a pool of 1, of which 1 lived when that was acknowledged"
        }
        for order, why in found.broken:
            assert meeting.try_order(parse(str(order)))[0] == why
        intact = Meeting(situations_queues.POOL, ("check", "shrink")).try_classes("", ALL)
    assert (intact.whole, intact.broken) == (True, [])


@pytest.mark.parametrize(
    ("situation", "acts", "why"),
    [
        (situations_deliveries.FIRE_UNANSWERED, ("check", "check"), "this job already has run"),
        (situations_deliveries.FIRE, ("check", "disable"), "what ran has no record of not having run"),
    ],
)
def test_a_delivery_that_is_recorded_apart_is_found(situation: Situation, acts: tuple[str, ...], why: str) -> None:
    found = _planted(situation, _DeliveredApart, acts)
    assert found
    assert all(why in each for each in found)


def _reads_no_rows(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    return list(part)


def _sees_no_count(batch: Any, part: Sequence[Ready]) -> bool:
    return True


@pytest.mark.parametrize(
    ("of", "name", "defect"),
    every(
        3,
        [
            (unchanged, "as_read", _reads_no_rows),
            (send._Sender, "_nothing_closed", _sees_no_count),
            # A closing that is counted before the batch reads the job, and committed after that.
            (core_closings, "SETTLED", -MINUTE),
        ],
    ),
)
def test_a_batch_that_does_not_look_for_closings_is_found(
    monkeypatch: pytest.MonkeyPatch, of: Any, name: str, defect: Any
) -> None:
    """A user withdraws a job after the batch has decided, and before it sends."""

    def plant(ledger: Any) -> Any:
        monkeypatch.setattr(of, name, defect)
        return ledger

    found = _planted(situations_deliveries.BATCH, plant, ("batch", "withdraw"))
    assert found
    assert all("sent after its cancel was acknowledged" in why for why in found)


class _NotCounted(LedgerBetween):
    """Counts no closing."""

    def count_closing(self, namespace: str) -> None:
        pass


def test_a_cancel_that_is_not_counted_is_found() -> None:
    found = _planted(situations_deliveries.BATCH, _NotCounted, ("batch", "withdraw"))
    assert found
    assert all("sent after its cancel was acknowledged" in why for why in found)
