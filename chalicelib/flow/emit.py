"""emit: timers that come due become schedule events, written ahead of their instant and hinted for it."""

from __future__ import annotations

from itertools import groupby

from chalicelib.core import emit
from chalicelib.core.calendar import SECOND, Instant
from chalicelib.core.model import Schedule
from chalicelib.core.rows import Job
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.alone import each_alone
from chalicelib.flow.apply import ref_of
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
    if timer is None or gate is None or gate.generation != timer.generation or gate.mode != "enabled":
        return 0
    version = ports.catalog.version(schedule, timer.version)
    if version is None or timer.wake_at is None or timer.wake_at >= horizon:
        return 0
    emission = emit.emit(timer, Schedule.model_validate(version.definition), now, horizon)
    ports.ledger.put_all([*map(Put, emission.skipped), *map(Put, emission.fires)])
    ports.ledger.commit([Replace(emission.timer)])  # a refusal means that another emitter did the same
    _hint(ports, emission.fires, now)
    return len(emission.fires)


def _hint(ports: Ports, fires: tuple[Job, ...], now: Instant) -> None:
    """One hint per due instant, for the receiver of a hint waits only if all of it is due together."""
    by_due = sorted(fires, key=lambda fire: fire.due_at or 0)
    for due, group in groupby(by_due, key=lambda fire: fire.due_at or 0):
        ports.hints.send([ref_of(fire) for fire in group], due, now)
