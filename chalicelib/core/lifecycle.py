"""The plans that create, replace, enable, disable and delete a schedule: one transaction each (L1-L3, L5-L7).

Whatever they close is final with their commit: the gate no longer lets a claim pass, the index no longer leads there,
and a tombstone lies where an event would gather.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core import emit, triggers
from chalicelib.core.calendar import DAY, Instant
from chalicelib.core.model import Schedule
from chalicelib.core.rows import Gate, Listing, Mode, Subscription, Timer, Version
from chalicelib.core.writes import CloseGeneration, Create, Delete, Put, PutGate, Write

TOMBSTONE_LIFE = 45 * DAY  # as long as a marker: no event that is older can still be applied
# Changing these fields changes nothing of what the schedule does, so its generation goes on (DESIGN section 3).
COSMETIC = {"description", "tags", "owner"}


def put(
    name: str, new: Schedule, old: Schedule | None, gate: Gate | None, enabled: bool | None, now: Instant, by: str
) -> tuple[Gate, list[Write]]:
    """Create or replace. ``enabled`` None keeps the mode that it has; a new schedule is disabled (L2)."""
    alive = gate if gate is not None and gate.mode != "deleted" else None
    mode: Mode = _mode(alive, enabled)
    same = alive is not None and old is not None and acts_alike(old, new) and alive.mode == mode
    generation = alive.generation if alive and same else next_generation(gate, now)
    after = Gate(name, generation, gate.version + 1 if gate else 1, mode, now, by)
    version = Version(name, after.version, _document(new), now, by)
    plan: list[Write] = [PutGate(after, gate), Create(version), Put(Listing(name))]
    if same:
        return after, plan
    if alive is not None and old is not None:
        plan += _close(alive, old, now, keep_timer=mode == "enabled" and bool(triggers.time_leaves(new.trigger)))
    return after, plan + (_open(after, new, now) if mode == "enabled" else [])


def enable(gate: Gate, schedule: Schedule, now: Instant, by: str) -> tuple[Gate, list[Write]]:
    """A generation of its own: only what is accepted from now on counts, and no fire is caught up on (L3, T5)."""
    after = Gate(gate.schedule, next_generation(gate, now), gate.version, "enabled", now, by)
    old = CloseGeneration(gate.schedule, gate.generation, now, now + TOMBSTONE_LIFE)
    return after, [PutGate(after, gate), old, *_open(after, schedule, now)]


def disable(gate: Gate, schedule: Schedule, now: Instant, by: str, mode: Mode = "disabled") -> tuple[Gate, list[Write]]:
    after = Gate(gate.schedule, gate.generation, gate.version, mode, now, by)
    return after, [PutGate(after, gate), *_close(gate, schedule, now)]


def delete(gate: Gate, schedule: Schedule, now: Instant, by: str) -> tuple[Gate, list[Write]]:
    """The gate stays as a small tombstone: a schedule of the same name that comes later starts behind it."""
    after, plan = disable(gate, schedule, now, by, mode="deleted")
    return after, [*plan, Delete(Listing(gate.schedule))]


def subscriptions(gate: Gate, schedule: Schedule, since: Instant) -> list[Subscription]:
    """The rows of the reverse index for a trigger: one per leaf and event key."""
    return [
        Subscription(key, gate.schedule, gate.generation, gate.version, leaf.id, since)
        for leaf in triggers.leaves(schedule.trigger)
        for key in triggers.event_keys(leaf.trigger)
    ]


def next_generation(gate: Gate | None, now: Instant) -> int:
    """Generations come from the clock, so that no later schedule of the same name repeats one, and only grow."""
    return max(now, gate.generation + 1) if gate else now


def acts_alike(old: Schedule, new: Schedule) -> bool:
    return old.model_dump(exclude=COSMETIC) == new.model_dump(exclude=COSMETIC)


def _open(gate: Gate, schedule: Schedule, now: Instant) -> list[Write]:
    plan: list[Write] = [Put(row) for row in subscriptions(gate, schedule, now)]
    timer = emit.first_timer(schedule, gate, now)
    return [*plan, Put(timer)] if timer else plan


def _close(gate: Gate, schedule: Schedule, now: Instant, keep_timer: bool = False) -> list[Write]:
    """Out of the index and the timers, and a tombstone over what gathers. ``keep_timer``: another is put over it."""
    plan: list[Write] = [CloseGeneration(gate.schedule, gate.generation, now, now + TOMBSTONE_LIFE)]
    if gate.mode != "enabled":
        return plan
    plan += [Delete(row) for row in subscriptions(gate, schedule, now)]
    if triggers.time_leaves(schedule.trigger) and not keep_timer:
        plan.append(Delete(Timer(gate.schedule, gate.generation, gate.version, now, {})))
    return plan


def _mode(alive: Gate | None, enabled: bool | None) -> Mode:
    if enabled is None:
        return alive.mode if alive else "disabled"
    return "enabled" if enabled else "disabled"


def _document(schedule: Schedule) -> Mapping[str, Any]:
    document: Mapping[str, Any] = schedule.model_dump(mode="json")
    return document
