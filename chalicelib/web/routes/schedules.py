"""Routes of schedules: their documents, jobs, runs, versions and upcoming fires. Actions are in `actions.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, Response

from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.http import body, caller, day, document, gone, if_match, number, validated
from chalicelib.web.paging import MAX_FIRES, PAGING, Read, listing
from chalicelib.web.quotas import check_schedule
from chalicelib.web.routes.definitions import APP
from chalicelib.web.routes.history import in_state
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.definitions.schedule import Schedule
    from chalicelib.core.rows.schedule import ScheduleState


routes = Blueprint(__name__)


ONE = APP + "/schedules/{name}"


LAST_DAY = 253_402_300_799_999  # ms: 31 December 9999, the last day of the calendar


@route(routes, "GET", APP + "/schedules", needs="read", query=("tag", "workflow", "state", *PAGING))
def list_schedules(ns: str, app: str) -> dict[str, Any]:
    """List the schedules of an app that match every given filter: a tag, the workflow, the state."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.schedules.bulk import fits
    from chalicelib.flow.views.views import schedule_view
    from chalicelib.ports import Page
    from chalicelib.web.filters import filters

    require(ports(), "app", f"{ns}.{app}")
    wanted = filters(routes.current_request, ns, app)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = ports().catalog.schedules(f"{ns}.{app}", limit, cursor)
        found = (_living(name) for name in page.items)
        return Page(tuple(schedule_view(*each) for each in found if each and fits(wanted, *each)), page.cursor)

    return listing(routes.current_request, read, lambda view: view)


@route(routes, "PUT", ONE, needs="define", body="NewSchedule", headers=(IF_MATCH,), status=(200, 201))
def put_schedule(ns: str, app: str, name: str) -> Response:
    """Create or replace a schedule. A new schedule is disabled and a replaced one keeps its state, unless ``enabled``
    is given."""
    from chalicelib.core.definitions.schedule import NewSchedule
    from chalicelib.core.time import expressions
    from chalicelib.flow.lookup import require
    from chalicelib.flow.schedules.actions import put

    request = routes.current_request
    require(ports(), "app", f"{ns}.{app}")
    given = body(request)
    sent = validated(NewSchedule, given)
    check_schedule(ns, f"{ns}.{app}.{name}", sent)
    _, new = put(ports(), f"{ns}.{app}.{name}", sent, caller(request), if_match(request))
    return shown(ns, app, name, 201 if new else 200, expressions.notes(given))


@route(routes, "GET", ONE, needs="read")
def get_schedule(ns: str, app: str, name: str) -> Response:
    """Read a schedule."""
    return shown(ns, app, name)


@route(routes, "DELETE", ONE, needs="define", headers=(IF_MATCH,), status=(204,))
def delete_schedule(ns: str, app: str, name: str) -> Response:
    """Delete a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    from chalicelib.flow.schedules.actions import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


@route(routes, "GET", ONE + "/jobs", needs="read", query=PAGING)
def schedule_jobs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the waiting jobs of a schedule."""
    from chalicelib.flow.lookup import existing
    from chalicelib.flow.views.lists import jobs_of_schedule
    from chalicelib.flow.views.queues import Queues

    full = f"{ns}.{app}.{name}"
    existing(ports(), full)
    queues = Queues(ports())
    read = queues.holding.page(partial(jobs_of_schedule, ports(), full))
    return listing(routes.current_request, read, queues.job)


@route(routes, "GET", ONE + "/runs", needs="read", query=("state", "day", *PAGING))
def schedule_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the runs of a schedule, newest first. A deleted schedule keeps its history."""
    from chalicelib.flow.views.views import run_view

    request = routes.current_request
    full = known(ns, app, name)
    read = _of_day(day(request), partial(ports().runs.runs, "schedule", full))
    return listing(request, in_state(request, read), partial(run_view, prices=ports().settings.prices))


@route(routes, "GET", ONE + "/records", needs="read", query=PAGING)
def schedule_records(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the aborted, dropped, coalesced, skipped and expired jobs of a schedule, newest first."""
    from chalicelib.flow.views.views import record_view

    full = known(ns, app, name)
    return listing(routes.current_request, partial(ports().runs.records, "schedule", full), record_view)


