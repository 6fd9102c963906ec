"""The leaf ``event``: custom events whose payload matches a pattern (T11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from chalicelib.core.documents import STORED, EventType, Name, Properties
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.leaf import Count, GatheringLeaf, Given, GivenType, since
from chalicelib.core.triggers.patterns import Flattened

MAX_PAYLOAD = 10_000  # bytes as JSON
CLOUDEVENT = "cloudevent"  # the id of an event begins so if it came as a CloudEvent


def _check_size(payload: Properties) -> Properties:
    size = len(json.dumps(payload).encode())
    if size > MAX_PAYLOAD:
        hint = "put large data into S3 and pass a reference"
        raise SluiceError("too_large", f"expected a payload of at most {MAX_PAYLOAD} bytes, got {size}", "", hint)
    return payload


# The payload of a custom event has a bounded size, because each schedule that it triggers stores a copy.
Payload = Annotated[Properties, AfterValidator(_check_size)]


def custom_key(namespace: str, event: str) -> str:
    return f"event:{namespace}:{event}"


def values_in(event: Event) -> Mapping[str, Any]:
    """The fields of a custom event that may name the partition of a job (T19): those of its payload. Of a CloudEvent
    they are those of its data, then its attributes (E11)."""
    payload = event.payload or {}
    if not event.id.startswith(CLOUDEVENT):
        return payload
    data = payload.get("data")
    return {**payload, **data} if isinstance(data, dict) else payload


class GivenEvent(Given):
    type: Literal["event"]
    event: str
    namespace: Name | None = None
    payload: Payload = Field(default_factory=dict)

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        key = custom_key(self.namespace or names.namespace, self.event)
        return Event(event_id, "event", key, at, at, payload=self.payload)

    def describe(self) -> str:
        return f"event {self.event}"


class EventTrigger(GatheringLeaf):
    """``count`` custom events of a type whose payload matches ``pattern`` (T11), in ``namespace`` or its own."""

    type: Literal["event"]
    event: EventType
    namespace: Name | None = None
    pattern: dict[str, Any] | None = None
    count: Count = 1

    given: ClassVar[GivenType | None] = GivenEvent

    @field_validator("pattern")
    @classmethod
    def _known_operators(cls, pattern: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if pattern is not None and info.context != STORED:  # it was checked when it was put
            patterns.check_pattern(pattern, "")
        return pattern

    def event_keys(self) -> tuple[str, ...]:
        return (custom_key(self.namespace or "", self.event),)

    def accepts(self, payload: Flattened, started_by: str | None = None) -> bool:
        return self.pattern is None or self._matcher.matches(payload)

    @cached_property
    def _matcher(self) -> patterns.Matcher:
        return patterns.Matcher(self.pattern or {})

    def missing(self, progress: Progress | None) -> str:
        only = f" where {patterns.describe(self.pattern)}" if self.pattern else ""
        return f"{count_of(self.lacking(progress), 'event')} {self.event}{only}"

    def arrived(self, progress: Progress) -> str:
        return f"{count_of(progress.count, 'event')} {self.event} came {since(progress)}"

    def noun(self) -> str:
        return f"event {self.event}"

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        kind = event.key.split(":", 2)[2]  # event:<namespace>:<type>, and a type may hold colons
        return {"type": kind, "payload": dict(event.payload or {})}

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"namespace": self.namespace or names.namespace})
