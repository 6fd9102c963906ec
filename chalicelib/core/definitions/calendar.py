"""The document of a holiday calendar: days on which nobody works, for the working days of times (T30)."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from chalicelib.core.documents import Described
from chalicelib.core.errors import invalid
from chalicelib.core.time import days
from chalicelib.core.time.days import Days, Excluded

_WEEK = ("mon", "tue", "wed", "thu", "fri")


class HolidayCalendar(Described):
    """The days that are no working days, besides Saturdays and Sundays. Time triggers that name the calendar leave them
    out when they count working days (T30)."""

    days: tuple[Excluded, ...] = Field(min_length=1)

    @field_validator("days", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _are_days(cls, given: Any) -> tuple[Excluded, ...]:
        entries = days.parse(given, "")
        for number, entry in enumerate(entries):
            if not isinstance(entry, str) and len(entry["from"]) > len("2026-12-25"):
                raise invalid(str(number), "whole days", dict(entry), "write dates without a time")
        if days.is_contradiction(days.read(_WEEK, "UTC"), days.read(entries, "UTC")):
            hint = "remove a day from Monday to Friday on which people work"
            raise invalid("", "holidays that leave a working day", list(entries), hint)
        return entries

    def holidays(self) -> Days:
        return days.read(self.days, "UTC")  # whole days are the same in each zone


def calendar_key(name: str) -> str:
    """The key under which the reverse index lists the schedules that name a calendar."""
    return f"calendar:{name}"