@route(routes, "GET", ONE + "/why", needs="read")
def why_schedule(ns: str, app: str, name: str) -> dict[str, Any]:
    """Explain why a schedule has not run: its state, and what its jobs wait for."""
    from chalicelib.flow.views import explain

    return unseen.why(explain.why_schedule(ports(), f"{ns}.{app}.{name}"), sees(routes.current_request))


@route(routes, "GET", ONE + "/versions", needs="read", query=PAGING)
def schedule_versions(ns: str, app: str, name: str) -> dict[str, Any]:
    """List all versions of a schedule's definition, newest first, each with its changes."""
    from chalicelib.core.errors import bad_cursor
    from chalicelib.flow.views.views import version_view
    from chalicelib.ports import Page

    full = known(ns, app, name)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        if cursor is not None and not re.fullmatch("[0-9]{1,9}", cursor):
            raise bad_cursor()
        # One more than a page: the oldest version of the page is compared with the one before it.
        rows = ports().catalog.versions(full, limit + 1, int(cursor) if cursor is not None else None)
        pairs = tuple(zip(rows, (*rows[1:], None), strict=True))[:limit]
        return Page(pairs, str(pairs[-1][0].version) if len(rows) > limit else None)

    return listing(routes.current_request, read, lambda pair: version_view(*pair))


@route(routes, "GET", ONE + "/preview", needs="read", query=("count",))
def preview(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the next fires of a schedule's time triggers. For a disabled schedule, these are the fires if it were
    enabled now."""
    from chalicelib.core.fires import upcoming
    from chalicelib.core.instants import iso
    from chalicelib.core.triggers import tree
    from chalicelib.flow.lookup import existing

    count = number(routes.current_request, "count", 10, MAX_FIRES)
    _, schedule = existing(ports(), f"{ns}.{app}.{name}")
    timer = ports().rows.get(Timer, f"{ns}.{app}.{name}")
    fires = upcoming.fires(schedule, ports().clock.now(), count, timer, f"{ns}.{app}.{name}")
    shown = [fire for fire in fires if fire.due <= LAST_DAY]
    return {
        "items": [iso(fire.nominal) for fire in shown],
        "due": [iso(fire.due) for fire in shown],
        "fires_per_day": upcoming.per_day(schedule),
        "description": tree.describe(schedule.trigger),
        "next_cursor": None,
    }


def shown(ns: str, app: str, name: str, status: int = 200, notes: Sequence[str] = ()) -> Response:
    """A schedule with the number of fires per day, which shows a cron expression that fires too often (T1), and with
    notes on its expressions, if there are any."""
    from chalicelib.core.fires import upcoming
    from chalicelib.flow.lookup import existing
    from chalicelib.flow.views.views import schedule_view

    schedule_state, schedule = existing(ports(), f"{ns}.{app}.{name}")
    noted = {"notes": list(notes)} if notes else {}
    daily = upcoming.per_day(schedule)
    return document({**schedule_view(schedule_state, schedule), "fires_per_day": daily, **noted}, status)


def _living(full: str) -> tuple[ScheduleState, Schedule] | None:
    """A schedule of a list; None if it was deleted after the list was read."""
    from chalicelib.core.errors import SluiceError
    from chalicelib.flow.lookup import existing

    try:
        return existing(ports(), full)
    except SluiceError as error:
        if error.code != "not_found":
            raise
        return None


def known(ns: str, app: str, name: str) -> str:
    """The full name of a schedule that exists or existed. Raises ``not_found`` otherwise."""
    from chalicelib.flow.lookup import missing

    full = f"{ns}.{app}.{name}"
    if ports().rows.get(ScheduleState, full) is None:
        raise missing(ports(), "schedule", full)
    return full


def _of_day(wanted: str | None, read: Read) -> Read:
    """The runs of one ``?day`` of a schedule: a run belongs to the day of its claim. An older run ends the list."""
    from chalicelib.core.instants import iso
    from chalicelib.ports import Page

    if wanted is None:
        return read

    def kept(limit: int, cursor: str | None) -> Page[Any]:
        page = read(limit, cursor)
        days = [iso(run.claimed_at)[:10] for run in page.items]
        runs = tuple(run for run, day_of in zip(page.items, days, strict=True) if day_of == wanted)
        return Page(runs, None if days and days[-1] < wanted else page.cursor)

    return kept
