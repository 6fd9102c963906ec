"""Plays one order of two or three invocations, of which one runs at a time.

Each invocation runs in its own thread. It stops before each of its calls: to the tables, to a target, to the payloads,
to send a hint, and to wait for an instant. The module uses threads, not greenlets: an order has few switches and
hundreds of calls, so switching takes one percent of its time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import Instant
from tests.faults.meetings.classes import Classes
from tests.faults.meetings.footprints import Recorder, Seen
from tests.faults.meetings.orders import TIME, Order, in_segments
from tests.support.snapshot import fingerprint
from tests.support.world import World

ENDLESS = 1_000_000
SQS_BATCH = 10  # entries of a SendMessageBatch: a batch of a target without a lifecycle is sent in so many calls
TABLE_CALLS = (
    "get_item",
    "batch_get_item",
    "batch_write_item",
    "put_item",
    "update_item",
    "delete_item",
    "transact_write_items",
    "query",
)
READS = ("get_item", "batch_get_item", "query")
TARGET_CALLS = ("start", "status", "status_many", "find", "cancel")
PAYLOAD_CALLS = ("put_context", "context", "put_manifest", "put_data", "put_deployment")
OUTSIDE = -1  # in the place of an invocation: the tick, the hints, and all later steps


@dataclass(frozen=True, slots=True)
class Sent:
    """A start call that was made: the invocation that made it, its number in the log, and its answer. ``calls`` is the
    number of calls of all invocations before it.
    """

    actor: int
    number: int
    run: Any
    answer: Any
    at: Instant
    calls: int = 0


@dataclass(slots=True)
class Ended:
    """An invocation that ended: its number in the log, its error, and what its act noted then."""

    number: int
    error: BaseException | None
    noted: Any = None
    calls: int = 0


@dataclass(slots=True)
class Log:
    """The events of an order that promises depend on. ``late`` is whether time passed between two calls."""

    number: int = 0
    sent: list[Sent] = field(default_factory=list)
    ended: dict[int, Ended] = field(default_factory=dict)
    called: list[tuple[int, str]] = field(default_factory=list)
    late: bool = False

    def next(self) -> int:
        self.number += 1
        return self.number

    def is_next(self, sent: Sent, ended: Ended) -> bool:
        """Whether the invocation that made the start call made no other call since that end."""
        between = self.called[ended.calls : sent.calls]
        return sum(actor == sent.actor for actor, _ in between) <= 1

    def has_read(self, sent: Sent, ended: Ended) -> bool:
        """Whether the invocation that made the start call read from the tables between that end and the call."""
        between = self.called[ended.calls : sent.calls]
        return any(actor == sent.actor and call in READS for actor, call in between)


class Actor:
    """An invocation that waits before its next call until `let` allows it."""

    def __init__(self, act: Callable[[], Any], note: Callable[[], Any], number: int, log: Log) -> None:
        self._act, self._note, self.number, self._log = act, note, number, log
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._allowance = 0
        self.made, self.answers, self.done = 0, 0, False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def let(self, calls: int) -> None:
        """Let the invocation make this many calls, or end."""
        if not self.done:
            self._allowance = calls
            self._go.release()
            self._stopped.acquire()

    def before_call(self) -> None:
        if self._allowance == 0:
            self._stopped.release()
            self._go.acquire()
        self._allowance -= 1
        self.made += 1

    def _run(self) -> None:
        self._go.acquire()
        error: BaseException | None = None
        noted: Any = None
        try:
            self._act()
            noted = self._note()
        except BaseException as raised:  # the log carries the error to the thread that plays the order
            error = raised
        number, calls = self._log.next(), len(self._log.called)
        self._log.ended[self.number] = Ended(number, error, noted, calls)
        self.done = True
        self._stopped.release()


class Stage:
    """A world in which invocations run in turn. ``seen`` gets the state of the world before each call of the watched
    one.
    """

    def __init__(self, world: World) -> None:
        self.world, self.log = world, Log()
        self._actors: dict[int | None, Actor] = {}
        self._inside = False
        self.watched: Actor | None = None
        self._recorder, self._records = Recorder(world), False
        self.seen: list[int] = []  # hash of the world and of all invocations before each call of the watched one

    def play(
        self,
        acts: Sequence[tuple[Callable[[], Any], Callable[[], Any]]],
        order: Order,
        watch_from: int | None,
        pass_time: Callable[[str], None],
    ) -> list[Actor]:
        """Carry out an order. ``watch_from`` is the index of the segment whose invocation is watched."""
        self.log, self.seen, self.watched = Log(), [], None
        actors = [
            Actor(act, lambda note=note: self._at_once(note), number, self.log)
            for number, (act, note) in enumerate(acts)
        ]
        self._actors = {actor.thread.ident: actor for actor in actors}
        with self._switching():
            for place, (number, calls) in enumerate(order.segments):
                if number == TIME:
                    self.log.late = True
                    pass_time(order.span)
                    continue
                self.watched = actors[number] if place == watch_from else None
                actors[number].let(ENDLESS if calls is None else calls)
            self.watched = None
            for actor in actors:
                actor.let(ENDLESS)
        return actors

    def play_by(
        self,
        acts: Sequence[tuple[Callable[[], Any], Callable[[], Any], Seen]],
        span: str,
        search: Classes,
        pass_time: Callable[[str], None],
    ) -> tuple[Order, bool]:
        """Let a search choose the invocation before each call. With a ``span``, this time passes once, when the search
        chooses the number behind those of the invocations. Returns the order, and whether it was played to its end.
        """
        self.log, self.watched, recorder = Log(), None, self._recorder
        actors = [
            Actor(act, lambda note=note: self._at_once(note), number, self.log)
            for number, (act, note, _) in enumerate(acts)
        ]
        self._actors = {actor.thread.ident: actor for actor in actors}
        left, made, chosen = {len(acts)} if span else set(), [], None
        with recorder.noting(), self._switching():
            recorder.begin()
            self._records = True
            while able := [actor.number for actor in actors if not actor.done] + sorted(left):
                chosen = search.choose(able)
                if chosen is None:
                    break
                if chosen in left:
                    left.clear()
                    self.log.late = True
                    pass_time(span)
                else:
                    actors[chosen].let(1)
                ends = chosen < len(acts) and actors[chosen].done
                search.made(chosen, recorder.end(acts[chosen][2] if ends else "nothing"))
                made.append(chosen)
            self._records = False
            for actor in actors:
                actor.let(ENDLESS)
        search.ended(chosen is not None)
        return in_segments(made, len(acts), span), chosen is not None

    def _step(self, what: str, call: Callable[[], Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._records and not self._inside:
            plain = call
            call = lambda: self._recorder.around(what, args, named, plain)  # noqa: E731
        actor = self._actors.get(threading.get_ident())
        if actor is None or self._inside:
            return call()
        if actor is self.watched:
            self.seen.append(self._configuration())
        actor.before_call()
        self._inside = True
        self.log.called.append((actor.number, what))
        try:
            answer = call()
        except Exception as error:
            actor.answers = hash((actor.answers, what, repr(error)))
            raise
        else:
            if not self._records:
                actor.answers = hash((actor.answers, what, self.world.clock.now(), repr(answer)))
            return answer
        finally:
            self._inside = False

    def _at_once(self, read: Callable[[], Any]) -> Any:
        """Evaluate a function on the world without a stop."""
        self._inside = True
        try:
            return read()
        finally:
            self._inside = False

    def _configuration(self) -> int:
        """Hash of all that decides what can follow: the world, and the answers that each invocation has received."""
        answers = tuple((actor.answers, actor.done) for actor in self._actors.values())
        return hash((fingerprint(self.world), answers))

    def starts(self, run: Any, call: Callable[[], Any]) -> Any:
        """Make a start call and log it, in an invocation or outside of one."""
        answer = call()
        actor = self._actors.get(threading.get_ident())
        number = OUTSIDE if actor is None else actor.number
        self.log.sent.append(Sent(number, self.log.next(), run, answer, self.world.clock.now(), len(self.log.called)))
        return answer

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Log start calls."""
        queue, emr = self.world.targets.queue, self.world.targets.emr
        for target in (queue, emr):
            plain = type(target).start.__get__(target)
            target.start = lambda run, context, plain=plain: self.starts(run, lambda: plain(run, context))
        try:
            yield
        finally:
            del queue.start, emr.start

    @contextmanager
    def _switching(self) -> Iterator[None]:
        world = self.world
        put: list[tuple[Any, str, Any]] = []

        def before(thing: Any, names: Sequence[str], kind: str) -> None:
            for name in names:
                method = getattr(thing, name)
                put.append((thing, name, vars(thing).get(name)))
                setattr(
                    thing,
                    name,
                    lambda *args, method=method, reported=f"{kind}.{name}", **named: self._step(
                        reported, lambda: method(*args, **named), args, named
                    ),
                )

        before(world.tables, TABLE_CALLS, "tables")
        before(world.hints, ("send",), "hints")
        before(world.payloads, PAYLOAD_CALLS, "payloads")
        before(world.clock, ("wait_until",), "clock")
        for name in ("emr", "queue"):
            target = getattr(world.targets, name)
            before(target, [each for each in TARGET_CALLS if hasattr(target, each)], name)
            put.append((target, "start_many", None))
            target.start_many = lambda calls, target=target, name=name: self._in_batches(target, name, calls)
        try:
            yield
        finally:
            for thing, name, old in reversed(put):
                if old is None:
                    delattr(thing, name)
                else:
                    setattr(thing, name, old)

    def _in_batches(self, target: Any, name: str, calls: Sequence[Any]) -> list[Any]:
        """As the real targets do: one call for each ten messages."""
        answers: list[Any] = []
        for start in range(0, len(calls), SQS_BATCH):
            part = calls[start : start + SQS_BATCH]
            answers += self._step(
                f"{name}.start_many", lambda part=part: [target.start(*call) for call in part], (), {}
            )
        return answers
