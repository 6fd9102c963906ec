"""The document of a message (L16): a time or an expression, and data for a target. A message is enabled at once.

A message ``m`` of the app ``ns.app`` is the schedule ``ns.app.~m`` with one time trigger and without constraints. Each
fire is a job of its own, and Sluice deletes the schedule after the last one. The target of a message is a workflow of
the same name, written in the same transaction. The default target of the app is the workflow ``ns.app.~``. So schedule
states, timers, delivery and history work as for schedules.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError, model_validator

from chalicelib.core import ids, instants
from chalicelib.core.definitions.data import Carried, refuse_data_uri
from chalicelib.core.definitions.schedule import Life, Schedule
from chalicelib.core.documents import Described, Reference
from chalicelib.core.errors import SluiceError, from_validation, invalid
from chalicelib.core.instants import Instant
from chalicelib.core.names import full_name
from chalicelib.core.targets.registry import AnyTarget
from chalicelib.core.triggers.time import When


def workflow_of(message: Message, app: str) -> str:
    """The full name of the workflow that a message names."""
    namespace, _, short = app.partition(".")
    return full_name(message.workflow or "", namespace, short)


def _for_message(error: SluiceError) -> SluiceError:
    """An error about the schedule of a message, with the field of the message that caused it."""
    return error.renamed(lambda field: (field or "").removeprefix("trigger.").replace("expression", "schedule") or None)


class Message(Described, Carried):
    """A message as a user sends it. It has a ``schedule`` (any expression of T1), a ``due_time``, or both (T3). It may
    say how often it ``repeats``, how long it lives (``ttl``), and its ``zone``. Without a ``target`` or ``workflow`` it
    goes to the default target of the app."""

    schedule: str | dict[str, Any] | None = None
    due_time: When | None = None
    repeats: int | None = Field(default=None, ge=1)
    ttl: Life | None = None
    zone: str = "UTC"
    target: AnyTarget | None = None
    workflow: Reference | None = None

    _sent = model_validator(mode="after")(refuse_data_uri)

    @model_validator(mode="after")
    def _fits_together(self) -> Message:
        if self.target is not None and self.workflow is not None:
            raise invalid("workflow", "either a target or a workflow", "both", "remove one of the two")
        if self.schedule is None and self.due_time is None:
            hint = "such as schedule: '@every 1h', or due_time: 10m for a single one"
            raise invalid("schedule", "a schedule, a due_time, or both", "neither", hint)
        instants.zone(self.zone)
        self._document("a.b.~c")  # checked here, so that errors have the field names of the message
        return self

    def to_schedule(self, name: str, now: Instant) -> Schedule:
        """The schedule of the message, under its full name. Spans count from ``now``."""
        namespace, app, _ = name.split(".")
        try:
            return self._document(name).resolved(namespace, app, now)
        except SluiceError as error:
            raise _for_message(error) from None

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
            raise _for_message(from_validation(error, Schedule)) from None
