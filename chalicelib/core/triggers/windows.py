"""Windows: the partitions that the job of a period waits for, if these are others than its own (T26).

``{periods: 7, ending: period}`` are the last seven periods of the dataset, and ``{from: -6d, to: period}`` a span of
the calendar.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, ConfigDict, Field, Tag

from chalicelib.core import zones
from chalicelib.core.documents import Document, one_of
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, Instant, Millis, millis
from chalicelib.core.time.periods import LATEST, Calendar, Period, Unit, span_within
from chalicelib.core.triggers.parts import MAX_PARTS

# The longest of these units.
UNITS: dict[str, Millis] = {"day": DAY, "week": 7 * DAY, "month": 31 * DAY, "quarter": 92 * DAY, "year": 366 * DAY}
_BACK = re.compile(r"-([1-9][0-9]{0,4})([hdw])")


def _check_edge(text: str) -> str:
    if text != "period" and text not in UNITS and not _BACK.fullmatch(text):
        hint = "write -6d for six days before the period, or month for the month up to it"
        raise invalid("", f"period, a span back such as -6d, -12h or -4w, or {', '.join(UNITS)}", text, hint)
    return text


Edge = Annotated[str, AfterValidator(_check_edge)]
# Whether a window ends with the period of the job, or before it.
End = Literal["period", "before"]


class Last(Document):
    """So many ``periods`` of the dataset. The last of them belongs to the period of the job (``ending``), is the one
    before those that do, or the one after them."""

    periods: int = Field(ge=1, le=MAX_PARTS)
    ending: Literal["period", "before", "after"] = "period"

    def span(self, period: Period, calendar: Calendar) -> tuple[Instant, Instant]:
        """From which instant to before which the periods begin that belong to the window of the job of ``period``."""
        start, end = span_within(period, calendar)
        if self.ending == "before":
            end = start
        elif self.ending == "after":
            end = _following(calendar, end)
        return _back(calendar, end, self.periods), end

    def longest(self, per: Millis, each: Millis) -> Millis:
        """How long the window is at most, for jobs of this length and periods of that."""
        return self.periods * each

    @property
    def text(self) -> str:
        return f"the last {self.periods}{'' if self.ending == 'period' else f' up to the one {self.ending} it'}"


class Around(Document):
    """The periods that begin between two instants of the calendar: from ``since`` (``from``) before the period of the
    job, or from the beginning of its month, to the end of the period, or to before it."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)

    since: Edge = Field(alias="from")
    to: End = "period"

    def span(self, period: Period, calendar: Calendar) -> tuple[Instant, Instant]:
        """As that of `Last`."""
        return _since(self.since, period), period.end if self.to == "period" else period.start

    def longest(self, per: Millis, each: Millis) -> Millis:
        """As that of `Last`."""
        back = _BACK.fullmatch(self.since)
        if back is None:
            return max(UNITS.get(self.since, 0), per) + HOUR
        return _millis_of(back) + per + HOUR

    @property
    def text(self) -> str:
        return f"from {self.since} to {'its end' if self.to == 'period' else 'before it'}"


def _tag(given: Any) -> str:
    if isinstance(given, dict):
        return "@last" if "periods" in given else "@around"
    if isinstance(given, Last | Around):
        return "@last" if isinstance(given, Last) else "@around"
    return "@period" if given == "period" else "@other"


# All partitions of the period itself, or those of a window.
Of = Annotated[
    Annotated[Literal["period"], Tag("@period")] | Annotated[Last, Tag("@last")] | Annotated[Around, Tag("@around")],
    one_of(_tag, "period, {periods: 7, ending: period}, or {from: -6d, to: period}"),
]


@lru_cache(maxsize=1024)
def _back(calendar: Calendar, end: Instant, count: int) -> Instant:
    """The start of the first of ``count`` periods, the last of which is the last that begins before ``end``."""
    period = calendar.at(end - 1)
    for _ in range(count - 1):
        period = calendar.previous(period)
    return period.start


def _following(calendar: Calendar, end: Instant) -> Instant:
    """The end of the period after the last one that begins before ``end``."""
    return calendar.next(calendar.at(end - 1)).end if end <= LATEST else end


def _since(edge: str, period: Period) -> Instant:
    tz = zones.zone(period.zone)
    back = _BACK.fullmatch(edge)
    if tz is None or edge == "period":
        return period.start
    if back is None:
        return Calendar(cast("Unit", edge), 1, period.zone, tz).at(period.start).start
    if back[2] == "h":
        return period.start - _millis_of(back)
    wall = datetime.fromtimestamp(period.start // 1000, tz) - timedelta(milliseconds=_millis_of(back))
    return millis(wall.replace(fold=0))


def _millis_of(back: re.Match[str]) -> Millis:
    return int(back[1]) * {"h": HOUR, "d": DAY, "w": 7 * DAY}[back[2]]
