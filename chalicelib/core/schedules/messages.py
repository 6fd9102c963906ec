"""Messages (L16): schedules of the simple kind. A time or an expression, and data for a target; live at once.

A message ``m`` of the app ``ns.app`` is the schedule ``ns.app.~m``: one time trigger, no constraints, each fire a job
of its own, deleted after the last one. Its own target is a workflow of the same name, written along with it; the
default target of its app is the workflow ``ns.app.~``. So gates, timers, delivery and history work as for schedules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.schedule import HISTORY, ScheduleState, Timer, Version
from chalicelib.core.schedules import lifecycle
from chalicelib.core.targets.registry import AnyTarget
from chalicelib.core.triggers import tree
from chalicelib.core.writes import Create, Delete, Put, Row, Write


def put(
    name: str, schedule: Schedule, target: AnyTarget | None, schedule_state: ScheduleState | None, now: Instant, by: str
) -> tuple[ScheduleState, list[Write]]:
    """Write a message over whatever stands under its name, in one transaction. It begins anew: the pending fires of the
    one before belong to a generation that is closed. ``gate`` is the one that was read."""
    after, plan = lifecycle.put(name, schedule, None, schedule_state, True, now, by)
    timer = timer_in(plan)
    if timer is None or not timer.next or min(timer.next.values()) > (schedule.ends_at or inf):
        hint = "correct due_time or ttl: what has no instant left to be sent at is not kept"
        raise invalid("due_time", f"a message that is due at {iso(now)} or later", "one that never is", hint)
    listing = Put(Listing(name, schedule.workflow))
    plan = [listing if isinstance(write, Put) and isinstance(write.row, Listing) else write for write in plan]
    plan = [_passing(write.row, timer, schedule) if isinstance(write, Create) else write for write in plan]
    own = Definition("workflow", name, {}, after.version, now, by)
    if target is not None:
        return after, [*plan, Put(replace(own, document=Workflow(target=target).model_dump(mode="json")))]
    # The one before may have had a target of its own.
    return after, [*plan, Delete(own)] if schedule_state is not None and schedule_state.exists else plan


def timer_in(plan: Sequence[Write]) -> Timer | None:
    """The timer that a plan writes: when the message is due first."""
    return next((write.row for write in plan if isinstance(write, Put) and isinstance(write.row, Timer)), None)


def target_of(row: Definition | None) -> Mapping[str, Any] | None:
    """A message's own target, out of the row that holds it."""
    return row.document["target"] if row else None


def _passing(row: Row, timer: Timer, schedule: Schedule) -> Write:
    """A definition whose last fire is known is kept as long as the runs that it may have by then, and no longer. It is
    put whatever stood there: the gate says that it is new, also when that of an older message has passed away."""
    if not isinstance(row, Version):
        return Create(row)
    single = tree.is_one_shot(schedule.trigger)
    only = min(timer.next.values()) if single else None
    ends = [end for end in (schedule.ends_at, only) if end is not None]
    return Put(replace(row, expires_at=min(ends) + HISTORY) if ends else row)
