"""The expected days, computed again from the raw lines with the standard library alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from examples.flights import data
from examples.hours.data import ORIGINS, hours_of


class Expected(NamedTuple):
    """The figures of one day and airport: hours of the day, hours with a reading, degrees Fahrenheit, inches of
    rain."""

    hours: int
    readings: int
    mean_temp: float
    min_temp: float
    max_temp: float
    precip: float


def expected(days: Sequence[date]) -> dict[tuple[str, str], Expected]:
    """The expected values by day (``2013-03-10``) and airport."""
    return {(day.isoformat(), origin): _of(day, origin) for day in days for origin in ORIGINS}


def _of(day: date, origin: str) -> Expected:
    # The source has the local day in columns of its own, so that this needs no arithmetic with zones.
    rows = [row for row in csv.DictReader(data.weather_csv(day).decode().splitlines()) if row["origin"] == origin]
    temps, rain = ([float(row[name]) for row in rows if row[name] != "NA"] for name in ("temp", "precip"))
    return Expected(len(hours_of(day)), len(rows), sum(temps) / len(temps), min(temps), max(temps), sum(rain))
