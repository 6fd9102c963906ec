"""The hourly weather of New York's airports, as a source delivers it: a folder for each airport and hour in UTC."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from chalicelib.core.instants import zone
from examples.flights import data

ZONE = zone("America/New_York")
ORIGINS = ("EWR", "JFK", "LGA")


class Hour(NamedTuple):
    """One hour at one airport; ``start`` is in UTC."""

    origin: str
    start: datetime

    @property
    def folder(self) -> str:
        """The folder below the prefix of the dataset."""
        return f"origin={self.origin}/dt={self.start:%Y-%m-%d}/hour={self.start:%H}"


def hours_of(day: date) -> list[datetime]:
    """The hours that begin in a day of New York, in UTC and in order: 23, 24 or 25."""
    midnights = (datetime(at.year, at.month, at.day, tzinfo=ZONE) for at in (day, day + timedelta(days=1)))
    begin, end = (midnight.astimezone(UTC) for midnight in midnights)
    return [begin + timedelta(hours=number) for number in range((end - begin) // timedelta(hours=1))]


def readings(day: date) -> dict[Hour, bytes]:
    """The file of each airport and hour for which the source has a reading: a header and one line."""
    header, *lines = data.weather_csv(day).splitlines(keepends=True)
    rows = csv.DictReader(line.decode() for line in (header, *lines))
    named = (Hour(row["origin"], datetime.fromisoformat(row["time_hour"])) for row in rows)
    return {hour: header + line for hour, line in zip(named, lines, strict=True)}


def missing(day: date) -> list[Hour]:
    """The airports and hours of a day for which the source has no reading."""
    there = readings(day)
    wanted = (Hour(origin, start) for origin in ORIGINS for start in hours_of(day))
    return [hour for hour in wanted if hour not in there]


def without_a_reading(day: date) -> bytes:
    """The file of an hour without a reading: the header alone."""
    return data.weather_csv(day).splitlines(keepends=True)[0]
