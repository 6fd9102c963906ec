"""calendar: only on certain days, or on all but certain days."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from chalicelib.core import instants
from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.states import WaitReason
from chalicelib.core.time import exclusions
from chalicelib.core.time.exclusions import Excluded

MAX_STEPS = 400  # from one day, or exclusion, to the next; more than seven years of a day each week that is left out


class Calendar(Constraint):
    """On one of the days and windows ``only``, if there are such, and on none of ``excluding``. The entries are those
    that a time trigger may leave out (T6), in a zone."""

    wait_reason: ClassVar[WaitReason] = "time"

    type: Literal["calendar"]
    only: tuple[Excluded, ...] = ()
    excluding: tuple[Excluded, ...] = ()
    zone: str | None = None
    on_unmet: OnUnmet = "wait"

    @field_validator("only", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _are_days(cls, given: Any) -> tuple[Excluded, ...]:
        return exclusions.parse(given, "")

    @field_validator("excluding", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _leave_a_day(cls, given: Any) -> tuple[Excluded, ...]:
        return exclusions.check(given, "")

    @model_validator(mode="after")
    def _names_days(self) -> Calendar:
        instants.zone(self.zone or "UTC")
        if not self.only and not self.excluding:
            raise invalid("", "days in only, in excluding, or in both", "neither")
        return self

    def describe(self) -> str:
        parts = [f"only on {exclusions.describe(self.only)}"] if self.only else []
        parts += [f"not on {exclusions.describe(self.excluding)}"] if self.excluding else []
        return f"{', '.join(parts)} in {self.zone or 'UTC'}"

    def evaluate(self, s: Situation) -> Condition:
        opens = self.opens_at(s.now)
        return self.unmet("none of these days is to come") if opens is None else self.met_from(opens, s.now)

    def opens_at(self, now: Instant) -> Instant | None:
        """The first instant from ``now`` on that the calendar allows; None if there is none, or none in sight."""
        zone, at = self.zone or "UTC", now
        for _ in range(MAX_STEPS):
            if (end := exclusions.end_of(self.excluding, zone, at)) is not None:
                at = end
            elif not self.only or exclusions.end_of(self.only, zone, at) is not None:
                return at
            elif (begin := exclusions.next_begin(self.only, zone, at)) is not None:
                at = begin
            else:
                break
        return None

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"zone": self.zone or names.zone})
