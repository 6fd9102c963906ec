"""Who is told when something goes wrong, and how often at most (W9, H5).

A rule names what it is about and where the notice goes: any target without a lifecycle. Notices are messages, with the
tries and the dead letters of any delivery. They come grouped: the first at once, what follows it within five minutes
together at the end of these, and so on until it is quiet for that long.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from chalicelib.core.documents import Document
from chalicelib.core.errors import invalid
from chalicelib.core.targets.registry import AnyTarget

What = Literal["failed", "aborted", "missed_start", "missed_end"]


class Notify(Document):
    """Tell ``to`` when something of this happens: a run has ``failed`` after its last attempt, or could not be
    delivered; a job was ``aborted``; a start or an end was not in time."""

    on: tuple[What, ...] = Field(min_length=1)
    to: AnyTarget

    @field_validator("on")
    @classmethod
    def _once_each(cls, on: tuple[What, ...]) -> tuple[What, ...]:
        return tuple(dict.fromkeys(on))

    @field_validator("to")
    @classmethod
    def _takes_messages(cls, to: AnyTarget) -> AnyTarget:
        if to.has_lifecycle:
            hint = "let a schedule with a program_status trigger run what is to follow a failure"
            raise invalid("", "a target that takes a message", f"one of type {to.type}", hint)
        return to
