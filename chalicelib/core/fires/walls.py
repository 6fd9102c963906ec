"""The wall times of stored instants: what a timer has to keep so that its instants can follow new rules of time zones.

A timer stores instants. By other rules of its zone, the wall time of such an instant is another instant. The old rules
are gone by then, so the timer keeps the offset with which each instant was computed, and the version of the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core import instants, zones
from chalicelib.core.changes import replace
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, Instant, Millis
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.time import wall
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import TimedLeaf


def kept(timer: Timer, schedule: Schedule) -> Timer:
    """The timer with the offsets of its next instants, and of those before them, which were prepared last."""
    walls = {}
    for leaf in tree.timed_leaves(schedule.trigger):
        zone, nominal = leaf.trigger.wall_zone, timer.next.get(leaf.id)
        known = timer.walls.get(leaf.id, ())
        if zone is not None and nominal is not None and known[:1] != (nominal,):
            known = (nominal, _offset(zone, nominal), *known[:2])
        if known:
            walls[leaf.id] = known
    return replace(timer, walls=walls)


def stamped(timer: Timer, schedule: Schedule) -> Timer:
    """The timer with the version of the present rules, by which its instants were computed, if they depend on any."""
    return replace(timer, rules=zones.version()) if _depends(schedule) else timer


def follows(timer: Timer, schedule: Schedule) -> bool:
    """Whether the instants of a timer were computed by the present rules, or depend on none."""
    return timer.rules == zones.version() or not _depends(schedule)


def _depends(schedule: Schedule) -> bool:
    return any(leaf.trigger.wall_zone is not None for leaf in tree.timed_leaves(schedule.trigger))


def unknown(schedule: Schedule) -> list[str]:
    """Why no fire of a schedule can be computed: its zones that the present rules no longer have, each with what to do.
    Its timer keeps its instants until they have the zone again, or the schedule names another one."""
    named = (leaf.trigger.wall_zone for leaf in tree.timed_leaves(schedule.trigger))
    gone = dict.fromkeys(zone for zone in named if zone is not None and zones.zone(zone) is None)
    return [f"no fire can be computed: {zones.unknown(zone)}" for zone in gone]


def following(timer: Timer, schedule: Schedule, now: Instant) -> Timer:
    """The timer by the present rules. Each next instant becomes that of the same wall time, so that no wall time fires
    twice and none is left out. What is prepared stays as it is."""
    walls, upcoming = dict(timer.walls), dict(timer.next)
    for leaf in tree.timed_leaves(schedule.trigger):
        nominal, zone = timer.next.get(leaf.id), leaf.trigger.wall_zone
        if zone is None or nominal is None:
            continue
        known = timer.walls.get(leaf.id, ())
        offset = known[1] if known[:1] == (nominal,) else None
        moved = moved_to(leaf.trigger, timer.anchor, nominal, offset, now, schedule.ends_at)
        if moved is None:
            del upcoming[leaf.id]
        elif moved != nominal:
            upcoming[leaf.id], walls[leaf.id] = moved, (moved, _offset(zone, moved), *known[2:])
    return stamped(replace(timer, next=upcoming, walls=walls), schedule)


def moved_to(
    leaf: TimedLeaf, anchor: Instant, nominal: Instant, offset: Millis | None, now: Instant, until: Instant | None
) -> Instant | None:
    """The instant, by the present rules, of a fire that was computed as ``nominal`` while the zone had this offset.
    None if it comes after the end of its schedule.

    Without an offset, it is the first fire from now on."""
    zone = leaf.wall_zone
    if zone is None or leaf.is_due_at(nominal):
        return nominal
    if _offset(zone, nominal) == offset and leaf.next_due(anchor, nominal - 1, until) == nominal:
        return nominal
    if offset is None:
        after = min(now, nominal - 1)
    else:
        after = wall.instant_of(nominal - 1, offset, instants.zone(zone)) if leaf.has_walls else nominal - 1
    return leaf.next_due(anchor, after, until)


def offset_of(schedule: Schedule, anchor: Instant, nominal: Instant) -> Millis | None:
    """The offset of the zone in which a fire has its wall time; None if no wall time decides it."""
    leaves = (leaf.trigger for leaf in tree.timed_leaves(schedule.trigger))
    fires = (leaf for leaf in leaves if leaf.next_due(anchor, nominal - 1, schedule.ends_at) == nominal)
    zone = next((leaf.wall_zone for leaf in fires), None)
    return _offset(zone, nominal) if zone is not None else None


def skips_moved(schedule_state: ScheduleState, schedule: Schedule, anchor: Instant, now: Instant) -> ScheduleState:
    """The state with each skip at the same wall time by the present rules (L19)."""
    skips: dict[Instant, Millis | None] = {}
    for nominal in schedule_state.skips:
        offset = schedule_state.skip_offsets.get(str(nominal))
        zoned = [leaf.trigger for leaf in tree.timed_leaves(schedule.trigger) if leaf.trigger.wall_zone is not None]
        if nominal > now - DAY and offset is not None and zoned:
            found = (moved_to(leaf, anchor, nominal, offset, now, schedule.ends_at) for leaf in zoned)
            nominal = min((at for at in found if at is not None), key=lambda at: abs(at - nominal), default=nominal)
            offset = offset_of(schedule, anchor, nominal)
        skips[nominal] = offset
    offsets = {str(nominal): offset for nominal, offset in skips.items() if offset is not None}
    return replace(schedule_state, skips=tuple(sorted(skips)), skip_offsets=offsets)


def last_prepared(timer: Timer, leaf: str) -> Sequence[int]:
    """The first instant that was prepared last for a leaf, and its offset; empty if none is known."""
    known = timer.walls.get(leaf, ())
    return known[2:4] if leaf in timer.next else known[:2]


def _offset(zone: str, nominal: Instant) -> Millis:
    """The offset just before an instant: at the end of a gap, that of the wall time which the clocks skip."""
    return wall.offset_at(nominal - 1, instants.zone(zone))
