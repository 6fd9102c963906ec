"""emit: timers that come due become schedule events, written ahead of their instant and hinted for it.

Timers are looked at a hundred together: their rows in one read, the events of all in one batch, the hints of an instant
in one message. Whatever is not plain goes through `emit_timer`, which does the same for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import lifetime
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.timer import Emission
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of, timer_ref
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.writes import ExpectMode, Put, Replace, Write
from chalicelib.flow.each import run_each
from chalicelib.log import logger
from chalicelib.ports import Ports, RowRequest

# How long one tick goes through timers. The rest, which are those due last, is the next tick's; each is prepared a
# minute ahead, so none is late by that.
MAX_ROUND: Millis = 40 * SECOND
# How many portions of one timer are prepared in one go. What is left is hinted at once, for another Lambda to go on.
MAX_PORTIONS = 10
BATCH_SIZE = 100  # timers that are read together
# Timers of one round from which on several are moved in one transaction. It costs a write unit more for each, and saves
# a call: a tick with so many has more need of time than of units.
MANY_TIMERS = 500
MAX_MOVES = 25  # timers to a transaction, with what else their moving writes
# Hints are gathered over the timers of a tick, so that those for one instant travel together, and sent when they are
# many or their instant is near: a crowd takes seconds to be prepared.
MAX_KEPT, SOON = 5_000, 20 * SECOND


@dataclass(frozen=True, slots=True)
class TimerStep:
    """What one look at a timer makes of it: events to write, the plan that moves it on, and when it is looked at
    again before the tick would."""

    schedule: str
    emission: Emission | None = None
    plan: tuple[Write, ...] = ()
    again: Instant | None = None

    @property
    def fires(self) -> tuple[Job, ...]:
        return self.emission.fires if self.emission else ()


@dataclass
class Hints:
    """Hints of a round, by their instant."""

    ports: Ports
    kept: list[tuple[Instant, Ref]] = field(default_factory=list)

    def keep(self, steps: Iterable[TimerStep], now: Instant) -> None:
        for step in steps:
            self.kept += [(fire.due_at or now, ref_of(fire)) for fire in step.fires]
            if step.again is not None and step.again <= now + self.ports.settings.horizon_seconds * SECOND:
                self.kept.append((max(step.again, now), timer_ref(step.schedule)))
        now = self.ports.clock.now()
        if len(self.kept) >= MAX_KEPT:
            self.flush(now, patient=True)
        soon = [hint for hint in self.kept if hint[0] <= now + SOON]
        if soon:
            self.kept = [hint for hint in self.kept if hint[0] > now + SOON]
            self._send(soon, now)

    def flush(self, now: Instant, patient: bool = False) -> None:
        """Send what was kept. ``patient``: nobody waits for an answer, so they may be sent at the best moment."""
        kept, self.kept = self.kept, []
        self._send(kept, now, patient)

    def _send(self, hints: list[tuple[Instant, Ref]], now: Instant, patient: bool = False) -> None:
        """One per due instant, for the receiver of a hint waits only if all of it is due together."""
        groups = groupby(sorted(hints, key=lambda hint: hint[0]), key=lambda hint: hint[0])
        told = [(due, [ref for _, ref in group]) for due, group in groups]
        if told:
            self.ports.hints.send_all(told, now, patient)


def emit_due(ports: Ports) -> int:
    """Prepare the fires of all timers due before the horizon. Several emitters at once are harmless (E1).

    Returns how many timers were looked at; one that fails keeps no other from its fires.
    """
    now = ports.clock.now()
    horizon = now + ports.settings.horizon_seconds * SECOND
    hints, seen_timers = Hints(ports), 0
    failed: list[Exception] = []
    timers = _due_timers(ports, now, horizon)
    while part := [timer.parts[0] for timer in islice(timers, BATCH_SIZE)]:
        try:
            _round(ports, part, now, horizon, hints, many=seen_timers >= MANY_TIMERS)
        except Exception:  # each by itself then, and whoever caused it fails alone
            logger.exception("round failed", extra={"timers": len(part)})
            failed += _one_by_one(ports, part, now, horizon)
        seen_timers += len(part)
    hints.flush(ports.clock.now(), patient=True)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {seen_timers} timers failed", failed)
    return seen_timers


def emit_soon(ports: Ports, schedule: str) -> int:
    """The same for one schedule, for whatever begins within the horizon that the last tick has covered (E4)."""
    now = ports.clock.now()
    return emit_timer(ports, schedule, now, now + ports.settings.horizon_seconds * SECOND)


def emit_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> int:
    """Write the fires of one timer, hint them, move the timer on, portion by portion. Returns how many events it made.
    A crash in between repeats the same ids."""
    hints = Hints(ports)
    try:
        made, more = _portions(ports, schedule, now, horizon, hints)
    finally:
        hints.flush(ports.clock.now())
    if more:
        ports.hints.send([timer_ref(schedule)], now, now)
    return made


def _portions(ports: Ports, schedule: str, now: Instant, horizon: Instant, hints: Hints) -> tuple[int, bool]:
    """As many portions as one go may take: how many events they made, and whether more of them are left."""
    made = 0
    for _ in range(MAX_PORTIONS):
        step = _plan_timer(ports, schedule, now, horizon)
        if step is None:
            return made, False
        made += len(step.fires)
        moved = _carry_out(ports, [step], now, hints)
        if not moved or step.emission is None or not step.emission.more:
            return made, False
    return made, True


def _round(
    ports: Ports, schedules: Sequence[str], now: Instant, horizon: Instant, hints: Hints, many: bool
) -> None:  # fmt: skip
    wanted: list[RowRequest] = [(kind, name) for name in schedules for kind in ("timer", "schedule_state")]
    seen = ports.prefetch.read(ports, wanted)
    timers = {name: timer for name in schedules if (timer := seen.catalog.timer(name)) is not None}
    seen = seen.prefetch.read(seen, [("version", name, timer.version) for name, timer in timers.items()])
    steps = [step for name in timers if (step := _plan_timer(seen, name, now, horizon)) is not None]
    moved = _carry_out(ports, steps, now, hints, many)
    more = [step.schedule for step in moved if step.emission is not None and step.emission.more]
    run_each(more, lambda name: emit_timer(ports, name, now, horizon))


def _one_by_one(ports: Ports, schedules: Sequence[str], now: Instant, horizon: Instant) -> list[Exception]:
    try:
        run_each(schedules, lambda name: emit_timer(ports, name, now, horizon))
    except ExceptionGroup as group:
        return list(group.exceptions)
    return []


def _due_timers(ports: Ports, now: Instant, horizon: Instant) -> Iterator[Ref]:
    """Oldest first, read page by page while they are worked through."""
    for ref in ports.wakes.each_overdue("catalog", horizon):
        if ref.kind == "timer":
            yield ref
        if ports.clock.now() - now > MAX_ROUND:
            logger.warning("tick full", extra={"hint": "the next tick goes on; timers are many, or tables slow"})
            return


def _plan_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> TimerStep | None:
    """One bounded look at a timer; None if there is nothing to prepare."""
    timer, schedule_state = ports.catalog.timer(schedule), ports.catalog.schedule_state(schedule)
    version = ports.catalog.version(schedule, timer.version) if timer else None
    if timer is None or schedule_state is None or version is None or schedule_state.generation != timer.generation:
        return None
    definition = Schedule.model_validate(version.definition)
    if schedule_state.mode == "enabled" and lifetime.is_used_up(timer, definition):
        # Its repeats ended while it was paused, or before it began.
        return _moved(TimerStep(schedule), replace(timer, rev=timer.rev + 1), definition, schedule_state, now, now)
    if timer.wake_at is None or timer.wake_at >= horizon:
        return None
    emission = fire_timer.emit(timer, definition, now, horizon) if schedule_state.mode in GATHERING_MODES else None
    if emission is None or not (emission.fires or emission.skipped):
        ends = lifetime.decide(schedule_state, timer, definition, max(now, timer.wake_at)) is not None
        return TimerStep(schedule, again=timer.wake_at) if ends else None
    last_due = max((fire.due_at or now for fire in emission.fires), default=now)
    return _moved(TimerStep(schedule, emission), emission.timer, definition, schedule_state, now, last_due)


def _moved(
    step: TimerStep, timer: Timer, schedule: Schedule, schedule_state: ScheduleState, now: Instant, last_due: Instant
) -> TimerStep:
    """The timer as it stands after a look, in one transaction with what was skipped and, after the last fire, the end
    of its schedule."""
    plan: list[Write] = [*map(Put, step.emission.skipped)] if step.emission else []
    again: Instant | None = None
    if lifetime.is_used_up(timer, schedule):
        # A pause is not ended by that; the gate is asked for, so that whoever resumes finds the timer used up.
        enabled = schedule_state.mode == "enabled"
        plan += (
            lifecycle.complete(schedule_state, now)[1]
            if enabled
            else [ExpectMode(schedule_state, (schedule_state.mode,))]
        )
        timer = lifetime.completed(timer, schedule, last_due) if enabled else timer
        again = timer.wake_at
    return replace(step, plan=(Replace(timer), *plan), again=again)


def _carry_out(
    ports: Ports, steps: Sequence[TimerStep], now: Instant, hints: Hints, many: bool = False
) -> list[TimerStep]:
    """Write the events of all, move the timers on, hint. Returns the looks whose timers were moved: any other has
    been moved by another emitter, which did the same, or its schedule has changed. Who moves a timer hints its fires,
    and nobody else: two hints of a crowd would be two deliveries of each."""
    fires = [fire for step in steps for fire in step.fires]
    if fires:
        ports.ledger.put_all([*map(Put, fires)])
    moved = [step for group in _groups(steps, many) for step in _commit(ports, group)]
    mine = {step.schedule for step in moved}
    hints.keep([step for step in steps if step.schedule in mine or not step.plan], now)
    for step in steps:
        _log_skipped(step)
    return moved


def _groups(steps: Sequence[TimerStep], many: bool) -> Iterator[list[TimerStep]]:
    """Which timers are moved together: where they are many, and where a transaction is needed all the same."""
    planned = [step for step in steps if step.plan]
    alone = [] if many else [step for step in planned if len(step.plan) == 1]
    together = [step for step in planned if step not in alone]
    yield from ([step] for step in alone)
    for start in range(0, len(together), MAX_MOVES):
        yield together[start : start + MAX_MOVES]


def _commit(ports: Ports, steps: list[TimerStep]) -> list[TimerStep]:
    """Move timers in one transaction; those that are refused are left out, and the rest is moved without them."""
    while steps:
        refused = ports.ledger.commit([write for step in steps for write in step.plan])
        if refused is None:
            return steps
        steps = [step for step in steps if not any(write in refused.writes for write in step.plan)]
    return []


def _log_skipped(step: TimerStep) -> None:
    for record in step.emission.skipped if step.emission else ():
        told = {"schedule": record.schedule, "skipped_fires": record.count, "why": record.reason}
        logger.warning("fires skipped", extra=told)
