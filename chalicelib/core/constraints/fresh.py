"""fresh: other workflows have succeeded recently (C7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import Field

from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation, Use
from chalicelib.core.documents import Duration, Reference
from chalicelib.core.instants import Instant, Millis, duration, format_duration, iso
from chalicelib.core.names import Names
from chalicelib.core.states import WaitReason
from chalicelib.core.triggers.program_status import status_key


class Fresh(Constraint):
    """Each of ``workflows`` has succeeded ``within`` a span before now (C7). ``on_unmet`` has no default."""

    wait_reason: ClassVar[WaitReason] = "upstream"
    once: ClassVar[bool] = True

    type: Literal["fresh"]
    workflows: tuple[Reference, ...] = Field(min_length=1, max_length=20)
    within: Duration
    on_unmet: OnUnmet

    @property
    def span(self) -> Millis:
        return duration(self.within)

    def describe(self) -> str:
        return f"{', '.join(self.workflows)} succeeded within {format_duration(self.span)}"

    def evaluate(self, s: Situation) -> Condition:
        last = {name: s.successes.get(name) for name in self.workflows}
        oldest = s.now - self.span
        stale = [_staleness(name, last[name]) for name in self.workflows if (at := last[name]) is None or at < oldest]
        return self.unmet("; ".join(stale)) if stale else self.met()

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"workflows": tuple(names.in_app(name) for name in self.workflows)})

    def references(self) -> Iterable[Use]:
        return tuple(Use("workflow", name) for name in self.workflows)

    def upstreams(self) -> tuple[str, ...]:
        return self.workflows

    def wake_keys(self, workflow: str) -> tuple[str, ...]:
        """The success of a workflow."""
        return tuple(status_key(name, "COMPLETED") for name in self.workflows)

    def awaits(self) -> str:
        return f"a success of {' or '.join(self.workflows)}"


def _staleness(name: str, at: Instant | None) -> str:
    return f"{name} has not succeeded yet" if at is None else f"{name} last succeeded at {iso(at)}"
