"""Routes of views of many schedules and runs: lists, a glance, what waits now, fires, limits, timelines, graphs."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, get_args
from zoneinfo import ZoneInfo

from chalice.app import Request

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.documents import check_name, check_reference
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, HOUR, MINUTE, iso, zone
from chalicelib.core.names import name_in
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import Mode
from chalicelib.flow.lookup import existing, require
from chalicelib.flow.schedules.bulk import Filters, fits
from chalicelib.flow.schedules.stops import of_app
from chalicelib.flow.views import graph as graphs
from chalicelib.flow.views import matrix, periods, spans
from chalicelib.flow.views.ahead import MAX_FIRES, between
from chalicelib.flow.views.chosen import Chooser, Chosen
from chalicelib.flow.views.defined_limits import all_of_namespace
from chalicelib.flow.views.limits import named, of_namespace
from chalicelib.flow.views.lineage import lineage
from chalicelib.flow.views.present import MAX_ROWS, now_of
from chalicelib.flow.views.schedule_list import MAX_LIMIT, Wanted, glance, rows_of
from chalicelib.flow.views.views import schedule_view
from chalicelib.ports import Page
from chalicelib.web import filters, unseen
from chalicelib.web.access import sees
from chalicelib.web.bodies import Glance
from chalicelib.web.filters import tag_of, workflow_of
from chalicelib.web.http import Json, choice, flag, instant, number, parse, query
from chalicelib.web.paging import listing
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports

DEFAULT_SCHEDULES = 500
STATES = tuple(mode for mode in get_args(Mode) if mode != "deleted")  # lists hold no deleted schedule
DEFAULT_SPANS, MAX_SPANS = 2_000, 5_000
MAX_DAYS = 7  # of a timeline; a longer span is for the reports
WEEKS, MAX_CALENDAR_DAYS = 26, 190  # of the days of a schedule: the default, and the most days; runs are kept for 180
MAX_NODES = 300
STEPS = 2  # by default in each direction
MAX_STEPS = {"graph": 10, "lineage": 5}


def list_schedules(request: Request, app: str) -> Json:
    """List the schedules of an app that match every given filter: a tag, the workflow, the state."""
    require(ports(), "app", app)
    wanted = _filters(request, *app.split("."))
    inherited = of_app(ports(), app) if wanted.tag is not None else {}

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page = ports().catalog.schedules(app, limit, cursor)
        found = (_living(name) for name in page.items)
        return Page(
            tuple(schedule_view(*each) for each in found if each and fits(wanted, *each, inherited)), page.cursor
        )

    return listing(request, read)


def find_schedules(request: Request, ns: str) -> Json:
    """List the schedules of a namespace in short that match every given filter, by name. A request reads a bounded
    number of schedules, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    read = partial(rows_of, ports(), ns, _wanted(request, ns))
    return listing(request, read, default=DEFAULT_SCHEDULES, most=MAX_LIMIT)


def _wanted(request: Request, ns: str) -> Wanted:
    """The schedules of a namespace that a request filters by app, tag, workflow, state and a part of their names."""
    app = query(request, "app")
    if app is not None:
        check_name(app, "app")
    return Wanted(app, _filters(request, ns, app), query(request, "q") or "")


def glance_schedules(request: Request, ns: str) -> Json:
    """Show why each of some schedules does not run, with its next fire, its waiting jobs and its last ten runs."""
    names = parse(Glance, request).of(ns)
    require(ports(), "namespace", ns)
    return glance(ports(), names)


def show_now(request: Request, ns: str) -> Json:
    """Show what waits by what holds it, what runs, what is overdue, and which schedules failures have paused. At most
    ``rows`` jobs and as many runs are read; if there are more, ``at_least`` is true. With a filter, counts are of what
    it keeps, of the first 200 jobs of a queue."""
    most = number(request, "rows", MAX_ROWS, MAX_ROWS)
    require(ports(), "namespace", ns)
    wanted = filters.of(request, ns)
    return now_of(ports(), ns, most, None if wanted == Chosen() else Chooser(ports(), wanted, sees(request)))


