"""The plan that writes a message (L16). `core/definitions/message.py` converts a message into a schedule."""

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
    """Writes a message in one transaction, in place of an earlier one of the same name. It gets a new generation; the
    pending fires of the earlier message belong to a closed one. ``schedule_state`` is the state that was read.

    Raises ``invalid`` if the message would never be due."""
    after, plan = lifecycle.put(name, schedule, None, schedule_state, enabled=True, now=now, by=by)
    timer = timer_in(plan)
    if timer is None or not timer.next or min(timer.next.values()) > (schedule.ends_at or inf):
        hint = "correct due_time or ttl: Sluice stores no message that is never sent"
        raise invalid("due_time", f"a message that is due at {iso(now)} or later", "one that is never due", hint)
    listing = Put(Listing(name, schedule.workflow))
    plan = [listing if isinstance(write, Put) and isinstance(write.row, Listing) else write for write in plan]
    plan = [_expiring(write.row, timer, schedule) if isinstance(write, Create) else write for write in plan]
    own = Definition("workflow", name, {}, after.version, now, by)
    if target is not None:
        return after, [*plan, Put(replace(own, document=Workflow(target=target).model_dump(mode="json")))]
    # The earlier message may have had its own target.
    return after, [*plan, Delete(own)] if schedule_state is not None and schedule_state.exists else plan


def timer_in(plan: Sequence[Write]) -> Timer | None:
    """The timer that a plan writes, which holds the first due instant of the message; None if it writes none."""
    return next((write.row for write in plan if isinstance(write, Put) and isinstance(write.row, Timer)), None)


def target_of(row: Definition | None) -> Mapping[str, Any] | None:
    """The own target of a message, from the row that holds it; None without a row."""
    return row.document["target"] if row else None


def _expiring(row: Row, timer: Timer, schedule: Schedule) -> Write:
    """The write of a row of the message. If the last fire of the message is known, its version expires with the history
    of the runs until then. The version is put unconditionally: the schedule state proves that it is new, even after
    the state of an earlier message has expired."""
    if not isinstance(row, Version):
        return Create(row)
    single = min(timer.next.values()) if tree.is_one_shot(schedule.trigger) else None
    ends = [end for end in (schedule.ends_at, single) if end is not None]
    return Put(replace(row, expires_at=min(ends) + HISTORY) if ends else row)
