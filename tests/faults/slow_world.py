"""A world in which every call takes time: a table call, a call of the control bucket, a start at a target.

One call may take a minute. In that time the rest of the system may continue, or the invocation may be killed. Hints
arrive at their instants, one invocation after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.targets.answers import Answer
from chalicelib.flow.system import dispatch
from tests.faults.memory_tables import QuickWorld
from tests.support.crash import lost

TABLE: Millis = 10
BUCKET: Millis = 30
START: Millis = 150


class SlowWorld(QuickWorld):
    """``calls`` counts the calls since `slow_down`. The call with the number ``at`` first calls ``surprise``, then
    takes ``slow`` ms more.
    """

    def __init__(self, **tuned: Any) -> None:
        super().__init__(**tuned)
        self.calls = 0
        self.at = -1
        self.slow: Millis = 0
        self.surprise: Callable[[], Any] = lambda: None
        self.started_at: list[Instant] = []

    def slow_down(self) -> None:
        """From now on calls take time."""
        self.calls = 0
        self.tables.before_call = lambda: self._takes(TABLE)
        self.ports = self.with_ports(payloads=_SlowPayloads(self), targets=_SlowTargets(self))

    def work(self, until: Instant, ticks: bool = False) -> None:
        """Let hints arrive at their instants until the given one. With ``ticks``, a tick comes every minute as well."""
        while True:
            now = self.clock.now()
            tick = (now // MINUTE + 1) * MINUTE if ticks else until
            due = min((due for due, _ in self.hints.sent), default=until)
            step = max(now, min(due, tick, until))
            if step >= until:
                self.clock.wait_until(until)
                return
            self.clock.wait_until(step)
            if step == tick:
                lost(self.tick_once)
            else:
                hint = min(self.hints.sent, key=lambda sent: sent[0])
                self.hints.sent.remove(hint)
                lost(lambda hint=hint: dispatch.dispatch(self.ports, hint[1]))

    def tick_once(self) -> None:
        from chalicelib.flow.fires import emit
        from chalicelib.flow.system import sweep

        emit.emit_due(self.ports)
        sweep.hint_soon(self.ports)
        sweep.sweep_all(self.ports)

    def _takes(self, span: Millis) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.at = -1  # calls of the surprise are not surprised again
            span += self.slow
            self.surprise()
        self.clock.wait_until(self.clock.now() + span)


class _SlowPayloads:
    def __init__(self, world: SlowWorld) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._world.payloads, name)

        def call(*args: Any) -> Any:
            if name in ("put_context", "put_manifest"):
                self._world._takes(BUCKET)
            return method(*args)

        return call


class _SlowTargets:
    """Targets that note the instant at which each start call begins, and take time to answer."""

    def __init__(self, world: SlowWorld) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.targets, name)

    def of(self, kind: str) -> Any:
        return _SlowTarget(self._world, self._world.targets.of(kind))


class _SlowTarget:
    def __init__(self, world: SlowWorld, inner: Any) -> None:
        self._world, self._inner = world, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def start(self, run: Any, context: Any) -> Answer:
        self._world.started_at.append(self._world.clock.now())
        answer: Answer = self._inner.start(run, context)
        self._world._takes(START)
        return answer
