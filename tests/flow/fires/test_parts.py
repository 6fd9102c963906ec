"""A shard with many due timers is handed on part by part; no loss, repeat or death skips or doubles a fire (E1, E9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.rows.ref import (
    Ref,
    ShardPart,
    crowd_of,
    fires_ref,
    shard_part,
    shard_ref,
)
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.system import bursts
from chalicelib.core.writes import Replace, Write
from chalicelib.flow import shards
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch
from tests.support.crash import lost, wrap
from tests.support.ledgers import Before, LedgerBetween
from tests.support.schedules import at
from tests.support.world import World, flights

MANY = 23


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows are many, and so many timers are read ahead."""
    monkeypatch.setattr(shards, "PAGE", 5)
    monkeypatch.setattr(emit, "MAX_READ_AHEAD", 5)


def many(shards: int = 1, count: int = MANY) -> World:
    """Schedules that fire once each, in 75 s, so they are prepared at once."""
    world = World(wake_shards=shards, history_shards=1)
    world.deploy(flights({f"s{number:02d}": at("R1/PT200S", "notify") for number in range(count)}))
    world.clock.pass_by("125s")
    world.hints.sent = []
    return world


def parts(world: World) -> list[ShardPart]:
    return [shard_part(ref) for _, ref in world.hints.sent if ref.kind == "shard"]


def delivered(world: World, minutes: int = 3) -> Counter[str]:
    """How many messages of each run arrived within some minutes."""
    world.pass_by(f"{minutes}m")
    return Counter(run_id for run_id, _ in world.targets.queue.messages)


def all_once(world: World, minutes: int = 3) -> bool:
    return sorted(delivered(world, minutes).values()) == [1] * MANY


class Moves(LedgerBetween):
    """Counts the timers that each commit moves."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.moved: list[int] = []

    def before(self, writes: Sequence[Write]) -> None:
        self.moved.append(sum(isinstance(write, Replace) and isinstance(write.row, Timer) for write in writes))


def test_e9_the_tick_hands_full_shards_on_and_handles_the_others() -> None:
    world = many(shards=4)
    sizes = [len(world.ports.wakes.due("catalog", shard, 10**14, 100, None).items) for shard in range(4)]

    handled = emit.emit_due(world.ports)

    here = sorted(size for size in sizes if size < shards.PAGE)
    assert handled == (here[0] if here else 0)
    assert len(parts(world)) == 4 - (1 if here else 0)
    assert all_once(world)


def work(world: World) -> None:
    """Read the shards that were handed on, and handle no timer."""
    while ready := [ref for _, ref in world.hints.sent if ref.kind == "shard"]:
        world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind != "shard"]
        for ref in ready:
            dispatch.dispatch(world.ports, ref)


def named(world: World) -> list[Ref]:
    return [ref for _, ref in world.hints.sent if ref.kind == "fires"]


def test_e9_a_shard_is_divided_into_messages_of_named_timers() -> None:
    world = many()
    emit.emit_due(world.ports)
    work(world)
    assert len(named(world)) == len(set(named(world))) == MANY
    moves = Moves(world.ports.ledger)
    assert dispatch.dispatch_together(world.with_ports(ledger=moves), named(world)[:5], world.clock.now()) == []
    assert moves.moved == [5], "the timers of a message are moved in one transaction"
    assert all_once(world)


@pytest.mark.parametrize("lose", ["shard", "fires"])
def test_e9_timers_of_a_lost_message_are_found_by_the_next_tick(lose: str) -> None:
    world = many()
    emit.emit_due(world.ports)
    if lose == "fires":
        work(world)
    lost_hints = [hint for hint in world.hints.sent if hint[1].kind == lose]
    assert lost_hints
    world.hints.sent = [hint for hint in world.hints.sent if hint not in lost_hints]
    assert all_once(world)


def test_e9_repeated_shards_and_timers_prepare_no_fire_twice() -> None:
    world = many()
    for _ in range(2):
        emit.emit_due(world.ports)
        work(world)
    timers, world.hints.sent = named(world), []
    assert len(timers) == 2 * MANY
    moves = Moves(world.ports.ledger)
    for half in (timers[:MANY], timers[MANY:]):
        dispatch.dispatch_together(world.with_ports(ledger=moves), half, world.clock.now())
    assert sum(moves.moved) == MANY, "the second message finds its timers moved"
    fires = [ref for _, ref in world.hints.sent if ref.kind == "job"]
    assert len(fires) == len(set(fires)) == MANY
    assert all_once(world)


def test_e9_two_emitters_of_one_message_at_once_do_no_harm() -> None:
    world = many()
    emit.emit_due(world.ports)
    work(world)
    timers, world.hints.sent = named(world), []
    plain = world.ports
    between = Before(plain.ledger, lambda: dispatch.dispatch_together(plain, timers, world.clock.now()))
    dispatch.dispatch_together(world.with_ports(ledger=between), timers, world.clock.now())
    fires = [ref for _, ref in world.hints.sent if ref.kind == "job"]
    assert len(fires) == len(set(fires)) == MANY, "only the emitter that moves a timer hints its fire"
    assert all_once(world)


def test_e9_timers_without_time_left_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = many()
    emit.emit_due(world.ports)
    work(world)
    timers, world.hints.sent = named(world), []
    monkeypatch.setattr(emit, "BATCH_SIZE", 2)
    ports = world.with_ports(ends_at=world.clock.now() + emit.TIME_FOR_ROUND - 1)
    dispatch.dispatch_together(ports, timers, world.clock.now())
    assert named(world) == timers[2:]
    assert all_once(world)


def test_e9_a_shard_without_time_left_is_handed_on_from_there() -> None:
    world = many()
    emit.emit_due(world.ports)
    [part] = parts(world)
    world.hints.sent = []
    emit.split(world.with_ports(ends_at=world.clock.now()), part)
    assert len(named(world)) == shards.PAGE
    [rest] = parts(world)
    assert rest.cursor is not None
    assert all_once(world)


def test_e9_without_the_queue_the_tick_prepares_fires_itself() -> None:
    world = many()

    class DownForShards:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.hints, name)

        def send_all(
            self,
            hints: Any,
            now: int,
            *,
            patient: bool = False,
            ahead: bool = False,
            must: bool = False,
            crowd: int = 0,
        ) -> None:
            if must:
                raise ConnectionError("the queue does not answer")
            world.hints.send_all(hints, now)

    assert emit.emit_due(world.with_ports(hints=DownForShards())) == shards.PAGE
    assert all_once(world)


def test_e9_a_timer_that_fails_stops_no_other_of_its_message() -> None:
    world = many()
    timers = [fires_ref(f"demo.flights.s{number:02d}") for number in range(MANY)]

    class Broken(LedgerBetween):
        def before_puts(self, writes: Any) -> None:
            if any(write.row.schedule.endswith("s03") for write in writes):
                raise ValueError("broken")

    ports = world.with_ports(ledger=Broken(world.ports.ledger))
    assert dispatch.dispatch_together(ports, timers, world.clock.now()) == timers, "the message comes again"
    assert len([ref for _, ref in world.hints.sent if ref.kind == "job"]) == MANY - 1
    assert all_once(world)


def test_e9_a_death_after_any_effect_skips_and_doubles_no_fire() -> None:
    effects = _deaths(many(), 0)
    assert effects >= 8
    for number in range(1, effects + 1):
        _deaths(many(), number)


def _deaths(world: World, number: int) -> int:
    """Play with a death after this effect. Returns how many effects there were."""
    points = wrap(world)
    points.die_after, points.armed = number, True
    lost(lambda: emit.emit_due(world.ports))
    world.settle(lost)
    points.armed = False
    assert all_once(world), f"after effect {number}: {points.names[-3:]}"
    return points.count


class Crowds:
    """Hints that keep with how large a crowd each was sent."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[tuple[int, int]] = []  # refs, crowd

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world.hints, name)

    def send_all(
        self, hints: Any, now: int, *, patient: bool = False, ahead: bool = False, must: bool = False, crowd: int = 0
    ) -> None:
        self.sent += [(len(refs), crowd) for _, refs in hints]
        self.world.hints.send_all(hints, now)


