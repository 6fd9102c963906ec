"""An action of another machine before a call of a flow: the tests of crossings try each call in turn.

start = Start(build)

def play(before: int | None) -> int:
    world = start.again()
    calls = cross(world, before, act, flow)
    ...  # what must hold
    return calls

at_each_call(play, least=15)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core.rows.kinds import Key, Stamp
from chalicelib.ports import Ports
from tests.support import idle
from tests.support.world import World


def at_each_call(play: Callable[[int | None], int], least: int, first: int = 1, stride: int = 1) -> int:
    """Play with the action after all calls of the flow, then before each call, or before every ``stride``-th call from
    ``first`` on. ``play`` returns the number of calls of the flow. There must be at least ``least``.
    """
    calls = play(None)
    for before in range(first, calls + 1, stride):
        try:
            play(before)
        except AssertionError as error:
            raise AssertionError(f"before call {before} of {calls}: {error}") from error
    assert calls >= least
    return calls


def cross(world: World, before: int | None, act: Callable[[], Any], flow: Callable[[], Any]) -> int:
    """Run a flow. Before its call with this number, or after the flow if there is none, the action runs, as on another
    machine. Its own calls are not counted. Returns the number of calls of the flow.
    """
    plain = world.ports

    def acting() -> None:
        crossed, world.ports = world.ports, plain
        act()
        world.ports = crossed

    cut = Cut(before, acting)
    world.ports = _cut(plain, cut)
    flow()
    world.ports = plain
    if before is None:
        act()
    return cut.count


def calls_on_record(world: World, *schedules: str) -> set[str]:
    """The names of the runs of these schedules that a start call was made for, or is on record for."""
    recorded = {run.request.name for name in schedules for run in world.runs(name) if run.calls > 0}
    return recorded | set(world.targets.emr.calls)


class Cut:
    """Counts the calls that a flow makes, and calls a function before the n-th."""

    def __init__(self, before: int | None, act: Callable[[], None]) -> None:
        self.count, self._before, self._act = 0, before, act

    def crossing(self, call: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count == self._before:
            self._act()
        return call()


class CutPort:
    """Wraps a port, so that each of its calls passes the cut."""

    def __init__(self, inner: Any, cut: Cut) -> None:
        self._inner, self._cut = inner, cut

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return lambda *args, **named: self._cut.crossing(lambda: method(*args, **named))


class CutTargets:
    def __init__(self, inner: Any, cut: Cut) -> None:
        self._inner, self._cut = inner, cut

    def of(self, kind: str, *role: Any) -> Any:
        return CutPort(self._inner.of(kind, *role), self._cut)

    def assume(self, kind: str, role: Any) -> Any:
        return self._cut.crossing(lambda: self._inner.assume(kind, role))

    def check(self, target: Any) -> None:
        self._inner.check(target)


class CutAhead:
    """Rows that are read together: one call; later reads of them need none."""

    def __init__(self, plain: Ports, cut: Cut) -> None:
        self._plain, self._cut = plain, cut

    def read(self, _: Ports, wanted: Sequence[Key], strong: bool = True) -> Ports:
        return _cut(self._cut.crossing(lambda: self._plain.prefetch.read(self._plain, wanted, strong)), self._cut)

    def stamps(self, wanted: Sequence[Key]) -> Mapping[Key, Stamp]:
        return self._cut.crossing(lambda: self._plain.prefetch.stamps(wanted))


def _cut(plain: Ports, cut: Cut) -> Ports:
    """The ports, with a cut before each call of a table or a target."""
    return replace(
        plain,
        ledger=CutPort(plain.ledger, cut),
        rows=CutPort(plain.rows, cut),
        catalog=CutPort(plain.catalog, cut),
        jobs=CutPort(plain.jobs, cut),
        runs=CutPort(plain.runs, cut),
        targets=CutTargets(plain.targets, cut),
        prefetch=CutAhead(plain, cut),
    )


def let_time_pass(world: World, finishing: bool = False) -> None:
    """Let 44 minutes pass, in four ticks. With ``finishing``, runs that are active after a tick succeed."""
    for _ in range(4):
        world.clock.pass_by("11m")
        idle.tick(world)
        if finishing:
            world.finish()
            world.settle()
