"""The field ``period`` of a dataset: which period each of its partitions is, and how folders name it (T24)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from chalicelib.core import instants, zones
from chalicelib.core.documents import ONE_LINE, STORED, Sparse, Zone
from chalicelib.core.errors import SluiceError, invalid, meant
from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import LENGTHS, Names
from chalicelib.core.time.periods import Weekday, shown_twice

Each = Literal[
    "15m", "20m", "30m", "hour", "2h", "3h", "4h", "6h", "8h", "12h", "day", "week", "month", "quarter", "year"
]
# The years whose changes of the clocks are asked about. Zones have changed their rules before, and data is written now.
SINCE, UNTIL = 2020, 2037


def check_each(each: object) -> object:
    """Raise ``invalid`` for a text that is no length of a period, with the lengths that are near."""
    if isinstance(each, str) and each not in LENGTHS:
        raise invalid("", f"one of {', '.join(LENGTHS)}", each, _near(each))
    return each


def _near(each: str) -> str | None:
    try:
        span = instants.duration(each, "")
    except SluiceError:
        return meant(each.lower(), LENGTHS)
    same = [name for name, (_, _, length) in LENGTHS.items() if length == span]
    if same:
        return f"write {same[0]}"
    if span < 15 * MINUTE:
        return "a period has at least 15 minutes"
    if span > DAY:
        return "write day, week, month, quarter or year"
    unit, larger = ("minute", "an hour") if span < HOUR else ("hour", "a day")
    fitting = [name for name, (of, count, _) in LENGTHS.items() if of == unit and count > 1]
    return f"periods of {each} do not fill {larger} without a rest; write one of {', '.join(fitting)}"


class PeriodRule(Sparse):
    """Each partition of the dataset is a period of this length in ``zone`` (T24). ``format`` has the folders that name
    it, with the fields of strftime: ``dt=%Y-%m-%d/hour=%H``. ``week_starts``: the first day of a week."""

    omitted: ClassVar[Collection[str]] = ("week_starts",)

    each: Annotated[Each, BeforeValidator(check_each, json_schema_input_type=Each)]
    format: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
    zone: Zone = "UTC"
    week_starts: Weekday = "mon"

    @model_validator(mode="after")
    def _determines_a_period(self, info: ValidationInfo) -> PeriodRule:
        unit, count, _ = LENGTHS[self.each]
        if self.week_starts != "mon" and unit != "week":
            hint = "remove week_starts, or write each: week"
            raise invalid("week_starts", "week_starts only with each: week", f"each: {self.each}", hint)
        form = period_names.parse(self.format)
        period_names.check(form, unit, count, self.week_starts)
        if info.context != STORED:
            self._check_overlaps(form)
        return self

    def _check_overlaps(self, form: period_names.Format) -> None:
        """Raise ``invalid`` if the clocks show several periods again, so that a name would have two stretches of
        time."""
        tz, length = zones.zone(self.zone), LENGTHS[self.each][2]
        if tz is None or length is None or length >= DAY or period_names.has_offset(form):
            return
        overlap = shown_twice(tz, SINCE, UNTIL)
        if overlap.total_seconds() * 1000 > length:
            expected = f"an offset (%z) in the format, because the clocks of {self.zone} show some periods twice"
            hint = "add %z to the format, such as %H%z, or name folders in UTC (zone: UTC)"
            raise invalid("format", expected, self.format, hint)

    @property
    def names(self) -> Names | None:
        """How folders name the periods; None if the present rules of time zones have no such zone."""
        return period_names.of(self.each, self.format, self.zone, self.week_starts)