def test_e9_messages_of_a_burst_say_how_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second page on the shard has many timers of one instant; while more pages follow, more are expected."""
    monkeypatch.setattr(bursts, "BURST", 6)
    world = many()
    emit.emit_due(world.ports)
    [part] = parts(world)
    world.hints.sent = []
    crowds = Crowds(world)
    emit.split(world.with_ports(hints=crowds), part)
    assert crowds.sent == [(5, 5), (5, 20), (5, 30), (5, 40), (3, 23)]
    assert [crowd_of([ref]) for ref in named(world)] == [0] * 5 + [20] * 5 + [30] * 5 + [40] * 5 + [23] * 3
    # The emitter of such a message sends its hints as those of a part of the burst.
    timers, world.hints.sent, crowds.sent = named(world)[-3:], [], []
    assert dispatch.dispatch_together(world.with_ports(hints=crowds), timers, world.clock.now()) == []
    assert {crowd for _, crowd in crowds.sent} == {23}
    assert all_once(world)


def test_e9_timers_of_several_instants_are_prepared_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tick finds the timers of the next minute but one. All of them are prepared before the next tick."""
    monkeypatch.setattr(bursts, "LEAST", 4)
    monkeypatch.setattr(bursts, "BURST", 6)
    monkeypatch.setattr(shards, "PAGE", 12)
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({f"s{number:02d}": at(f"R1/PT{200 + 3 * number}S", "notify") for number in range(20)}))
    world.clock.pass_by("125s")
    began, world.hints.sent = world.clock.now(), []
    emit.emit_due(world.ports)
    work(world)
    messages = Counter((due - began) // 1000 for due, ref in world.hints.sent if ref.kind == "fires")
    # The first instants of the messages are 75, 87, 99, 111 and 123 s from now. The horizon is 135 s.
    assert messages == {0: 4, 7: 4, 19: 4, 31: 4, 43: 4}
    assert sorted(delivered(world, 5).values()) == [1] * 20


def test_e9_timers_of_one_instant_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "BURST", 6)
    monkeypatch.setattr(emit, "MAX_READ_AHEAD", 100)
    world = many()
    emit.emit_due(world.ports)
    [part] = parts(world)
    crowds = Crowds(world)
    emit.split(world.with_ports(hints=crowds), part)
    assert crowds.sent == [(MANY, MANY)]
    assert all_once(world)


def test_the_ref_of_a_shard_names_all_of_its_part() -> None:
    part = ShardPart("jobs", 3, 1_700_000_000_000, "abc")
    assert shard_part(shard_ref(part)) == part
    assert shard_part(shard_ref(ShardPart("jobs", 3, 5))).cursor is None


def test_e9_timers_that_come_early_are_prepared_without_a_wait() -> None:
    """A large message comes some seconds before its instant. A Lambda that waits costs as one that works."""
    world = many()
    begin, moves = world.clock.now(), Moves(world.ports.ledger)
    timers = [fires_ref(f"demo.flights.s{number:02d}") for number in range(MANY)]
    assert dispatch.dispatch_together(world.with_ports(ledger=moves), timers, begin + 17_000) == []
    assert (sum(moves.moved), world.clock.now()) == (MANY, begin)
    assert all_once(world)