def list_fires(request: Request, ns: str) -> Json:
    """List the first fires of all schedules between two instants, by when they are due. With ``at_least`` fires after
    ``complete_to`` may be missing."""
    since, until = _span(request)
    limit = number(request, "limit", MAX_FIRES, MAX_FIRES)
    require(ports(), "namespace", ns)
    return between(ports(), ns, since, until, limit)


def list_limits(request: Request, ns: str) -> Json:
    """List the pools and policies, and the limits at which jobs wait. With ``all``, then those of EMR, and those that
    schedules define. A request reads a bounded number of schedules, so a page may hold fewer than ``limit``, even none,
    and still have a next page; a limit of schedules of several pages is on each. With a name: the limit of this name,
    or those of ``schedule:app.name``, with the runs that hold permits, and who waits in order."""
    require(ports(), "namespace", ns)
    name, every = query(request, "name"), flag(request, "all")
    if name is None:
        return listing(request, partial(all_of_namespace if every else of_namespace, ports(), ns))
    if every:
        raise invalid("all", "a name, or all", "both", "leave one of them out")
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


def timeline(request: Request, ns: str) -> Json:
    """Show what ran when. The attempts that were claimed from one instant to another, newest first, in columns.
    ``waited`` and ``took`` are in ms, ``at`` is when the wait began, and ``row`` and ``state`` are numbers in ``names``
    and ``states``. With ``ids=true`` the ids of the runs are there, too. Attempts of schedules of a namespace that the
    signer may not read are left out."""
    now = ports().clock.now()
    require(ports(), "namespace", ns)
    until = instant(request, "to", now)
    since = instant(request, "from", until - HOUR)
    if not since < until <= since + MAX_DAYS * DAY:
        hint = "ask for a shorter span, or read the reports of days"
        raise invalid("from", f"an instant before to, by at most {MAX_DAYS} days", query(request, "from"), hint)
    limit = number(request, "limit", DEFAULT_SPANS, MAX_SPANS)
    schedule, workflow = _full(request, "schedule", ns), _full(request, "workflow", ns)
    if schedule is not None and workflow is not None:
        raise invalid("workflow", "a schedule or a workflow", "both", "leave one of them out")
    wanted = spans.Within(since, until, limit, schedule, workflow)
    return spans.timeline(ports(), ns, wanted, flag(request, "ids"), sees(request))


def show_outcomes(request: Request, ns: str) -> Json:
    """Count the newest 500 attempts of the last two weeks by state, and show the last eight that failed. With ``more``
    there are older ones."""
    require(ports(), "namespace", ns)
    return spans.outcomes(ports(), ns)


def schedule_periods(request: Request, name: str) -> Json:
    """List the periods that a schedule should have run, oldest first, and what became of each. They begin from ``from``
    to before ``to``. By default they are all from the first registered partition to now. For a time trigger they are
    the fires of the last 31 days, or of the last day if there are more than 24 a day. Runs that were claimed before
    ``complete_from`` were not read, so a period before it that is missing may have run."""
    now = ports().clock.now()
    until = min(instant(request, "to", now), now)
    since = instant(request, "from", now) if query(request, "from") is not None else None
    complete = [now]

    def read(limit: int, cursor: str | None) -> Page[Any]:
        page, complete[0] = periods.page(ports(), known(name), since, until, limit, cursor)
        return page

    return {**listing(request, read), "complete_from": iso(complete[0])}


def list_periods(request: Request, ns: str) -> Json:
    """Show what became of the periods of schedules, by day: a letter for each day from ``from`` to ``to``. Schedules of
    DAGs and of messages are left out. A request reads a bounded number of rows, so a page may hold fewer than
    ``limit``, even none, and still have a next page."""
    first, last, of = _days(request, matrix.RECENT, matrix.MAX_DAYS)
    names = query(request, "schedules")
    wanted = _wanted(request, ns) if names is None else _names(ns, names)
    read = partial(matrix.page, ports(), ns, wanted, matrix.Days(first, last, of))
    found = listing(request, read, default=matrix.MAX_SCHEDULES, most=matrix.MAX_SCHEDULES)
    return {**found, "from": first.isoformat(), "to": last.isoformat()}


