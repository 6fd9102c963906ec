"""The documents of the events that a user gives to a dry run, which `core/jobs/dry_run.py` replays.

The document of each kind is in the module of the leaf that counts its events; `core/triggers/registry.py` lists them.
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
    """An event for a dry run. ``at`` is the instant at which the event is accepted, RFC 3339; default: that of the
    request."""

    at: str | None = None
    type: str

    timed: ClassVar[bool] = False  # as from a timer: the dry run finds its leaf by the type, not by an event key

    @field_validator("at")
    @classmethod
    def _is_an_instant(cls, at: str | None) -> str | None:
        if at is not None:
            instants.parse_instant(at, "")
        return at

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        """The event that Sluice would build from this document, accepted at ``at``."""
        raise NotImplementedError

    def describe(self) -> str:
        raise NotImplementedError


GivenType = type[Given]  # an alias, because the field `type` of a leaf hides the built-in in its class body


class GivenTime(Given):
    """A fire of a timed leaf: an instant of a time leaf, the end of an elapsed span, or the absence of events."""

    type: Literal["time", "elapsed", "absent"]

    timed: ClassVar[bool] = True

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        return Event(event_id, self.type, f"{self.type}:{names.namespace}", at, at)

    def describe(self) -> str:
        return self.type
