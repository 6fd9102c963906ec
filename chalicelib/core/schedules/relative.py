"""From when the spans of a schedule count: its ``due_time``, ``start``, ``end`` and ``ttl`` may be spans (T3).

They are stored as instants. A put that leaves the trigger as it is also leaves these instants as they are: the spans go
on counting from the put that began the trigger. A changed ``ttl`` counts from the put that changes it. For example:

    12:00  due_time: 1h, ttl: 3h                              due at 13:00, ends at 15:00
    12:30  due_time: 1h, ttl: 3h, another description         due at 13:00, ends at 15:00
    12:40  due_time: 1h, ttl: 2h                              due at 13:00, ends at 14:40
    12:50  due_time: 2h, ttl: 2h                              due at 14:50, ends at 14:50
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant, iso, parse_when


@dataclass(frozen=True, slots=True)
class Counted:
    """A schedule with full names, and with instants in place of the spans in its trigger and of its ``ttl``; and the
    instants from which these were counted."""

    definition: Schedule
    trigger_from: Instant
    ttl_from: Instant

    @property
    def spans_from(self) -> tuple[Instant, Instant]:
        return self.trigger_from, self.ttl_from


def counted(sent: Schedule, name: str, old: Counted | None, now: Instant) -> Counted:
    """A sent schedule as a put at ``now`` stores it. ``old`` is the schedule that it changes; None if the put creates
    or enables the schedule, so that all spans count from ``now``."""
    same = kept(sent, name, old, now) if old is not None else None
    return same or Counted(_resolved(sent, name, now), now, now)


def is_same(sent: Schedule, name: str, old: Counted) -> bool:
    """Whether a sent schedule equals the stored one. So the same document sent again is the same schedule, and its
    spans do not start over."""
    same = kept(sent, name, old, old.ttl_from)
    return same is not None and same.definition == old.definition


def kept(sent: Schedule, name: str, old: Counted, now: Instant) -> Counted | None:
    """The sent schedule with the instants of the old trigger; None if its trigger is another one."""
    try:
        new = _resolved(sent, name, old.trigger_from)
    except SluiceError:
        return None  # bounds that leave no instant, counted from then: another trigger
    if new.gathering != old.definition.gathering:
        return None
    if sent.ttl is None:
        return Counted(new, old.trigger_from, old.trigger_from)
    same = iso(parse_when(sent.ttl, old.ttl_from, "ttl")) == old.definition.ttl
    ttl_from = old.ttl_from if same else now
    ttl = iso(parse_when(sent.ttl, ttl_from, "ttl"))
    return Counted(new.model_copy(update={"ttl": ttl}), old.trigger_from, ttl_from)


def _resolved(sent: Schedule, name: str, now: Instant) -> Schedule:
    namespace, app, _ = name.split(".")
    return sent.resolved(namespace, app, now)
