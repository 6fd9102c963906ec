"""The field ``incomplete`` of a schedule: when the job of a period starts although partitions are missing (T28)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.triggers.parts import MAX_PARTS


class Incomplete(Document):
    """When ``after`` has passed since the end of the period, a leaf may lack any number of partitions. It may lack
    ``allow`` of them when the last one has had as long to come as its own period takes: an hour, of hours."""

    allow: Annotated[int, Field(ge=1, lt=MAX_PARTS)] | None = None
    after: Duration | None = None

    @model_validator(mode="after")
    def _says_when(self) -> Incomplete:
        if self.allow is None and self.after is None:
            hint = "write {allow: 1} for one missing partition, or {after: 6h} for any"
            raise invalid("", "allow, after, or both", "neither", hint)
        return self

    @property
    def span(self) -> Millis | None:
        return duration(self.after) if self.after is not None else None
