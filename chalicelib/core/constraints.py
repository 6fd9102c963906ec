"""Run constraints: conditions to be met before launch (C1). Each says what an unmet one does: abort, or wait."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from chalicelib.core.documents import Document, by_type


class Concurrency(Document):
    """Fewer than ``max`` active runs of the schedule's workflow (C1)."""

    type: Literal["concurrency"]
    max: int = Field(ge=1, le=100_000)
    on_unmet: Literal["abort", "wait"] = "abort"


AnyConstraint = Annotated[Annotated[Concurrency, Tag("@concurrency")], by_type(("concurrency",))]


def describe(constraint: AnyConstraint) -> str:
    return f"at most {constraint.max} runs of the workflow at a time, else {constraint.on_unmet}"
