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

from pydantic import Field, ValidationError, model_validator

from chalicelib.core import ids, lifecycle
from chalicelib.core.calendar import Instant, iso
from chalicelib.core.data import Carried, is_sent
from chalicelib.core.documents import Reference
from chalicelib.core.errors import SluiceError, from_validation, invalid
from chalicelib.core.model import Schedule, full_name
from chalicelib.core.rows import HISTORY, Definition, Gate, Listing, Timer, Version
from chalicelib.core.targets import AnyTarget
from chalicelib.core.times import Life, TimeTrigger, When
from chalicelib.core.workflows import Described, Workflow
from chalicelib.core.writes import Create, Delete, Put, Row, Write

_FIELDS = ("due_time", "repeats", "ttl", "zone")  # of a message, under the same name in its schedule


class Message(Described, Carried):
    """A message as it is sent: ``schedule`` (any expression of T1) and ``due_time``, one of them or both (T3); how
    often it ``repeats``, how long it lives (``ttl``), its ``zone``; where it goes, by default to its app's target."""

    schedule: str | dict[str, Any] | None = None
    due_time: When | None = None
    repeats: int | None = Field(default=None, ge=1)
    ttl: Life | None = None
    zone: str = "UTC"
    target: AnyTarget | None = None
    workflow: Reference | None = None

    _sent = model_validator(mode="after")(is_sent)

    @model_validator(mode="after")
    def _fits_together(self) -> Message:
        if self.target is not None and self.workflow is not None:
            raise invalid("workflow", "either a target or a workflow", "both")
        if self.schedule is None and self.due_time is None:
            hint = "such as schedule: '@every 1h', or due_time: 10m for a single one"
            raise invalid("schedule", "a schedule, a due_time, or both", "neither", hint)
        self._document("a.b.~c")  # told here, where the fields have the names that the user wrote
        return self

    def to_schedule(self, name: str, now: Instant) -> Schedule:
        """The schedule that it is, under its full name. Spans are counted from ``now``."""
        namespace, app, _ = name.split(".")
        try:
            return self._document(name).resolved(namespace, app, now)
        except SluiceError as error:
            raise _in_our_words(error) from None

    def _document(self, name: str) -> Schedule:
        app = name.rpartition(".")[0]
        trigger = {"type": "time", "expression": self.schedule, "due_time": self.due_time, "repeats": self.repeats}
        body = self.model_dump(include={*Carried.model_fields, *Described.model_fields, "ttl", "zone"})
        own = name if self.target is not None else ids.default_workflow(app)
        workflow = own if self.workflow is None else workflow_of(self, app)
        fixed = {"coalesce": False, "when_done": "delete"}
        try:
            return Schedule.model_validate({**body, **fixed, "workflow": workflow, "trigger": trigger})
        except ValidationError as error:
            raise _in_our_words(from_validation(error)) from None


def put(
    name: str, schedule: Schedule, target: AnyTarget | None, gate: Gate | None, now: Instant, by: str
) -> tuple[Gate, list[Write]]:
    """Write a message over whatever stands under its name, in one transaction. It begins anew: the pending fires of the
    one before belong to a generation that is closed. ``gate`` is the one that was read."""
    after, plan = lifecycle.put(name, schedule, None, gate, True, now, by)
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
    return after, [*plan, Delete(own)] if gate is not None and gate.mode != "deleted" else plan


def timer_in(plan: Sequence[Write]) -> Timer | None:
    """The timer that a plan writes: when the message is due first."""
    return next((write.row for write in plan if isinstance(write, Put) and isinstance(write.row, Timer)), None)


def workflow_of(message: Message, app: str) -> str:
    """The full name of the workflow that a message names."""
    namespace, _, short = app.partition(".")
    return full_name(message.workflow or "", namespace, short)


def target_of(row: Definition | None) -> Mapping[str, Any] | None:
    """A message's own target, out of the row that holds it."""
    return row.document["target"] if row else None


def _passing(row: Row, timer: Timer, schedule: Schedule) -> Write:
    """A definition whose last fire is known is kept as long as the runs that it may have by then, and no longer. It is
    put whatever stood there: the gate says that it is new, also when that of an older message has passed away."""
    if not isinstance(row, Version):
        return Create(row)
    single = isinstance(schedule.trigger, TimeTrigger) and schedule.trigger.expression is None
    only = min(timer.next.values()) if single else None
    ends = [end for end in (schedule.ends_at, only) if end is not None]
    return Put(replace(row, expires_at=min(ends) + HISTORY) if ends else row)


def _in_our_words(error: SluiceError) -> SluiceError:
    """A refusal of the schedule that a message is, by the field in which the message says it."""
    field = (error.field or "").removeprefix("trigger.").replace("expression", "schedule")
    return SluiceError(error.code, error.message, field or None, error.hint)
