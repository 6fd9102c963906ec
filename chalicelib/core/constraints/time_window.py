"""time_window: a job launches only within certain hours of the day (C3)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import ValidationInfo, model_validator

from chalicelib.core import zones
from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.documents import check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import HOUR
from chalicelib.core.names import Names
from chalicelib.core.states import WaitReason
from chalicelib.core.time import windows
from chalicelib.core.time.windows import Day


class TimeWindow(Constraint):
    """Within ``[start, end)`` of the day in a zone; the window may span midnight. It begins on each of ``days``
    (C3)."""

    wait_reason: ClassVar[WaitReason] = "time"

    type: Literal["time_window"]
    start: str
    end: str
    zone: str | None = None
    days: tuple[Day, ...] = ()
    on_unmet: OnUnmet = "wait"

    @model_validator(mode="after")
    def _is_a_window(self, info: ValidationInfo) -> TimeWindow:
        windows.parse_clock(self.start, "start")
        windows.parse_clock(self.end, "end", is_end=True)
        check_zone(self.zone or "UTC", info)
        if self.start == self.end:
            hint = "omit the window to allow the whole day"
            raise invalid("end", "an end that differs from the start", self.end, hint)
        return self

    @property
    def window(self) -> windows.Window:
        return windows.Window(self.start, self.end, self.zone or "UTC", self.days)

    @property
    def wall_zone(self) -> str | None:
        return self.zone if self.zone != "UTC" else None

    def describe(self) -> str:
        return windows.describe(self.window)

    def evaluate(self, s: Situation) -> Condition:
        if zones.zone(self.zone or "UTC") is None:
            return self.patient().unmet(zones.unknown(str(self.zone)), s.now + HOUR)
        inside = windows.is_inside(self.window, s.now)
        return self.met_from(s.now if inside else windows.next_opening(self.window, s.now), s.now)

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"zone": self.zone or names.zone})
