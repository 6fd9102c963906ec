"""Lists over several schedules or days, page by page. A cursor marks the next page and is opaque to callers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from chalicelib.core import errors
from chalicelib.core.instants import DAY, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.ports import Page, Ports

T = TypeVar("T")

# How many days a list without a day contains: each day costs one query per shard. Older rows are listed by their day.
MAX_DAYS = 14


def jobs_of_schedule(ports: Ports, schedule: str, limit: int, cursor: str | None) -> Page[Job]:
    schedule_state = ports.rows.get(ScheduleState, schedule)
    if schedule_state is None:
        return Page(())
    page = ports.jobs.jobs(schedule, schedule_state.generation, limit, cursor)
    return Page(tuple(job for job in page.items if not job.closed), page.cursor)


def runs_of_namespace(ports: Ports, namespace: str, day: str | None, limit: int, cursor: str | None) -> Page[Run]:
    return _by_day(ports, namespace, day, limit, cursor, ports.runs.runs)


def records_of_namespace(ports: Ports, namespace: str, day: str | None, limit: int, cursor: str | None) -> Page[Record]:
    return _by_day(ports, namespace, day, limit, cursor, ports.runs.records)


def _by_day(
    ports: Ports,
    namespace: str,
    day: str | None,
    limit: int,
    cursor: str | None,
    read: Callable[[str, str, int, str | None], Page[T]],
) -> Page[T]:
    """Rows of one day, or of the days back from today, newest first."""
    today = ports.clock.now()
    days = [day] if day else [iso(today - back * DAY)[:10] for back in range(MAX_DAYS)]
    begin, inner = parse_cursor(cursor)
    found: list[T] = []
    for each in days:
        if begin is not None and each > begin:
            continue
        page = read("day", f"{namespace}#{each}", limit - len(found), inner if each == begin else None)
        found += page.items
        if page.cursor is not None:
            return Page(tuple(found), json.dumps([each, page.cursor]))
        if len(found) >= limit:
            older = next((other for other in days if other < each), None)
            return Page(tuple(found), json.dumps([older, None]) if older else None)
    return Page(tuple(found))


def parse_cursor(cursor: str | None) -> tuple[str | None, str | None]:
    """The schedule or day at which a page begins, and the cursor within it. Raises ``bad_cursor``."""
    if cursor is None:
        return None, None
    try:
        match json.loads(cursor):
            case [str(outer), (str() | None) as inner]:
                return outer, inner
    except (ValueError, RecursionError):
        pass
    raise errors.bad_cursor()
