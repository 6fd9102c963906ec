"""Makes every call of a world take time: a table call, a call of the control bucket, a start at a target.

One call may take a minute. In that time the rest of the system may continue, or the invocation may be killed. Hints
arrive at their instants, one invocation after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.targets.answers import Answer
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch, sweep
from tests.support.crash import lost
from tests.support.world import World

TABLE: Millis = 10
BUCKET: Millis = 30
START: Millis = 150


class SlowCalls:
    """The calls of a world take time from now on. ``calls`` counts them. The call with the number ``at`` first calls
    ``surprise``, then takes ``slow`` ms more.
    """

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.calls = 0
        self.at = -1
        self.slow: Millis = 0
        self.surprise: Callable[[], Any] = lambda: None
        self.started_at: list[Instant] = []
        world.tables.before_call = lambda: self.takes(TABLE)
        world.ports = world.with_ports(payloads=_SlowPayloads(self), targets=_SlowTargets(self))

    def work(self, until: Instant, ticks: bool = False) -> None:
        """Let hints arrive at their instants until the given one. With ``ticks``, a tick comes every minute as well."""
        hints = self.world.hints
        while True:
            now = self.clock.now()
            tick = (now // MINUTE + 1) * MINUTE if ticks else until
            due = min((due for due, _ in hints.sent), default=until)
            step = max(now, min(due, tick, until))
            if step >= until:
                self.clock.wait_until(until)
                return
            self.clock.wait_until(step)
            if step == tick:
                lost(lambda: tick_once(self.world))
            else:
                hint = min(hints.sent, key=lambda sent: sent[0])
                hints.sent.remove(hint)
                lost(lambda hint=hint: dispatch.dispatch(self.world.ports, hint[1]))

    def takes(self, span: Millis) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.at = -1  # calls of the surprise are not surprised again
            span += self.slow
            self.surprise()
        self.clock.wait_until(self.clock.now() + span)


def tick_once(world: World) -> None:
    """The tick, without the hints that it sends."""
    emit.emit_due(world.ports)
    sweep.hint_soon(world.ports)
    sweep.sweep_all(world.ports)


class _SlowPayloads:
    def __init__(self, slow: SlowCalls) -> None:
        self._slow = slow

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._slow.world.payloads, name)

        def call(*args: Any) -> Any:
            if name in ("put_context", "put_manifest"):
                self._slow.takes(BUCKET)
            return method(*args)

        return call


class _SlowTargets:
    """Targets that note the instant at which each start call begins, and take time to answer."""

    def __init__(self, slow: SlowCalls) -> None:
        self._slow = slow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slow.world.targets, name)

    def of(self, kind: str, *role: Any) -> Any:
        return _SlowTarget(self._slow, self._slow.world.targets.of(kind, *role))


class _SlowTarget:
    def __init__(self, slow: SlowCalls, inner: Any) -> None:
        self._slow, self._inner = slow, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def start(self, run: Any, context: Any) -> Answer:
        self._slow.started_at.append(self._slow.clock.now())
        answer: Answer = self._inner.start(run, context)
        self._slow.takes(START)
        return answer

    def start_many(self, calls: Any) -> list[Answer]:
        """One call for all of them, as to a queue that takes batches."""
        self._slow.started_at += [self._slow.clock.now()] * len(calls)
        answers: list[Answer] = self._inner.start_many(calls)
        self._slow.takes(START)
        return answers
