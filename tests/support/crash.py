"""A Lambda that dies right after its n-th effect on the world: every port that writes is wrapped, none is patched.

What a crash loses is what AWS would lose: the invocation. An S3 notification comes again (SQS), a hint and an EMR
event do not (they promise nothing), so recovery is the work of the sweep alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.writes import Conflict, Put, Write
from tests.support.ledgers import LedgerBetween
from tests.support.world import World


class Crash(BaseException):
    """The process is gone. Not an Exception, so that no handler can take it for one."""


class CrashPoints:
    """Counts effects, dies after the one (or each of those) it is armed for, and remembers the kinds it saw.

    ``forms`` are the writes and the ways in which they were used, such as ``ReleasePermit ended``. ``in_act`` is how
    many effects there were until the recovery began.
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

        def call(*args: Any) -> Any:
            result = method(*args)
            self._points.effect(name)
            return result

        return call


class CrashingTargets:
    def __init__(self, inner: Any, points: CrashPoints) -> None:
        self._inner, self._points = inner, points

    def of(self, kind: str) -> Any:
        return Crashing(self._inner.of(kind), self._points, ("start", "start_many", "cancel"))

    def probe(self, target: Any, question: Any) -> Any:
        return self._inner.probe(target, question)

    def measure(self, source: Any) -> Any:
        return self._inner.measure(source)


EFFECTS = {
    *("commit", "put_all", "send", "send_all", "start", "start_many", "cancel"),
    *("put_context", "put_manifest", "put_data"),
}


def wrap(world: World) -> CrashPoints:
    """Make a world in which a Lambda can die. Its fakes stay reachable as they were."""
    points = CrashPoints()
    world.ports = world.with_ports(
        ledger=CrashingLedger(world.ports.ledger, points),
        hints=Crashing(world.hints, points, ("send", "send_all")),
        targets=CrashingTargets(world.targets, points),
        payloads=Crashing(world.payloads, points, ("put_context", "put_manifest", "put_data")),
    )
    return points


def lost(act: Callable[[], Any]) -> bool:
    """An invocation that nobody repeats. True if it died, or gave up because the tables did not answer."""
    try:
        act()
    except Crash:
        return True
    except Exception as error:
        if not is_unavailable(error):
            raise
        return True
    return False


def is_unavailable(error: BaseException) -> bool:
    """Whether an invocation failed for nothing but tables that did not answer."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_unavailable(each) for each in error.exceptions)
    return isinstance(error, SluiceError) and error.code == "unavailable"


def redelivered(act: Callable[[], Any]) -> None:
    """An invocation that its queue repeats until it comes through."""
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
