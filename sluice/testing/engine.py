"""The event loop of the service in one process: hints arrive at their instants, a tick comes every minute.

It stands for SQS, the Lambda runtime and the schedule of the tick. All steps are those of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chalicelib.aws.tables.catalog import DynamoCatalog
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.prefetch import DynamoPrefetch
from chalicelib.aws.tables.runs import DynamoRuns, DynamoWakes
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.instants import MINUTE, Instant, duration
from chalicelib.core.rows.ref import Ref
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs import batch, deliver
from chalicelib.flow.system import dispatch, sweep
from chalicelib.ports import Ports, Targets
from chalicelib.settings import Settings
from sluice.testing.clock import HandClock
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryMetrics, MemoryPayloads

MAX_ROUNDS = 200
Act = Callable[[], Any]


def stopwatch() -> Patience:
    """Retries of table calls that take no time, and come to their end all the same."""
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
    """The ports of the service on these tables, with the outside in memory."""
    return Ports(
        clock=clock,
        ledger=dynamo,
        catalog=DynamoCatalog(dynamo),
        jobs=DynamoJobs(dynamo),
        runs=DynamoRuns(dynamo),
        wakes=DynamoWakes(dynamo),
        hints=hints,
        targets=targets,
        payloads=payloads,
        lake=lake,
        settings=settings,
        prefetch=DynamoPrefetch(dynamo),
        metrics=metrics,
    )


class Engine:
    """What time does to the service. A subclass sets the ports, the clock and the hints."""

    ports: Ports
    clock: HandClock
    hints: MemoryHints

    def settle(self, invoke: Callable[[Act], Any] = lambda act: act()) -> None:
        """Let every hint that is due arrive, and those that these bring about. ``invoke`` plays the Lambda runtime."""
        for _ in range(MAX_ROUNDS):
            now = self.clock.now()
            latest = max((due for due, _ in self.hints.sent if due <= now), default=now)
            due = self.hints.due(now)
            if not due:
                return
            self.ports.clock.wait_until(latest)  # a Lambda whose clock is behind waits, as `dispatch_together` does
            for ref in self._crowd(due, invoke):
                invoke(partial(dispatch.dispatch, self.ports, ref))
        raise AssertionError(f"expected quiet within {MAX_ROUNDS} rounds of hints")

    def _crowd(self, due: list[Ref], invoke: Callable[[Act], Any]) -> list[Ref]:
        """Fires that are due together are attended to together, as in one Lambda. Returns what is left to do singly."""
        left = [ref for ref in due if ref.kind != "job" or not ref.parts[2].startswith("FIRE#")]
        fires = [ref for ref in due if ref not in left]

        def together() -> None:
            now = self.clock.now()
            ready = batch.prepare(self.ports, fires, now)
            sent = deliver.send(self.ports, deliver.lease(self.ports, ready.ready, now))
            left.extend([*ready.others, *sent.changed])

        if fires:
            invoke(together)
        return left

    def tick(self) -> None:
        emit.emit_due(self.ports)
        sweep.hint_soon(self.ports)
        sweep.sweep_all(self.ports)
        self.settle()

    def pass_by(self, span: str) -> None:
        """Turn the clock by a span, second-true: hints arrive in order at their instants, a tick comes every minute."""
        self.pass_until(self.clock.now() + duration(span), lambda tick: tick)

    def pass_until(self, end: Instant, busy_from: Callable[[Instant], Instant]) -> None:
        """Turn the clock to an instant. ``busy_from`` says, given the next tick, at which tick work may wait; the
        ticks before that one are left out."""
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
