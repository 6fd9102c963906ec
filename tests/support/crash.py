"""Kills a Lambda right after its n-th effect on the world: every port that writes is wrapped, none is patched.

A kill loses what AWS would lose: the invocation. An S3 notification comes again (SQS). A hint and an EMR event do not,
because nothing depends on them; so only the sweep repairs the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.writes import Conflict, Put, Write
from tests.support.ledgers import LedgerBetween
from tests.support.world import World


class Crash(BaseException):
    """The process was killed. Not an Exception, so that no handler catches it."""


class CrashPoints:
    """Counts effects, kills after the one (or each of those) in ``die_after``, and remembers the kinds of effects.

    ``forms`` are the writes with their used options, such as ``ReleasePermit ended``. ``in_act`` is the number of
    effects before the recovery began.
    """

    def __init__(self) -> None:
        self.armed = False
        self.count = 0
        self.die_after: int | Sequence[int] | None = None
        self.names: list[str] = []
        self.forms: set[str] = set()
        self.in_act: int | None = None

    def effect(self, name: str) -> None:
        if not self.armed:
            return
        self.count += 1
        self.names.append(name)
        deadly = self.die_after if isinstance(self.die_after, Sequence) else (self.die_after,)
        if self.count in deadly:
            raise Crash(name)

    def writes(self, writes: Sequence[Write]) -> None:
        if self.armed:
            self.forms |= {form for write in writes for form in _forms(write)}

    def ends_act(self) -> None:
        self.in_act = self.count


class CrashingLedger(LedgerBetween):
    def __init__(self, inner: Any, points: CrashPoints) -> None:
        super().__init__(inner)
        self._points = points

    def after(self, writes: Sequence[Write], conflict: Conflict | None) -> None:
        if conflict is None:
            self._points.writes(writes)
            self._points.effect(f"commit({', '.join(_name(write) for write in writes)})")

    def count_closing(self, *closing: Any) -> None:
        self.inner.count_closing(*closing)
        self._points.effect("count_closing")

    def number(self, limit_name: str) -> int:
        number: int = self.inner.number(limit_name)
        self._points.effect("number")
        return number

    def put_all(self, writes: Sequence[Put]) -> None:
        self.inner.put_all(writes)
        self._points.writes(writes)
        self._points.effect(f"put_all({len(writes)} of {_name(writes[0]) if writes else 'nothing'})")


class Crashing:
    """Any other port: the named methods are effects, the rest passes through."""

    def __init__(self, inner: Any, points: CrashPoints, effects: tuple[str, ...]) -> None:
        self._inner, self._points, self._effects = inner, points, effects

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in self._effects:
            return method

        def call(*args: Any, **more: Any) -> Any:
            result = method(*args, **more)
            self._points.effect(name)
            return result

        return call


class CrashingTargets:
    def __init__(self, inner: Any, points: CrashPoints) -> None:
        self._inner, self._points = inner, points

    def of(self, kind: str, *role: Any) -> Any:
        return Crashing(self._inner.of(kind, *role), self._points, ("start", "start_many", "cancel"))

    def assume(self, kind: str, role: Any) -> Any:
        before = self._inner.sts.tries
        refused = self._inner.assume(kind, role)
        if self._inner.sts.tries > before:
            self._points.effect("assume")
        return refused

    def probe(self, target: Any, question: Any, *role: Any) -> Any:
        return self._inner.probe(target, question, *role)

    def measure(self, source: Any) -> Any:
        return self._inner.measure(source)

    def check(self, target: Any) -> None:
        self._inner.check(target)


EFFECTS = {
    *("commit", "put_all", "send", "send_all", "start", "start_many", "cancel", "assume"),
    *("put_context", "put_manifest", "put_data"),
}


def wrap(world: World) -> CrashPoints:
    """Wrap a world so that its Lambdas can be killed. Its fakes stay reachable as they were."""
    points = CrashPoints()
    world.ports = world.with_ports(
        ledger=CrashingLedger(world.ports.ledger, points),
        hints=Crashing(world.hints, points, ("send", "send_all")),
        targets=CrashingTargets(world.targets, points),
        payloads=Crashing(world.payloads, points, ("put_context", "put_manifest", "put_data")),
    )
    return points


_invocations: list[None] = []  # that run now, one in the other


@contextmanager
def _invoked() -> Iterator[None]:
    _invocations.append(None)
    try:
        yield
    finally:
        _invocations.pop()


def is_invoked() -> bool:
    """Whether an invocation or a request runs now, and not only the code of a test."""
    return bool(_invocations)


def lost(act: Callable[[], Any]) -> bool:
    """Run an invocation that nothing repeats. Returns True if it was killed, or failed because the tables did not
    answer.
    """
    try:
        with _invoked():
            act()
    except Crash:
        return True
    except Exception as error:
        if not is_unavailable(error):
            raise
        return True
    return False


def is_unavailable(error: BaseException) -> bool:
    """Whether an invocation failed only because the tables did not answer."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_unavailable(each) for each in error.exceptions)
    if isinstance(error, RuntimeError) and error.__cause__ is not None:  # a delivery that could not be recorded
        return is_unavailable(error.__cause__)
    return isinstance(error, SluiceError) and error.code == "unavailable"


@contextmanager
def done_before() -> Iterator[None]:
    """For a request that is repeated after its process was killed: it may be refused, because it was carried out."""
    try:
        yield
    except SluiceError as error:
        if is_unavailable(error):
            raise


def redelivered(act: Callable[[], Any]) -> None:
    """Run an invocation, again until it is not killed, as its queue does."""
    while lost(act):
        pass


def _forms(write: Any) -> list[str]:
    """A kind of write, and each of its options that is used."""
    kind = type(write).__name__
    options = ("over", "exact", "begins", "from_queue", "passing", "behind", "ended", "wake_at", "asked", "edition")
    return [kind, *(f"{kind} {option}" for option in options if getattr(write, option, None) not in (None, False))]


def _name(write: Any) -> str:
    row = getattr(write, "row", None)
    return f"{type(write).__name__}{f' {type(row).__name__}' if row is not None else ''}"
