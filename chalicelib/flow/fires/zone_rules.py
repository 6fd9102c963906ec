"""New rules of time zones: bring the stored instants to them, a part at each tick, until all follow.

The rules change with a deployment (`core/zones.py`). An emitter reads only timers that are due, so a timer that the new
rules let fire earlier has to be searched. The wake index lists all timers, and all jobs that wait for an instant. A row
says how far the ticks have come. Once all follow, a process reads it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from chalicelib.core import zones
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import changed_meanwhile
from chalicelib.core.fires import fire, walls
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import LATEST, MINUTE, SECOND, Instant, Millis, iso
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import TableName
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version, ZoneRules
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.why import Why
from chalicelib.core.writes import DeleteJob, Put, PutState, Replace, Write
from chalicelib.flow import lookup, many
from chalicelib.flow.fires import emit
from chalicelib.log import logger
from chalicelib.ports import Ports, every_page

PAGE = 100  # rows that are read together
# How long one tick works on it. The steps before it have first call on the time of a tick.
MAX_STEP: Millis = 10 * SECOND
# For so long after a deployment, a Lambda of before may still write instants by the old rules: the longest invocation,
# and a margin for the update of all Lambdas. A pass that began later finds them all.
SETTLED: Millis = 20 * MINUTE
MAX_DELETED = 45  # fires that are deleted in one transaction, each with its record


@dataclass
class Follower:
    """Brings the stored instants of an installation to the rules of this process. One for each process: once all
    follow, it reads nothing more."""

    is_done: bool = False

    def step(self, ports: Ports) -> int:
        """Go on where the last tick stopped, for `MAX_STEP` at most. Returns how many rows were looked at."""
        if self.is_done:
            return 0
        now = ports.clock.now()
        row = ports.rows.get(ZoneRules)
        if row is None or row.version != zones.version():
            logger.info("zone rules", extra={"version": zones.version(), "before": row.version if row else None})
            row = ZoneRules(zones.version(), now)
        if row.done or (row.began is None and row.since < now < row.since + SETTLED):
            self.is_done = row.done
            return 0
        looked_at, later = _pass(ports, row if row.began is not None else replace(row, began=now), now)
        ports.ledger.put_all([Put(later)])
        self.is_done = later.done
        return looked_at


def _pass(ports: Ports, row: ZoneRules, now: Instant) -> tuple[int, ZoneRules]:
    """Work on the shards from where the row says, while there is time. Returns how many rows were looked at."""
    parts: list[tuple[TableName, int]] = [
        (table, shard) for table in ("catalog", "jobs") for shard in range(ports.settings.wake_shards)
    ]
    looked_at = 0
    while row.part < len(parts):
        if looked_at and (ports.clock.now() - now > MAX_STEP or not ports.has_time(MAX_STEP)):
            return looked_at, row
        table, shard = parts[row.part]
        page = ports.wakes.due(table, shard, LATEST, PAGE, row.cursor)
        refs = [ref for ref, at in page.items if table == "catalog" or at > now]
        looked_at += len(page.items)
        (_bring_timers if table == "catalog" else _check_waits)(ports, refs)
        row = replace(row, part=row.part + (page.cursor is None), cursor=page.cursor)
    is_last = row.began is not None and row.began >= row.since + SETTLED
    return looked_at, replace(row, began=None, part=0, cursor=None, done=is_last)


def _bring_timers(ports: Ports, refs: Sequence[Ref]) -> None:
    """Bring the timers among these refs to the present rules. One failure does not stop the others; the next pass, or
    the emitter, tries again."""
    seen, found = emit.timers_of(ports, [ref.parts[0] for ref in refs if ref.kind == "timer"])
    timers = [timer for timer in found if _depends(timer, seen.rows.get(ScheduleState, timer.schedule))]
    seen = seen.prefetch.read(seen, [kinds.key(Version, timer.schedule, timer.version) for timer in timers])
    for timer in timers:
        try:
            _bring(ports, seen, timer)
        except Exception:
            logger.exception("timer not brought to new zone rules", extra={"schedule": timer.schedule})


def _depends(timer: Timer, state: ScheduleState | None) -> bool:
    """Whether instants of a schedule may have to follow. An emitter may have moved the timer alone."""
    has_skips = state is not None and bool(state.skip_offsets)
    return has_skips or timer.rules != zones.version()


def _bring(ports: Ports, seen: Ports, timer: Timer) -> None:
    state, schedule = seen.rows.get(ScheduleState, timer.schedule), lookup.definition_of(seen, timer)
    if state is None or schedule is None or state.generation != timer.generation or state.mode not in GATHERING_MODES:
        return
    now = ports.clock.now()
    if gone := walls.unknown(schedule):
        logger.warning("zone unknown", extra={"schedule": timer.schedule, "hint": "; ".join(gone)})
        return
    after = walls.skips_moved(state, schedule, timer.anchor, now)
    if (
        after.skips != state.skips
        and ports.ledger.commit([PutState(replace(after, rev=state.rev + 1), state)]) is not None
    ):
        raise changed_meanwhile(f"schedule {timer.schedule}")
    if walls.follows(timer, schedule):
        return
    has_moved = fire_timer.by_present_rules(timer, schedule, now).next != timer.next
    if fire_timer.may_have_moved(timer, schedule, now):
        has_moved = _prepare_again(ports, timer, schedule, now) or has_moved
    if has_moved:
        emit.emit_timer(ports, timer.schedule, now, emit.horizon_of(ports))


def _prepare_again(ports: Ports, timer: Timer, schedule: Schedule, now: Instant) -> bool:
    """Take back the prepared fires that have another instant by the present rules, so that the emitter prepares them
    again. Returns whether there are such. More than one transaction can delete stay, and fire as they were prepared."""
    read = partial(ports.jobs.jobs, timer.schedule, timer.generation)
    prepared = [job for page in every_page(read, PAGE) for job in page.items if sort_keys.is_fire(job.sort_key)]
    earlier, gone = fire_timer.before_moved(timer, schedule, prepared, now)
    if earlier is timer or len(gone) > MAX_DELETED:
        return False
    earlier = fire_timer.by_present_rules(earlier, schedule, now)
    plan: list[Write] = [Replace(replace(earlier, rev=timer.rev + 1))]
    for job in gone:
        plan += [DeleteJob(job, exact=True), Put(record_of(job, "DROPPED", _why(job), now))]
    return ports.ledger.commit(plan) is None


def _why(job: Job) -> Why:
    nominal = fire.nominal_of(job)
    why = f"by version {zones.version()} of the time zones, {iso(nominal)} is no longer the instant of this fire"
    return Why.of("fire_removed", why)


def _check_waits(ports: Ports, refs: Sequence[Ref]) -> None:
    """Have the waiting jobs among these refs checked, if their schedules have constraints that depend on a zone."""
    jobs = [ref for ref in refs if ref.kind == "job" and not sort_keys.is_fire(ref.parts[2])]
    names = list(dict.fromkeys(ref.parts[0] for ref in jobs))
    seen = many.rows_of(ports, names)
    zoned = {name for name in names if _has_hours(seen, name)}
    now = ports.clock.now()
    if hinted := [ref for ref in jobs if ref.parts[0] in zoned]:
        ports.hints.send(hinted, now, now)


def _has_hours(seen: Ports, name: str) -> bool:
    """Whether rules of a zone decide when a constraint of a schedule is met."""
    try:
        schedule = lookup.definition_of(seen, seen.rows.get(ScheduleState, name))
    except Exception:  # one schedule does not stop the others
        logger.exception("definition not read", extra={"schedule": name})
        return False
    return schedule is not None and any(constraint.wall_zone for constraint in schedule.constraints)
