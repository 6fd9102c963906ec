"""The event loop of the service in one process: it delivers each hint at its instant, and a tick every minute.

The engine replaces SQS, the Lambda runtime and the schedule of the tick. All steps are those of the service. As there,
fires that are due together are prepared and leased before their instant (`in_flight`), a burst by several invocations,
and what is closed meanwhile shows in the count of closings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from chalicelib.aws.hints import longest_wait
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.instants import MINUTE, SECOND, Instant, duration, iso, parse_instant
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.kinds import TABLES, Key
from chalicelib.core.rows.ref import Ref
from chalicelib.core.runs.launch import CALL_LEASE
from chalicelib.core.system import bursts
from chalicelib.core.system.sweep import GRACE
from chalicelib.flow import shards
from chalicelib.flow.deliveries import prepare
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch, sweep
from chalicelib.flow.system.dispatch import Begun
from chalicelib.flow.system.sweep import NEXT_TICK
from chalicelib.ports import Ports, Targets
from chalicelib.settings import Settings
from sluice.testing.clock import HandClock
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryMetrics, MemoryPayloads
from sluice.testing.memory_tables import Item, MemoryTables

MAX_ROUNDS = 200
EVER: Instant = 253_370_764_800_000  # the year 9999, after all wakes
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

    @cached_property
    def in_flight(self) -> list[Begun]:
        """The deliveries that invocations have prepared and leased, and that wait for their instants."""
        return []

    def settle(self, invoke: Callable[[Act], Any] = lambda act: act()) -> None:
        """Handle every hint that is due, and the hints that result. Fires that are due together are prepared before
        their instant, as the handler of hints does. ``invoke`` replaces the Lambda runtime."""
        for _ in range(MAX_ROUNDS):
            now = self.clock.now()
            ended = [begun for begun in self.in_flight if begun.due <= now]
            self.in_flight[:] = [begun for begun in self.in_flight if begun.due > now]
            due = self.hints.due(now)
            early = {at: refs for at, refs in self._batches().items() if self._may_begin(at, refs) <= now}
            self.hints.sent = [hint for hint in self.hints.sent if hint[1] not in early.get(hint[0], ())]
            if not (ended or due or early):
                return
            # a Lambda whose clock is behind waits, as `dispatch_together` does
            self.ports.clock.wait_until(max((*due.values(), *(begun.due for begun in ended)), default=now))
            for ref in [*self._finish(ended, invoke), *self._handle_due(due, invoke)]:
                invoke(partial(dispatch.dispatch, self.ports, ref))
            for at, refs in early.items():
                for part in _parts(refs):
                    invoke(partial(self._begin, part, at))
        raise AssertionError(f"expected quiet within {MAX_ROUNDS} rounds of hints")

    def next_step(self, end: Instant) -> Instant:
        """The next instant after now, and at most ``end``, at which hints are handled."""
        now = self.clock.now()
        hinted = (at for at, _ in self.hints.sent)
        begins = (self._may_begin(at, refs) for at, refs in self._batches().items())
        steps = (*hinted, *begins, *(begun.due for begun in self.in_flight))
        return min((at for at in steps if now < at < end), default=end)

    def _batches(self) -> dict[Instant, list[Ref]]:
        """The fires that are hinted for a later instant together, by this instant."""
        now, found = self.clock.now(), dict[Instant, dict[Ref, None]]()
        for at, ref in self.hints.sent:
            if at > now and _is_fire(ref):
                found.setdefault(at, {})[ref] = None
        return {at: list(refs) for at, refs in found.items() if len(refs) >= prepare.MIN_BATCH}

    def _may_begin(self, due: Instant, refs: Sequence[Ref]) -> Instant:
        """The instant from which these fires may be prepared."""
        return due - longest_wait(len(refs))

    def _begin(self, refs: Sequence[Ref], due: Instant) -> None:
        self.in_flight.append(dispatch.begin(self.ports, refs, due))

    def _finish(self, ended: Sequence[Begun], invoke: Callable[[Act], Any]) -> list[Ref]:
        """Deliver what was prepared. Returns the refs to handle one by one."""
        left: list[Ref] = []

        def deliver(begun: Begun) -> None:
            left.extend(dispatch.finish(self.ports, begun)[0])

        for begun in ended:
            invoke(partial(deliver, begun))
        return left

    def _handle_due(self, due: Mapping[Ref, Instant], invoke: Callable[[Act], Any]) -> list[Ref]:
        """Handle the fires among these refs together, as one Lambda does, and the timers in another. Returns the refs
        to handle one by one."""
        timers = [ref for ref in due if ref.kind == "fires"]
        fires: dict[Instant, list[Ref]] = {}
        for ref, at in due.items():
            if _is_fire(ref):
                fires.setdefault(at, []).append(ref)
        left = [ref for ref in due if not (ref.kind == "fires" or _is_fire(ref))]

        def deliver(part: Sequence[Ref], at: Instant) -> None:
            left.extend(dispatch.finish(self.ports, dispatch.begin(self.ports, part, at))[0])

        if timers:
            invoke(partial(dispatch.dispatch_together, self.ports, timers, self.clock.now()))
        for at, refs in fires.items():
            for part in _parts(refs):
                invoke(partial(deliver, part, at))
        return left

    def tick(self) -> None:
        ports = shards.read_once(self.ports)
        emit.emit_due(ports)
        sweep.hint_soon(ports)
        sweep.sweep_all(ports)
        self.settle()

    def pass_by(self, span: str) -> None:
        """Move the clock by a span. Each hint arrives at its instant, in order, and a tick comes every minute."""
        self.pass_until(self.clock.now() + duration(span))

    def pass_until(self, end: Instant, work_from: Callable[[], Instant] | None = None) -> None:
        """Move the clock to an instant. ``work_from`` returns the instant from which a tick finds work (`next_work`);
        the engine leaves out the ticks before it. Without it, a tick comes every minute."""
        while True:
            now = self.clock.now()
            next_tick = (max(now + 1, work_from() if work_from is not None else 0) + MINUTE - 1) // MINUTE * MINUTE
            step = min(next_tick, self.next_step(end))
            self.clock.wait_until(step)
            self.settle()
            if step == next_tick:
                self.tick()
            if step == end:
                return


def next_work(tables: MemoryTables, settings: Settings) -> Instant:
    """The instant from which a tick finds work, computed from the rows of the wake indexes; `EVER` if there are none.
    Each earlier tick would change nothing."""
    rows = list(tables.waking())
    if not rows:
        return EVER
    horizon = settings.horizon_seconds * SECOND
    # A tick finds a row `GRACE` after its ``wake_at`` at the latest, and ``horizon`` before it at the earliest.
    last = iso(parse_instant(min(row["wake_at"]["S"] for _, row in rows)) + GRACE + horizon)
    return min(_found_from(table, row, settings) for table, row in rows if row["wake_at"]["S"] <= last)


def _found_from(table: str, row: Item, settings: Settings) -> Instant:
    """The instant from which a tick finds a row: before its ``wake_at`` if it is hinted ahead, else once it is
    overdue."""
    wake_at, names = (
        parse_instant(row["wake_at"]["S"]),
        (settings.catalog_table, settings.jobs_table, settings.runs_table),
    )
    ref = kinds.ref_of(Key(TABLES[names.index(table)], row["pk"]["S"], row["sk"]["S"]))
    match ref.kind if ref is not None else None:
        case "timer":
            return wake_at - settings.horizon_seconds * SECOND
        case "job" if not sort_keys.is_fire(row["sk"]["S"]):
            return wake_at - NEXT_TICK
        case "run" if "lease_until" in row:
            return wake_at - CALL_LEASE
    return wake_at + GRACE


def _is_fire(ref: Ref) -> bool:
    return ref.kind == "job" and sort_keys.may_be_fire(ref.parts[2])


def _parts(refs: Sequence[Ref]) -> list[Sequence[Ref]]:
    """The refs of each invocation: a burst is divided among several."""
    size = bursts.rows_of_each(len(refs), len(refs)) if len(refs) >= bursts.BURST else len(refs)
    return [refs[start : start + size] for start in range(0, len(refs), size)]
