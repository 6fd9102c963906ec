"""The content of the backups: a log for each aircraft, with all its departures from New York in 2013, busiest first."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from functools import cache
from typing import NamedTuple

from examples.flights import data

# The column with the number of the aircraft, counted from 0.
TAIL_AT = 11


class Log(NamedTuple):
    """One aircraft, and its flights as CSV with header."""

    tail: str
    flights: int
    content: bytes

    @property
    def key(self) -> str:
        return f"logs/{self.tail}.csv"


@cache
def busiest(count: int) -> tuple[Log, ...]:
    """The logs of the ``count`` aircraft that flew most, by number of flights and then by name."""
    header = b""
    lines: dict[bytes, list[bytes]] = defaultdict(list)
    for number in range((data.LAST_DAY - data.FIRST_DAY).days + 1):
        header, *rows = data.flights_csv(data.FIRST_DAY + timedelta(days=number)).splitlines(keepends=True)
        for row in rows:
            lines[row.split(b",", TAIL_AT + 1)[TAIL_AT]].append(row)
    lines.pop(b"NA", None)
    order = sorted(lines, key=lambda tail: (-len(lines[tail]), tail))[:count]
    return tuple(Log(tail.decode(), len(lines[tail]), header + b"".join(lines[tail])) for tail in order)
