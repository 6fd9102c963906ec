"""emit: timers that come due become schedule events, written ahead of their instant and hinted for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from chalicelib.core import emit, endings, lifecycle
from chalicelib.core.calendar import SECOND, Instant, Millis
from chalicelib.core.emit import Emission
from chalicelib.core.model import Schedule
from chalicelib.core.rows import Gate, Job, Timer
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.sweep import Ref, ref_of
from chalicelib.core.writes import GateIs, Put, Replace, Write
from chalicelib.flow.alone import each_alone
from chalicelib.log import logger
from chalicelib.ports import Ports

# How long one tick goes through timers. The rest, which are those due last, is the next tick's; each is prepared a
# minute ahead, so none is late by that.
LONGEST_ROUND: Millis = 40 * SECOND
# How many portions of one timer are prepared in one go. What is left is hinted at once, for another Lambda to go on.
MOST_PORTIONS = 10


def emit_due(ports: Ports) -> int:
    """Prepare the fires of all timers due before the horizon. Several emitters at once are harmless (E1).

    Returns how many timers were looked at; one that fails keeps no other from its fires.
    """
    now = ports.clock.now()
    horizon = now + ports.settings.horizon_seconds * SECOND
    return each_alone(_due_timers(ports, now, horizon), lambda timer: emit_timer(ports, timer.parts[0], now, horizon))


def emit_soon(ports: Ports, schedule: str) -> int:
    """The same for one schedule, for whatever begins within the horizon that the last tick has covered (E4)."""
    now = ports.clock.now()
    return emit_timer(ports, schedule, now, now + ports.settings.horizon_seconds * SECOND)


def emit_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> int:
    """Write the fires of one timer, hint them, move the timer on, portion by portion. Returns how many events it made.
    A crash in between repeats the same ids."""
    made = 0
    for _ in range(MOST_PORTIONS):
        emission = _portion(ports, schedule, now, horizon)
        made += len(emission.fires) if emission else 0
        if emission is None or not emission.more:
            return made
    _hint_timer(ports, schedule, now, now)
    return made


def _due_timers(ports: Ports, now: Instant, horizon: Instant) -> Iterator[Ref]:
    """Oldest first, read page by page while they are worked through."""
    for ref in ports.wakes.each_overdue("catalog", horizon):
        if ref.kind == "timer":
            yield ref
        if ports.clock.now() - now > LONGEST_ROUND:
            logger.warning("tick full", extra={"hint": "the next tick goes on; timers are many, or tables slow"})
            return


def _portion(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> Emission | None:
    """One bounded look at a timer; None if there was nothing to prepare, or somebody else was faster."""
    timer, gate = ports.catalog.timer(schedule), ports.catalog.gate(schedule)
    version = ports.catalog.version(schedule, timer.version) if timer else None
    if timer is None or gate is None or version is None or gate.generation != timer.generation:
        return None
    definition = Schedule.model_validate(version.definition)
    if gate.mode == "enabled" and endings.is_used_up(timer, definition):
        # Its repeats ended while it was paused, or before it began.
        _move(ports, replace(timer, rev=timer.rev + 1), definition, gate, now, now)
        return None
    if timer.wake_at is None or timer.wake_at >= horizon:
        return None
    emission = emit.emit(timer, definition, now, horizon) if gate.mode in GATHERING_MODES else None
    if emission is None or not (emission.fires or emission.skipped):
        if endings.decide(gate, timer, definition, max(now, timer.wake_at)) is not None:
            _hint_timer(ports, schedule, timer.wake_at, now)
        return None
    ports.ledger.put_all([*map(Put, emission.fires)])
    last_due = max((fire.due_at or now for fire in emission.fires), default=now)
    moved = _move(ports, emission.timer, definition, gate, now, last_due, [*map(Put, emission.skipped)])
    _hint(ports, emission.fires, now)
    _tell(emission)
    return emission if moved else None


def _move(
    ports: Ports, timer: Timer, schedule: Schedule, gate: Gate, now: Instant, last_due: Instant,
    along: list[Write] | None = None,
) -> bool:  # fmt: skip
    """The timer as it stands after a look, in one transaction with what was skipped and, after the last fire, the end
    of its schedule. False means that another emitter did the same, or that the schedule changed."""
    plan: list[Write] = along or []
    if endings.is_used_up(timer, schedule):
        # A pause is not ended by that; the gate is asked for, so that whoever resumes finds the timer used up.
        enabled = gate.mode == "enabled"
        plan += lifecycle.complete(gate, now)[1] if enabled else [GateIs(gate, (gate.mode,))]
        timer = endings.completed(timer, schedule, last_due) if enabled else timer
        if timer.wake_at is not None:
            _hint_timer(ports, timer.schedule, timer.wake_at, now)
    return ports.ledger.commit([Replace(timer), *plan]) is None


def _hint(ports: Ports, fires: tuple[Job, ...], now: Instant) -> None:
    """One hint per due instant, for the receiver of a hint waits only if all of it is due together."""
    by_due = sorted(fires, key=lambda fire: fire.due_at or 0)
    for due, group in groupby(by_due, key=lambda fire: fire.due_at or 0):
        ports.hints.send([ref_of(fire) for fire in group], due, now)


def _hint_timer(ports: Ports, schedule: str, at: Instant, now: Instant) -> None:
    """A look at the timer at an instant, or now; one that is far off needs none before the tick finds it."""
    if at <= now + ports.settings.horizon_seconds * SECOND:
        ports.hints.send([Ref("timer", (schedule,))], max(at, now), now)


def _tell(emission: Emission) -> None:
    for record in emission.skipped:
        told = {"schedule": record.schedule, "skipped_fires": record.count, "why": record.reason}
        logger.warning("fires skipped", extra=told)
