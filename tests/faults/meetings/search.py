"""Searches the orders of some invocations for one that breaks a promise.

Orders are tried by their number of switches: first each invocation runs to its end, then with one switch, then with
two, and so on. Two orders can reach the same world with the same answers for each invocation. What can follow is then
the same, and is tried once. If a search cannot try all orders, it tries a sample for each number of switches.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import factorial, prod
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from tests.faults import invariants
from tests.faults.meetings.books import accepted, check_books, check_sent_once, rows
from tests.faults.meetings.classes import Classes
from tests.faults.meetings.footprints import Footprint
from tests.faults.meetings.orders import TIME, Order
from tests.faults.meetings.scheduler import Stage
from tests.faults.meetings.situation import Act, Played, Situation, refused
from tests.support.snapshot import Snapshot, fingerprint
from tests.support.world import World

STOP_AT = 10  # orders that break a promise
LATE = 0.25  # of the orders of a sample, those in which time passes
SWITCHES = 3  # the most switches in an order; after the last, each invocation runs to its end


@dataclass
class Found:
    """The result of a search."""

    orders: int = 0
    whole: bool = True  # every order with up to this many switches was tried, or was equal to one that was
    broken: list[tuple[Order, str]] = field(default_factory=list)
    possible: int = 0  # orders, with any number of switches, of the calls that an order made; the most of any order

    def add(self, other: Found) -> None:
        self.orders += other.orders
        self.possible += other.possible
        self.whole = self.whole and other.whole
        self.broken += other.broken


class Meeting:
    """Some invocations that meet in a situation. The world is built once, and restored for each order."""

    def __init__(self, situation: Situation, names: Sequence[str]) -> None:
        self.situation, self.names = situation, tuple(names)
        self.acts: list[Act] = [situation.acts[name] for name in names]
        self.world, self._begin = _built(id(situation), situation)
        self._stage = Stage(self.world)
        self._accepted = accepted(self.world) if situation.accepts else {}
        self._generations = {
            schedule_state.schedule: schedule_state.generation
            for schedule_state in rows(self.world, ScheduleState, "Catalog", "STATE")
        }
        self._rested: dict[int, str] = {}

    def try_order(self, order: Order, watch_from: int | None = None) -> tuple[str, list[int]]:
        """Play an order. Returns the broken promise, or an empty text, and the state before each call of the watched
        invocation.
        """
        world, stage = self.world, self._stage
        self._begin.restore()
        acts = [(lambda act=act: act.do(world), lambda act=act: act.note(world)) for act in self.acts]
        try:
            with stage.telling():
                stage.play(acts, order, watch_from, self._pass_time)
                seen = list(stage.seen)
                return self._judged(Played(world, stage.log, self.acts, self._generations)), seen
        except Exception as error:
            return _described(error), list(stage.seen)

    def try_classes(self, span: str, most: int, stop_at: int = STOP_AT, search: Classes | None = None) -> Found:
        """Try one order of each class, with any number of switches, and with a time that passes at any moment if there
        is a ``span``. Stops after ``most`` orders, or ``stop_at`` that break a promise.
        """
        found, search = Found(), Classes() if search is None else search

        def play(search: Classes) -> bool:
            self._begin.restore()
            acts = [(lambda act=act: act.do(self.world), lambda act=act: act.note(self.world), act.sees)
                    for act in self.acts]  # fmt: skip
            with self._stage.telling():
                order, ended = self._stage.play_by(acts, span, search, self._pass_time)
                if not ended:
                    return True
                found.orders += 1
                found.possible = max(found.possible, _interleavings(order))
                answer = self._told_of(Played(self.world, self._stage.log, self.acts, self._generations))
            if answer:
                found.broken.append((order, answer))
            return len(found.broken) < stop_at

        found.whole = search.search(play, most).whole
        return found

    def try_all(self, most: int, seed: int, timed: bool = True) -> Found:
        """Try one order of each class, without a time that passes and, if ``timed``, with each span. Adds a sample of
        ``most`` orders if there are more than ``most`` classes.
        """
        found = Found()
        for span in ("", *(self.situation.spans if timed else ())):
            part = self.try_classes(span, most)
            found.add(part)
            if len(found.broken) >= STOP_AT:
                return found
        if not found.whole:
            found.add(self.search(most, seed))
        return found

    def sample(self, most: int, seed: int, late: float = LATE) -> Found:
        """Try up to ``most`` orders, each with some switches. A switch comes right after a call that conflicts with a
        call of another invocation: any other switch is equal to one at such a call, or to none. ``late`` is the share
        of orders in which time passes.
        """
        chosen, found = random.Random(seed), Found(whole=False)
        cuts = self._cuts()
        orders = dict.fromkeys(self._with_switches(chosen, cuts, late) for _ in range(3 * most))
        for order in list(orders)[:most]:
            answer, _ = self.try_order(order)
            found.orders += 1
            if answer:
                found.broken.append((order, answer))
        return found

    def sample_late(self, most: int, seed: int) -> Found:
        """The same, with orders in which time passes, as far as the invocations have conflicts."""
        return self.sample(most, seed, late=1)

    def _cuts(self) -> list[list[int]]:
        """For each invocation, after how many calls the last one conflicts with a call of another invocation. The calls
        are those that an invocation makes alone.
        """
        alone = [self._calls_alone(name) for name in self.names]
        return [[number for number, call in enumerate(own[:-1], start=1)
                 if any(call.conflicts(other) for rest in alone[:place] + alone[place + 1 :] for other in rest)]
                for place, own in enumerate(alone)]  # fmt: skip

    def _calls_alone(self, name: str) -> list[Footprint]:
        key = id(self.situation), name
        if key not in _alone:
            self._begin.restore()
            act, search = self.situation.acts[name], Classes()
            with self._stage.telling():
                self._stage.play_by([(lambda: act.do(self.world), lambda: None, act.sees)], "", search, self._pass_time)
            _alone[key] = [call for _, call in search.calls]
        return _alone[key]

    def _with_switches(self, chosen: random.Random, cuts: Sequence[Sequence[int]], share: float) -> Order:
        """An order with up to `SWITCHES` switches at the cuts of the invocations, and sometimes a time that passes."""
        actors = range(len(self.acts))
        order, made, ended = Order(()), [0] * len(self.acts), set[int]()
        late = self.situation.spans and chosen.random() < share
        for _ in range(chosen.randint(1, SWITCHES)):
            last = order.segments[-1][0] if order.segments else TIME
            able = [actor for actor in actors if actor not in ended and actor != last]
            if not able:
                break
            actor = chosen.choice(able)
            left = [cut for cut in cuts[actor] if cut > made[actor]]
            if left:
                cut = chosen.choice(left)
                order, made[actor] = order.then(actor, cut - made[actor]), cut
            else:
                order = order.then(actor)
                ended.add(actor)
            if late and left:
                order, late = Order(order.segments, chosen.choice(self.situation.spans)).then(TIME, 1), False
        able = [actor for actor in actors if actor not in ended and actor != order.segments[-1][0]]
        return (order.then(chosen.choice(able)) if able else order).to_the_end(len(self.acts))

    def _told_of(self, played: Played) -> str:
        try:
            return self._judged(played)
        except Exception as error:
            return _described(error)

    def _judged(self, played: Played) -> str:
        """Returns what is broken now or at rest. The state decides what is broken at rest, so each state is checked
        once.
        """
        for ended in played.log.ended.values():
            if ended.error is not None and not refused(ended.error):
                return _described(ended.error)
        try:
            self._check_promises(played)
        except Exception as error:
            return _described(error)
        key = hash((fingerprint(self.world), repr([each.noted for each in played.log.ended.values()])))
        if key not in self._rested:
            try:
                self._come_to_rest(played)
                self._rested[key] = ""
            except Exception as error:
                self._rested[key] = _described(error)
        return self._rested[key]

    def _check_promises(self, played: Played) -> None:
        check_books(self.world, self._accepted)
        check_sent_once(played.log)
        self.situation.always(played)
        for actor, act in enumerate(self.acts):
            if played.log.ended[actor].error is None:
                act.promise(played, actor)

    def _come_to_rest(self, played: Played) -> None:
        if self.situation.awake and not any(act.ticks for act in self.acts):
            invariants.check_awake(self.world)
        self.situation.ended(played)
        self.world.settle()
        self._check_promises(played)
        self.situation.after(self.world)
        self.world.settle()
        self.situation.rest(self.world)
        self._check_promises(played)
        self.situation.check_rest(self.world)
        self.situation.finally_(played)

    def _pass_time(self, span: str) -> None:
        if span.startswith("~"):
            self.world.clock.pass_by(span[1:])
        else:
            self.world.pass_by(span[1:])
            self.world.tick()

    def search(self, most: int, seed: int, switches: int = SWITCHES, stop_at: int = STOP_AT) -> Found:
        """Try up to ``most`` orders, or all if there are fewer. At least one order per number of switches is tried."""
        found, chosen = Found(), random.Random(seed)
        seen: set[tuple[int, int]] = set()
        frontier = _without_switches(len(self.acts))
        for level in range(switches + 1):
            quota = max(1, (most - found.orders) // (switches + 1 - level))
            if len(frontier) > quota:
                found.whole = False
                frontier = chosen.sample(frontier, quota)
            later: list[Order] = []
            for order in frontier:
                answer, configurations = self.try_order(order.to_the_end(len(self.acts)), len(order.segments) - 1)
                found.orders += 1
                if answer:
                    found.broken.append((order.to_the_end(len(self.acts)), answer))
                    if len(found.broken) >= stop_at:
                        found.whole = False
                        return found
                if level < switches:
                    later += self._switched(order, configurations, seen)
            frontier = later
        return found

    def _switched(self, order: Order, configurations: list[int], seen: set[tuple[int, int]]) -> list[Order]:
        """The orders with one switch more: before each call of the last invocation, another one continues."""
        head, (last, _) = Order(order.segments[:-1], order.span), order.segments[-1]
        ended = {actor for actor, calls in head.segments if calls is None}
        made: list[Order] = []
        if any(actor not in ended | {last, TIME} for actor, _ in head.segments) and not order.has_time:
            # It has ended, and time passes while another invocation waits before a call.
            for span in self.situation.spans:
                late = Order(order.segments, span).then(TIME, 1)
                made += [late.then(other) for other in range(len(self.acts)) if other not in ended | {last}]
        for calls, configuration in enumerate(configurations):
            if calls == 0:
                continue  # equal to the order in which another invocation continues at the previous switch
            stopped = head.then(last, calls)
            for other in range(len(self.acts)):
                if other != last and other not in ended and (configuration, other) not in seen:
                    seen.add((configuration, other))
                    made.append(stopped.then(other))
            if order.has_time:
                continue
            for place, span in enumerate(self.situation.spans):
                if (configuration, -1 - place) not in seen:
                    seen.add((configuration, -1 - place))
                    late = Order(stopped.segments, span).then(TIME, 1)
                    made += [late.then(other) for other in range(len(self.acts)) if other not in ended]
        return made


class OfThread(MutableMapping[Any, Any]):
    """What a Lambda has cached: versions and allow-lists. Each invocation is another Lambda, so none saves a call of
    another one."""

    def __init__(self) -> None:
        self._of: dict[int, dict[Any, Any]] = {}

    @property
    def _own(self) -> dict[Any, Any]:
        return self._of.setdefault(threading.get_ident(), {})

    def __getitem__(self, key: Any) -> Any:
        return self._own[key]

    def __setitem__(self, key: Any, kept: Any) -> None:
        self._own[key] = kept

    def __delitem__(self, key: Any) -> None:
        del self._own[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def clear(self) -> None:
        """Forget what every Lambda has cached."""
        self._of.clear()


_alone: dict[tuple[int, str], list[Footprint]] = {}  # the calls of an act that meets no other one, by situation
_worlds: dict[int, tuple[Situation, World, Snapshot]] = {}


def _built(key: int, situation: Situation) -> tuple[World, Snapshot]:
    """The world of a situation, which its meetings share, and its snapshot."""
    if key not in _worlds:
        world = situation.world()
        vars(world.ports.rows).update(_fixed=OfThread())
        vars(world.ports.catalog).update(_lately=OfThread())
        _worlds[key] = situation, world, Snapshot(world)
    _, world, begin = _worlds[key]
    begin.restore()
    return world, begin


def _interleavings(order: Order) -> int:
    """In how many orders the calls of an order can be made."""
    calls: dict[int, int] = {}
    for actor, count in order.segments:
        calls[actor] = calls.get(actor, 0) + (count or 0)
    return factorial(sum(calls.values())) // prod(factorial(count) for count in calls.values())


def _without_switches(actors: int) -> list[Order]:
    """Each invocation first; of three, the other two behind it in both orders."""
    first = [Order(((actor, None),)) for actor in range(actors)]
    if actors < 3:
        return first
    return first + [Order(((one, None), (other, None))) for one, other in permutations(range(actors), 2)]


def _described(error: BaseException) -> str:
    if isinstance(error, ExceptionGroup):
        return "; ".join(_described(each) for each in error.exceptions)
    text = str(error).strip().splitlines()
    answer = text[0] if text else ""
    return f"{type(error).__name__}: {answer}" if not isinstance(error, SluiceError) else f"refused: {answer}"
