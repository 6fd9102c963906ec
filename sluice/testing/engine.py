"""The event loop of the service in one process: it delivers each hint at its instant, and a tick every minute.

The engine replaces SQS, the Lambda runtime and the schedule of the tick. All steps are those of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.instants import MINUTE, Instant, duration
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.ref import Ref, is_of_fires
from chalicelib.flow import shards
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs import batch, deliver, joining
from chalicelib.flow.system import dispatch, sweep
from chalicelib.ports import Ports, Targets
from chalicelib.settings import Settings
from sluice.testing.clock import HandClock
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryMetrics, MemoryPayloads

MAX_ROUNDS = 200
Act = Callable[[], Any]


def stopwatch() -> Patience:
    """The retries of table calls, without real pauses; each pause counts toward their time limit."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    return Patience(now=lambda: passed[0], sleep=sleep, draw=lambda least, most: most)


def make_ports(
    dynamo: Dynamo,
    settings: Settings,
    clock: HandClock,
    hints: MemoryHints,
    targets: Targets,
    payloads: MemoryPayloads,
    lake: MemoryLake,
    metrics: MemoryMetrics,
) -> Ports:
    """The ports of the service on these tables, with external systems in memory."""
    return Ports(
        clock=clock,
        ledger=dynamo,
        **table_ports(dynamo),
        hints=hints,
        targets=targets,
        payloads=payloads,
        lake=lake,
        settings=settings,
        metrics=metrics,
    )


class Engine:
    """Moves the clock, and calls the steps of the service. A subclass sets the ports, the clock and the hints."""

    ports: Ports
    clock: HandClock
    hints: MemoryHints

    def settle(self, invoke: Callable[[Act], Any] = lambda act: act()) -> None:
        """Handle every hint that is due, and the hints that result. ``invoke`` replaces the Lambda runtime."""
        for _ in range(MAX_ROUNDS):
            now = self.clock.now()
            latest = max((due for due, _ in self.hints.sent if due <= now), default=now)
            due = self.hints.due(now)
            if not due:
                return
            self.ports.clock.wait_until(latest)  # a Lambda whose clock is behind waits, as `dispatch_together` does
            for ref in self._handle_fires(due, invoke):
                invoke(partial(dispatch.dispatch, self.ports, ref))
        raise AssertionError(f"expected quiet within {MAX_ROUNDS} rounds of hints")

    def _handle_fires(self, due: list[Ref], invoke: Callable[[Act], Any]) -> list[Ref]:
        """Handle the fires among these refs in one batch, as one Lambda does, and the timers in another. Returns the
        refs to handle one by one."""
        timers = [ref for ref in due if is_of_fires(ref)]
        fires = [ref for ref in due if ref.kind == "job" and sort_keys.may_be_fire(ref.parts[2])]
        in_batches = {*fires, *timers}
        left = [ref for ref in due if ref not in in_batches]

        def together() -> None:
            now = self.clock.now()
            ready = batch.prepare(self.ports, fires, now)
            sent = deliver.send(self.ports, deliver.lease(self.ports, ready.ready, now))
            left.extend([*ready.others, *joining.join(self.ports, ready.joining), *sent.changed])

        if timers:
            invoke(partial(dispatch.dispatch_together, self.ports, timers, self.clock.now()))
        if fires:
            invoke(together)
        return left

    def tick(self) -> None:
        ports = shards.read_once(self.ports)
        emit.emit_due(ports)
        sweep.hint_soon(ports)
        sweep.sweep_all(ports)
        self.settle()

    def pass_by(self, span: str) -> None:
        """Move the clock by a span. Each hint arrives at its instant, in order, and a tick comes every minute."""
        self.pass_until(self.clock.now() + duration(span), lambda tick: tick)

    def pass_until(self, end: Instant, busy_from: Callable[[Instant], Instant]) -> None:
        """Move the clock to an instant. ``busy_from`` takes the next tick and returns the first tick that may find
        work; the engine leaves out the ticks before it."""
        while True:
            now = self.clock.now()
            next_tick = busy_from((now // MINUTE + 1) * MINUTE)
            next_hint = min((due for due, _ in self.hints.sent if due > now), default=end)
            step = min(end, next_tick, next_hint)
            self.clock.wait_until(step)
            self.settle()
            if step == next_tick:
                self.tick()
            if step == end:
                return
