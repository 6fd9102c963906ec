"""The field ``per`` of a schedule: one job for each period of this length (T25)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ValidationInfo, model_validator

from chalicelib.core import zones
from chalicelib.core.definitions.period import SINCE, UNTIL, Each, check_each
from chalicelib.core.documents import STORED, Sparse, Zone
from chalicelib.core.errors import invalid
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import LENGTHS, Names
from chalicelib.core.time.periods import Unit, Weekday, shown_twice

_LABELS: Mapping[Unit, str] = {
    "minute": "%Y-%m-%dT%H:%M",
    "hour": "%Y-%m-%dT%H",
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "quarter": "%Y-Q%q",
    "year": "%Y",
}


class Per(Sparse):
    """One job for each period of this length, in ``zone``; None: in that of the schedule. A text in place of the object
    is ``each``."""

    omitted: ClassVar[Collection[str]] = ("zone", "week_starts")

    each: Annotated[Each, BeforeValidator(check_each, json_schema_input_type=Each)]
    zone: Zone | None = None
    week_starts: Weekday = "mon"

    @model_validator(mode="before")
    @classmethod
    def _from_each(cls, given: Any) -> Any:
        return {"each": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _starts_a_week(self) -> Per:
        if self.week_starts != "mon" and self.each != "week":
            hint = "remove week_starts, or write each: week"
            raise invalid("week_starts", "week_starts only with each: week", f"each: {self.each}", hint)
        return self

    def check(self, zone: str, info: ValidationInfo) -> None:
        """Raise ``invalid`` if the clocks of the zone show several periods again, so that two would have one name."""
        tz, length = zones.zone(self.zone or zone), LENGTHS[self.each][2]
        if info.context == STORED or tz is None or length is None or self.each in ("day", "week"):
            return
        if shown_twice(tz, SINCE, UNTIL).total_seconds() * 1000 > length:
            expected = f"periods whose names the clocks of {self.zone or zone} show once"
            hint = f"write per: {{each: {self.each}, zone: UTC}}, or each: hour"
            raise invalid("per", expected, self.each, hint)

    def names(self, zone: str) -> Names | None:
        """The names of the periods: ``each`` is the key, and the label the value. None if the present rules of time
        zones have no such zone."""
        label = "week-%Y-%m-%d" if self.week_starts != "mon" else _LABELS[LENGTHS[self.each][0]]
        return period_names.of(self.each, f"{self.each}={label}", self.zone or zone, self.week_starts)
