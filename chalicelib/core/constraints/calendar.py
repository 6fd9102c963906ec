"""calendar: only on certain days, or on all but certain days (C17)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from chalicelib.core import zones
from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.documents import check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import HOUR, Instant
from chalicelib.core.names import Names
from chalicelib.core.states import WaitReason
from chalicelib.core.time import days
from chalicelib.core.time.days import Excluded, Exclusions


class Calendar(Constraint):
    """A job may launch on the days and in the windows ``only`` (all, if empty), but on none of ``excluding`` (C17).

    Entries have the form of those that a time trigger excludes (T6), in a zone."""

    wait_reason: ClassVar[WaitReason] = "time"

    type: Literal["calendar"]
    only: tuple[Excluded, ...] = ()
    excluding: Exclusions = ()
    zone: str | None = None
    on_unmet: OnUnmet = "wait"

    @field_validator("only", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _are_days(cls, given: Any) -> tuple[Excluded, ...]:
        return days.parse(given, "")

    @model_validator(mode="after")
    def _allows_a_day(self, info: ValidationInfo) -> Calendar:
        check_zone(self.zone or "UTC", info)
        if not self.only and not self.excluding:
            raise invalid("", "a list of days: only, excluding or both", "no list")
        # Days that are past are no contradiction: an app with them can still be deployed.
        if self.excluding and days.is_contradiction(self._only("UTC"), days.read(self.excluding, "UTC")):
            hint = "remove from excluding a day on which jobs may start"
            raise invalid("excluding", "at least one day that is not excluded", list(self.excluding), hint)
        return self

    @property
    def wall_zone(self) -> str | None:
        return self.zone if self.zone != "UTC" else None

    def describe(self) -> str:
        parts = [f"only on {days.describe(self.only)}"] if self.only else []
        parts += [f"not on {days.describe(self.excluding)}"] if self.excluding else []
        return f"{', '.join(parts)} in {self.zone or 'UTC'}"

    def evaluate(self, s: Situation) -> Condition:
        if zones.zone(self.zone or "UTC") is None:
            return self.patient().unmet(zones.unknown(str(self.zone)), s.now + HOUR)
        opens = self.opens_at(s.now)
        if opens is None:
            return self.unmet("no allowed day is left; replace the days of the calendar, or remove it")
        return self.met_from(opens, s.now)

    def opens_at(self, now: Instant) -> Instant | None:
        """The first instant from ``now`` on that the calendar allows; None if there is none within 40 years."""
        zone = self.zone or "UTC"
        return days.first_allowed(self._only(zone), days.read(self.excluding, zone), now)

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"zone": self.zone or names.zone})

    def _only(self, zone: str) -> days.Days | None:
        return days.read(self.only, zone) if self.only else None
