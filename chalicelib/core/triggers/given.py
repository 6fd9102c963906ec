"""An event that a dry run is given: what the document of each kind answers, so that `core/jobs/dry_run.py` can play it.

The documents lie beside the leaves that count their events; `core/triggers/registry.py` lists them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator

from chalicelib.core import instants
from chalicelib.core.documents import Document
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event


class Given(Document):
    """``at``: when it is accepted, RFC 3339; the moment of the request if left out."""

    at: str | None = None
    type: str

    timed: ClassVar[bool] = False  # it is found by its type, as a timer would tell it, and by no key

    @field_validator("at")
    @classmethod
    def _is_an_instant(cls, at: str | None) -> str | None:
        if at is not None:
            instants.parse_instant(at, "")
        return at

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        """The event that it would be."""
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError


GivenType = type[Given]  # a leaf has a field `type`, so it cannot say this itself


class GivenTime(Given):
    """An instant of the schedule's times, or that a span has elapsed, or a feed is absent."""

    type: Literal["time", "elapsed", "absent"]

    timed: ClassVar[bool] = True

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        return Event(event_id, self.type, f"{self.type}:{names.namespace}", at, at)

    def describe(self) -> str:
        return self.type