def schedule_days(request: Request, name: str) -> Json:
    """Count the runs and records of a schedule by day and state, newest day first. Days without any are left out. The
    days are those of ``zone``, by default UTC; ``from`` and ``to`` are both included."""
    known(name)
    return spans.days(ports(), name, *_days(request, 7 * WEEKS, MAX_CALENDAR_DAYS))


def _days(request: Request, usual: int, most: int) -> tuple[date, date, ZoneInfo]:
    """The days ``?from`` to ``?to``, by default the last ``usual`` ones up to today, and ``?zone``. Raises ``invalid``
    for more than ``most`` days."""
    of = zone(query(request, "zone") or "UTC", "zone")
    today = datetime.fromtimestamp(ports().clock.now() / 1000, UTC).astimezone(of).date()
    last: date = _day(request, "to", today)
    first: date = _day(request, "from", last - timedelta(days=usual - 1))
    if not first <= last < first + timedelta(days=most):
        expected = f"a day up to to, at most {most} days in all"
        raise invalid("from", expected, query(request, "from"), "send one request for each part")
    return first, last, of


def _day(request: Request, name: str, default: Any) -> Any:
    text = query(request, name)
    if text is None:
        return default
    try:
        found = date.fromisoformat(text)
        if found.isoformat() == text and 1970 <= found.year <= 9998:
            return found
    except ValueError:
        pass
    raise invalid(name, "a day such as 2026-11-20, of the years 1970 to 9998", text, "write year-month-day")


def _full(request: Request, name: str, ns: str) -> str | None:
    """The full name of a schedule or workflow of this namespace that a parameter names; None without it."""
    text = query(request, name)
    return _named(ns, text, name) if text is not None else None


def _names(ns: str, text: str) -> list[str]:
    """The full names of schedules, which commas separate."""
    found = text.split(",")
    if len(found) > matrix.MAX_SCHEDULES:
        expected = f"at most {matrix.MAX_SCHEDULES} schedules"
        raise invalid("schedules", expected, len(found), "send one request for each part")
    return [_named(ns, each, "schedules") for each in found]


def _named(ns: str, text: str, name: str) -> str:
    """The full name of a schedule or workflow of this namespace, from ``app.name`` or the full name."""
    full = name_in(ns, text)
    if full is None:
        raise invalid(name, f"app.name, or a full name of the namespace {ns}", text, f"such as {ns}.flights.clean")
    check_reference(full.replace("~", ""), name)
    return full


def graph(request: Request, ns: str) -> Json:
    """Show how schedules, workflows and datasets trigger each other. The nodes are those at most ``up`` steps before
    ``around`` and ``down`` steps after it. Without ``around``, they are the first schedules by name with all that they
    name. Names of namespaces that the signer may not read are left out."""
    require(ports(), "namespace", ns)
    up, down = (number(request, name, STEPS, MAX_STEPS["graph"], least=0) for name in ("up", "down"))
    around, visible = query(request, "around"), sees(request)
    center = graphs.thing_of(around) if around is not None else None
    if center is not None and not visible(center.name):
        raise graphs.unknown(center)
    shown = graphs.graph(ports(), ns, around, up, down, number(request, "limit", MAX_NODES, MAX_NODES))
    return unseen.graph(shown, visible)


def run_lineage(request: Request, run_id: str) -> Json:
    """Show what led to a run and what followed from it. What led to it are the events that its job has counted, and the
    runs that caused them. What followed are the jobs that have counted its statuses, and their runs. What belongs to a
    namespace that the signer may not read is left out."""
    up, down = (number(request, name, STEPS, MAX_STEPS["lineage"], least=0) for name in ("up", "down"))
    return unseen.lineage(lineage(ports(), run_id, up, down), sees(request))


def _filters(request: Request, ns: str, app: str | None) -> Filters:
    """The filters of a request, such as ``?tag=team=a&workflow=clean&state=enabled``. A short name of a workflow is one
    of the app. Raises ``invalid`` for an unknown state, and for a short name without an app."""
    return Filters(tag_of(request), workflow_of(request, ns, app), choice(request, "state", STATES))
