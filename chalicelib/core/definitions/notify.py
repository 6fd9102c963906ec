"""The rules for notices: which failures cause one, and the target to which Sluice sends it (W9, H5).

The target has no lifecycle. A notice is a message, so it has tries and dead letters as any delivery has.
`core/notices/alerts.py` groups notices.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from chalicelib.core.documents import ONCE_EACH, Document
from chalicelib.core.errors import invalid
from chalicelib.core.targets.registry import AnyTarget

What = Literal["failed", "aborted", "missed_start", "missed_end"]


class Notify(Document):
    """The kinds of events ``on`` which Sluice sends a notice to the target ``to``.

    ``failed``: a run failed after its last attempt, or a delivery failed. ``aborted``: a job was aborted.
    ``missed_start``, ``missed_end``: a start or an end missed its deadline.
    """

    on: Annotated[tuple[What, ...], Field(min_length=1), ONCE_EACH]
    to: AnyTarget

    @field_validator("to")
    @classmethod
    def _takes_messages(cls, to: AnyTarget) -> AnyTarget:
        if to.has_lifecycle:
            hint = "to run a workflow after a failure, use a schedule with a program_status trigger"
            raise invalid("", "a target that takes a message", f"one of type {to.type}", hint)
        return to
