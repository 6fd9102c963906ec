"""Routes about many schedules at once: their list, a glance at some, what waits now, the fires ahead, the limits."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Request

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.documents import check_name
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, MINUTE, iso
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.lookup import existing, require
from chalicelib.flow.schedules.bulk import fits
from chalicelib.flow.views.ahead import MAX_FIRES, between
from chalicelib.flow.views.limits import named, of_namespace
from chalicelib.flow.views.present import MAX_ROWS, now_of
from chalicelib.flow.views.schedule_list import MAX_LIMIT, Wanted, glance, rows_of
from chalicelib.flow.views.views import schedule_view
from chalicelib.ports import Page
from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.bodies import Glance
from chalicelib.web.filters import filters, filters_of_namespace
from chalicelib.web.http import Json, instant, number, parse, query
from chalicelib.web.paging import listing
from chalicelib.wiring import ports

DEFAULT_SCHEDULES = 500


def list_schedules(request: Request, ns: str, app: str) -> Json:
    """List the schedules of an app that match every given filter: a tag, the workflow, the state."""
    require(ports(), "app", f"{ns}.{app}")
    wanted = filters(request, ns, app)

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = ports().catalog.schedules(f"{ns}.{app}", limit, cursor)
        found = (_living(name) for name in page.items)
        return Page(tuple(schedule_view(*each) for each in found if each and fits(wanted, *each)), page.cursor)

    return listing(request, read)


def find_schedules(request: Request, ns: str) -> Json:
    """List the schedules of a namespace in short that match every given filter, by name. A request reads a bounded
    number of schedules, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    app = query(request, "app")
    if app is not None:
        check_name(app, "app")
    wanted = Wanted(app, filters_of_namespace(request, ns, app), query(request, "q") or "")
    read = partial(rows_of, ports(), ns, wanted)
    return listing(request, read, default=DEFAULT_SCHEDULES, most=MAX_LIMIT)


def glance_schedules(request: Request, ns: str) -> Json:
    """Show why each of some schedules does not run, with its next fire, its waiting jobs and its last ten runs."""
    names = parse(Glance, request).of(ns)
    require(ports(), "namespace", ns)
    return glance(ports(), names)


def show_now(request: Request, ns: str) -> Json:
    """Show what waits by what holds it, what runs, what is overdue, and which schedules failures have paused. At most
    ``rows`` jobs and as many runs are read; if there are more, ``at_least`` is true."""
    most = number(request, "rows", MAX_ROWS, MAX_ROWS)
    require(ports(), "namespace", ns)
    return now_of(ports(), ns, most)


def list_fires(request: Request, ns: str) -> Json:
    """List the first fires of all schedules between two instants, by when they are due. With ``at_least`` fires after
    ``complete_to`` may be missing."""
    since, until = _span(request)
    limit = number(request, "limit", MAX_FIRES, MAX_FIRES)
    require(ports(), "namespace", ns)
    return between(ports(), ns, since, until, limit)


def list_limits(request: Request, ns: str) -> Json:
    """List the pools and policies, and the limits at which jobs wait. With a name: the limit of this name, or those of
    ``schedule:app.name``, with the runs that hold permits, and who waits in order."""
    require(ports(), "namespace", ns)
    name = query(request, "name")
    if name is None:
        return listing(request, partial(of_namespace, ports(), ns))
    found = partial(unseen.limit, sees=sees(request))
    return listing(request, lambda limit, cursor: Page(tuple(named(ports(), ns, name))), found)


def _span(request: Request) -> tuple[int, int]:
    """The span ``?from`` to ``?to``, by default a day from now. Raises ``invalid`` for a past or too long one."""
    now = ports().clock.now()
    begin, end = query(request, "from"), query(request, "to")
    since = instant(request, "from", now)
    if since < now - MINUTE:
        raise invalid("from", f"an instant from {iso(now)} on", begin, "the runs of the past are in the list of runs")
    until = instant(request, "to", since + DAY)
    if not since < until <= since + 31 * DAY:
        raise invalid(
            "to", "an instant after from, at most 31 days later", end or iso(until), "send one request for each month"
        )
    return since, until


def _living(full: str) -> tuple[ScheduleState, Schedule] | None:
    """A schedule of a list; None if it was deleted after the list was read."""
    try:
        return existing(ports(), full)
    except SluiceError as error:
        if error.code != "not_found":
            raise
        return None
