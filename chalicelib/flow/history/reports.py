"""Read the daily reports that the job `history_report` writes to the lake: one line per workflow (H3)."""

from __future__ import annotations

import json
import re
from typing import Any

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, iso
from chalicelib.ports import Page, Ports

ROOT = "history_report/json/"
# How many days back the newest report is searched; each day costs one listing.
MAX_DAYS = 14
# The maximum of lines that the job writes to a file. Such a file has at most 2 MB, so one read can return it.
LINES_A_FILE = 500

Row = dict[str, Any]


def newest_day(ports: Ports, namespace: str) -> str:
    """The latest day with a report. Raises ``not_found`` (404) if there is none within ``MAX_DAYS``."""
    now = ports.clock.now()
    days = [iso(now - back * DAY)[:10] for back in range(MAX_DAYS)]
    found = next((day for day in days if _files(ports, namespace, day) is not None), None)
    if found is None:
        raise _none(f"since {days[-1]}")
    return found


def report(ports: Ports, namespace: str, day: str, limit: int, cursor: str | None) -> Page[Row]:
    """A page of a day's report, by the name of the workflow; empty if the namespace had no runs that day.

    The cursor is the number of the first line. Raises ``not_found`` (404) if the day has no report.
    """
    files = _files(ports, namespace, day)
    if files is None:
        raise _none(f"of {day}")
    if cursor is not None and not re.fullmatch("[0-9]{1,9}", cursor):
        raise errors.bad_cursor()
    begin = int(cursor or "0")
    number, skipped = divmod(begin, LINES_A_FILE)
    found: list[Row] = []
    for file in files[number:]:
        text = ports.lake.text(ports.settings.lake_bucket, file) or ""
        found += [{"namespace": namespace, **json.loads(line)} for line in text.splitlines()]
        if len(found) - skipped > limit:
            break
    rest = found[skipped:]
    return Page(tuple(rest[:limit]), str(begin + limit) if len(rest) > limit else None)


def _files(ports: Ports, namespace: str, day: str) -> list[str] | None:
    """The files of the latest complete version of a day's report, in order; None if there is none."""
    names = ports.lake.names(ports.settings.lake_bucket, f"{ROOT}day={day}/")
    complete = [name.removesuffix("_SUCCESS") for name in names if name.endswith("/_SUCCESS")]
    if not complete:
        return None
    folder = f"{max(complete)}namespace={namespace}/"
    return sorted(name for name in names if name.startswith(folder) and name.endswith(".json"))


def _none(when: str) -> SluiceError:
    hint = "the app system.history writes the report of a day in the following night; see `runs` for newer runs"
    return SluiceError("not_found", f"expected a report, got none {when}", "day", hint)
