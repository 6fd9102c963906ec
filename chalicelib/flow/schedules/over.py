"""Read what a put finds: the schedule that it changes, and its timer. A put and a dry run read the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import continued
from chalicelib.core.instants import Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.schedules import effect, lifecycle, relative
from chalicelib.core.schedules.effect import Effect
from chalicelib.core.schedules.relative import Counted
from chalicelib.core.triggers import tree
from chalicelib.core.writes import Write
from chalicelib.flow import calendars, lookup
from chalicelib.flow.schedules import stops
from chalicelib.flow.schedules.stops import Covering
from chalicelib.ports import Ports


@dataclass(frozen=True, slots=True)
class Found:
    """What a put of ``new`` finds at ``now``. ``schedule_state`` may be that of a deleted schedule; ``old`` is None
    unless the schedule exists, and ``former`` is its version. ``timer`` and ``prepared`` are read if the put changes
    more than a description. ``covering`` are the stops that may cover the schedule; it is read if the put creates the
    schedule or changes its tags."""

    now: Instant
    schedule_state: ScheduleState | None
    old: Counted | None
    new: Counted
    is_same: bool
    former: Version | None = None
    timer: Timer | None = None
    prepared: tuple[Job, ...] = ()
    covering: Covering | None = None

    @property
    def alive(self) -> ScheduleState | None:
        return _alive(self.schedule_state)

    def effect(self, enabled: bool | None, carry: bool) -> Effect:
        old = self.old.definition if self.old is not None else None
        state, new = self.schedule_state, self.new.definition
        return effect.of_put(new, old, state, enabled, self.now, carry, self.timer, self.prepared)

    def plan(self, name: str, enabled: bool | None, by: str, carry: bool) -> tuple[ScheduleState, list[Write]]:
        """The plan of the put, and the schedule state after it."""
        old, spans_from = self.old.definition if self.old is not None else None, self.new.spans_from
        before, new, now = self.schedule_state, self.new.definition, self.now
        timer, prepared = self.timer, self.prepared
        after, plan = lifecycle.put(
            name, new, old, before, enabled, now, by, carry=carry, timer=timer, prepared=prepared,
            spans_from=spans_from, former=self.former,
        )  # fmt: skip
        return self.covering.applied(after, plan, now) if self.covering is not None else (after, plan)


def read(ports: Ports, name: str, sent: Schedule, enabled: bool | None) -> Found:
    """Read what a put of ``sent`` finds. Raises ``invalid`` for bounds that leave no instant."""
    schedule_state = ports.rows.get(ScheduleState, name)
    alive = _alive(schedule_state)
    old, now = lookup.stored(ports, alive), ports.clock.now()
    if alive is None or old is None:
        new = _counted(ports, sent, name, None, now)
        created = stops.covering(ports, name, sent.tags)
        return Found(now, schedule_state, None, new, is_same=False, covering=created)
    fits = enabled is None or enabled == (alive.mode != "disabled")
    if fits and relative.is_same(sent, name, old):
        return Found(now, schedule_state, old, old, is_same=True)
    begins = effect.begins(alive, enabled)
    new = _counted(ports, sent, name, None if begins else old, now)
    retagged = sent.tags != old.definition.tags
    covering = stops.covering(ports, name, sent.tags) if retagged else None
    former = ports.rows.get(Version, name, alive.version)
    found = Found(now, schedule_state, old, new, is_same=False, former=former, covering=covering)
    stops_here = enabled is False and alive.mode != "disabled"  # then what is not prepared goes on record
    if begins or (effect.acts_alike(old.definition, new.definition) and not stops_here):
        return found
    timer = _timer(ports, alive, old.definition)
    if timer is None or not continued.asks_for_prepared(timer, old.definition, new.definition):
        return replace(found, timer=timer)
    return replace(found, timer=timer, prepared=lookup.prepared(ports, alive, now))


def _alive(schedule_state: ScheduleState | None) -> ScheduleState | None:
    return schedule_state if schedule_state is not None and schedule_state.exists else None


def _counted(ports: Ports, sent: Schedule, name: str, old: Counted | None, now: Instant) -> Counted:
    counted = relative.counted(sent, name, old, now)
    calendars.read(ports, counted.definition)
    return counted


def _timer(ports: Ports, alive: ScheduleState, old: Schedule) -> Timer | None:
    """The timer of the present generation, with the last arrivals for its absent leaves."""
    timer = ports.rows.get(Timer, alive.schedule)
    if timer is None or timer.generation != alive.generation:
        return None
    leaves = [leaf.id for leaf in tree.timed_leaves(old.trigger) if leaf.trigger.moved_by == "last_arrival"]
    found = {leaf: lookup.last_arrival(ports, alive, timer, leaf) for leaf in leaves}
    return replace(timer, arrived={leaf: at for leaf, at in found.items() if at is not None})
