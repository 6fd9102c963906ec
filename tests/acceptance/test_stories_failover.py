"""Story 2 of docs/requirements.md: failover without a skipped schedule.

Many schedules with all kinds of times are due, and emitters are killed, are missing, or are too many. In every case
each schedule fires at each of its instants, once. The tables are in memory, because there are hundreds of worlds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.core.instants import SECOND
from chalicelib.core.writes import Put, Write
from chalicelib.flow.fires import emit
from chalicelib.flow.system import sweep
from tests.support.clock import NOON
from tests.support.crash import lost, wrap
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at
from tests.support.world import World, flights, full

Tick = Callable[["Failover"], None]
EACH = 6  # schedules of each kind
# Expressions, and their instants in seconds after noon. A fire that is due in two minutes is prepared at the put.
KINDS: dict[str, tuple[str, list[int]]] = {
    "minutes": ("2-4 12 2 3 *", [120, 180, 240]),
    "seconds": ("R12/PT20S", [20 * number for number in range(1, 13)]),
    "once": ("3 12 2 3 *", [180]),
}
DUE = {full(f"{kind}{number}"): seconds for kind, (_, seconds) in KINDS.items() for number in range(EACH)}


class Failover(World):
    """A world whose first ticks run as a test defines; the later ones run normally. It is a subclass because `pass_by`
    of the world calls its `tick`."""

    def __init__(self, *ticks: Tick) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.ticks = list(ticks)
        schedules = {
            f"{kind}{number}": at(text, "notify") for kind, (text, _) in KINDS.items() for number in range(EACH)
        }
        self.deploy(flights(schedules))

    def tick(self) -> None:
        if self.ticks:
            self.ticks.pop(0)(self)
            self.settle()
        else:
            super().tick()

    def whole(self) -> None:
        super().tick()

    def sent(self) -> Counter[tuple[str, int]]:
        """How often each schedule sent each of its instants, in seconds after noon."""
        answer = [context for _, context in self.targets.queue.messages]
        return Counter((each["schedule"], (each["logical_start_time"] - NOON) // SECOND) for each in answer)


def whole(world: Failover) -> None:
    world.whole()


def missing(world: Failover) -> None:
    """No tick came in this minute."""


def dies_after(effect: int, seen: list[int] | None = None) -> Tick:
    """The emitter is killed right after its n-th effect, and the rest of its tick with it."""

    def tick(world: Failover) -> None:
        ports = world.ports
        points = wrap(world)
        points.die_after, points.armed = effect, True
        died = lost(lambda: emit.emit_due(world.ports))
        world.ports = ports
        if seen is not None:
            seen.append(points.count)
        if not died:
            sweep.sweep_all(world.ports)

    return tick


def overtaken(after: int) -> Tick:
    """Two emitters at once: the second one does all of its work right before the n-th write of the first."""

    def tick(world: Failover) -> None:
        plain = world.ports
        stalled = world.with_ports(ledger=Stalling(plain.ledger, after, lambda: emit.emit_due(plain)))
        emit.emit_due(stalled)
        sweep.sweep_all(plain)

    return tick


class Stalling(LedgerBetween):
    """A ledger that calls a function before its n-th write."""

    def __init__(self, inner: Any, after: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self._left, self._meanwhile = after, meanwhile

    def before(self, writes: Sequence[Write]) -> None:
        self._step()

    def before_puts(self, writes: Sequence[Put]) -> None:
        self._step()

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._meanwhile()


def effects() -> int:
    """The number of effects of the first minute's emitter, if it is not killed."""
    seen: list[int] = []
    Failover(dies_after(0, seen)).pass_by("1m")
    return seen[0]


def played(*ticks: Tick) -> Failover:
    world = Failover(*ticks)
    world.pass_by("8m")
    return world


def assert_all_fired_once(world: Failover) -> None:
    assert world.sent() == Counter({(name, second): 1 for name, seconds in DUE.items() for second in seconds})
    assert all(world.records(name) == [] for name in DUE)


def test_story_2() -> None:
    """Without a failure; with a minute without a tick; with every tick twice: all fire once, at their instants."""
    world = played()
    assert_all_fired_once(world)
    assert all(run.start_requested_at == run.nominal_at for name in DUE for run in world.runs(name))
    for ticks in ([missing], [whole, missing], [whole, missing, missing], [twice, twice, twice, twice]):
        assert_all_fired_once(played(*ticks))


def twice(world: Failover) -> None:
    emit.emit_due(world.ports)
    world.whole()


def test_story_2_an_emitter_may_die_after_any_of_its_effects() -> None:
    count = effects()
    assert count > EACH * 3
    for number in range(1, count + 1):
        assert_all_fired_once(played(dies_after(number)))


@pytest.mark.parametrize("then", [missing, dies_after(1)], ids=["no tick", "another death"])
def test_story_2_the_next_tick_after_a_death_may_fail_as_well(then: Tick) -> None:
    for number in range(1, effects() + 1, 4):
        assert_all_fired_once(played(dies_after(number), then))


def test_story_2_overlapping_emitters_make_every_fire_once() -> None:
    for number in range(1, effects() + 1):
        assert_all_fired_once(played(overtaken(number), overtaken(number)))
