"""The expected features, computed again from the raw lines with the standard library alone."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from examples.flights import data

WINDOW_DAYS = 7


class Expected(NamedTuple):
    """The figures of one day and origin: the flights, and those whose aircraft flew in the week before.

    ``route_flights`` is the sum, over the flights, of the number of flights of their route in that week.
    ``route_mean_delay`` is the mean, over the flights, of their route's mean delay in that week; None if no route has
    one."""

    flights: int
    known_aircraft: int
    route_flights: int
    route_mean_delay: float | None


def expected(days: Sequence[date]) -> dict[tuple[str, str], Expected]:
    """The expected values by day (``2013-02-01``) and origin."""
    rows = {day: _rows(day) for day in {day - timedelta(ago) for day in days for ago in range(WINDOW_DAYS + 1)}}
    return {
        (day.isoformat(), origin): _of(rows[day], origin, [rows[day - timedelta(n)] for n in range(1, WINDOW_DAYS + 1)])
        for day in days
        for origin in sorted({row["origin"] for row in rows[day]})
    }


Row = dict[str, str]


def _rows(day: date) -> list[Row]:
    return list(csv.DictReader(data.flights_csv(day).decode().splitlines()))


def _of(flights: Sequence[Row], origin: str, week: Sequence[Sequence[Row]]) -> Expected:
    own = [row for row in flights if row["origin"] == origin]
    counts: dict[str, int] = defaultdict(int)
    delays: dict[str, list[int]] = defaultdict(list)
    aircraft = {row["tailnum"] for day in week for row in day} - {"NA"}
    for row in (row for day in week for row in day if row["origin"] == origin):
        counts[row["dest"]] += 1
        if row["dep_delay"] != "NA":
            delays[row["dest"]].append(int(row["dep_delay"]))
    means = [round(sum(of) / len(of), 4) for row in own if (of := delays[row["dest"]])]
    return Expected(
        len(own),
        sum(row["tailnum"] in aircraft for row in own),
        sum(counts[row["dest"]] for row in own),
        sum(means) / len(means) if means else None,
    )
