"""emit: timers that come due become schedule events, written ahead of their instant and hinted for it."""

from __future__ import annotations

from itertools import groupby

from chalicelib.core import emit, lifecycle, triggers
from chalicelib.core.calendar import SECOND, Instant
from chalicelib.core.model import Schedule
from chalicelib.core.rows import Job, Timer
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.sweep import ref_of
from chalicelib.core.writes import GateIs, Put, Replace, Write
from chalicelib.flow.alone import each_alone
from chalicelib.ports import Ports

MOST_TIMERS = 1_000


def emit_due(ports: Ports) -> int:
    """Prepare the fires of all timers due before the horizon. Several emitters at once are harmless (E1).

    Returns how many timers were looked at; one that fails keeps no other from its fires.
    """
    now = ports.clock.now()
    horizon = now + ports.settings.horizon_seconds * SECOND
    timers = [ref for ref in ports.wakes.overdue("catalog", horizon, MOST_TIMERS) if ref.kind == "timer"]
    return each_alone(timers, lambda timer: emit_timer(ports, timer.parts[0], now, horizon))


def emit_soon(ports: Ports, schedule: str) -> int:
    """The same for one schedule, for whatever begins within the horizon that the last tick has covered (E4)."""
    now = ports.clock.now()
    return emit_timer(ports, schedule, now, now + ports.settings.horizon_seconds * SECOND)


def emit_timer(ports: Ports, schedule: str, now: Instant, horizon: Instant) -> int:
    """Write the fires of one timer, hint them, move the timer on. A crash in between repeats the same ids."""
    timer, gate = ports.catalog.timer(schedule), ports.catalog.gate(schedule)
    if timer is None or gate is None or gate.generation != timer.generation or gate.mode not in GATHERING_MODES:
        return 0
    version = ports.catalog.version(schedule, timer.version)
    if version is None:
        return 0
    definition = Schedule.model_validate(version.definition)
    if _is_used_up(timer, definition) and gate.mode == "enabled":
        ports.ledger.commit(lifecycle.complete(gate, now)[1])  # its repeats ended while it was paused
    if timer.wake_at is None or timer.wake_at >= horizon:
        return 0
    emission = emit.emit(timer, definition, now, horizon)
    ports.ledger.put_all([*map(Put, emission.skipped), *map(Put, emission.fires)])
    moved: list[Write] = [Replace(emission.timer)]
    if _is_used_up(emission.timer, definition):
        # A pause is not ended by that; the gate is asked for, so that whoever resumes finds the timer used up.
        paused: list[Write] = [GateIs(gate, (gate.mode,))]
        moved += lifecycle.complete(gate, now)[1] if gate.mode == "enabled" else paused
    ports.ledger.commit(moved)  # a refusal means that another emitter did the same, or that the schedule changed
    _hint(ports, emission.fires, now)
    return len(emission.fires)


def _is_used_up(timer: Timer, schedule: Schedule) -> bool:
    """Whether no fire will follow (L10): a schedule that fires at times and nothing else is then complete."""
    return not timer.next and triggers.is_single_time(schedule.trigger)


def _hint(ports: Ports, fires: tuple[Job, ...], now: Instant) -> None:
    """One hint per due instant, for the receiver of a hint waits only if all of it is due together."""
    by_due = sorted(fires, key=lambda fire: fire.due_at or 0)
    for due, group in groupby(by_due, key=lambda fire: fire.due_at or 0):
        ports.hints.send([ref_of(fire) for fire in group], due, now)
