"""Routes about many schedules at once: their list, a glance at some, what waits now, the fires ahead, the limits."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint, Request

from chalicelib.web import unseen
from chalicelib.web.access import SIGNED, sees
from chalicelib.web.http import number, parse, query
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

DEFAULT_SCHEDULES = 500


@route(routes, "GET", NS + "/schedules", needs="read", query=("app", "tag", "workflow", "state", "q", *PAGING))
def find_schedules(ns: str) -> dict[str, Any]:
    """List the schedules of a namespace in short that match every given filter, by name. A request reads a bounded
    number of schedules, so a page may hold fewer than ``limit``, even none, and still have a next page."""
    from chalicelib.core.documents import check_name
    from chalicelib.flow.views.schedule_list import MAX_LIMIT, Wanted, rows_of
    from chalicelib.web.filters import filters_of_namespace

    request = routes.current_request
    app = query(request, "app")
    if app is not None:
        check_name(app, "app")
    wanted = Wanted(app, filters_of_namespace(request, ns, app), query(request, "q") or "")
    read = partial(rows_of, ports(), ns, wanted)
    return listing(request, read, lambda row: row, DEFAULT_SCHEDULES, MAX_LIMIT)


@route(routes, "POST", NS + "/glance", needs="read", body="Glance")
def glance_schedules(ns: str) -> dict[str, Any]:
    """Show why each of some schedules does not run, with its next fire, its waiting jobs and its last ten runs."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.glance import glance
    from chalicelib.web.bodies import Glance

    names = parse(Glance, routes.current_request).of(ns)
    require(ports(), "namespace", ns)
    return glance(ports(), names)


@route(routes, "GET", NS + "/now", needs="read", query=("rows",))
def show_now(ns: str) -> dict[str, Any]:
    """Show what waits by what holds it, what runs, what is overdue, and which schedules failures have paused. At most
    ``rows`` jobs and as many runs are read; if there are more, ``at_least`` is true."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.present import MAX_ROWS, now_of

    most = number(routes.current_request, "rows", MAX_ROWS, MAX_ROWS)
    require(ports(), "namespace", ns)
    return now_of(ports(), ns, most)


@route(routes, "GET", NS + "/fires", needs="read", query=("from", "to", "limit"))
def list_fires(ns: str) -> dict[str, Any]:
    """List the first fires of all schedules between two instants, by when they are due. With ``at_least`` fires after
    ``complete_to`` may be missing."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.ahead import MAX_FIRES, between

    since, until = _span(routes.current_request)
    limit = number(routes.current_request, "limit", MAX_FIRES, MAX_FIRES)
    require(ports(), "namespace", ns)
    return between(ports(), ns, since, until, limit)


@route(routes, "GET", NS + "/limits", needs="read", query=("name", *PAGING))
def list_limits(ns: str) -> dict[str, Any]:
    """List the pools and policies, and the limits at which jobs wait. With a name: the limit of this name, or those of
    ``schedule:app.name``, with the runs that hold permits, and who waits in order."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.limits import named, of_namespace
    from chalicelib.ports import Page

    request = routes.current_request
    require(ports(), "namespace", ns)
    name = query(request, "name")
    if name is None:
        return listing(request, partial(of_namespace, ports(), ns), lambda item: item)
    found = partial(unseen.limit, sees=sees(request))
    return listing(request, lambda limit, cursor: Page(tuple(named(ports(), ns, name))), found)


@route(routes, "GET", "/v1/whoami", needs=SIGNED)
def whoami() -> dict[str, Any]:
    """Show who signs the requests, and which installation answers."""
    from chalicelib.web.http import caller
    from chalicelib.wiring import VERSION, place

    request = routes.current_request
    identity = (request.context or {}).get("identity") or {}
    arn = caller(request)
    region, stage = place()
    return {
        "arn": arn,
        "account": identity.get("accountId") or _account_of(arn),
        "region": region,
        "stage": stage,
        "version": VERSION,
    }


def _account_of(arn: str) -> str | None:
    parts = arn.split(":")
    return parts[4] if len(parts) > 5 and parts[4] else None


def _span(request: Request) -> tuple[int, int]:
    """The span ``?from`` to ``?to``, by default a day from now. Raises ``invalid`` for a past or too long one."""
    from chalicelib.core.errors import invalid
    from chalicelib.core.instants import DAY, MINUTE, iso, of_our_age, parse_instant

    now = ports().clock.now()
    begin, end = query(request, "from"), query(request, "to")
    since = of_our_age(parse_instant(begin, "from"), "from", begin) if begin is not None else now
    if since < now - MINUTE:
        raise invalid("from", f"an instant from {iso(now)} on", begin, "the runs of the past are in the list of runs")
    until = of_our_age(parse_instant(end, "to"), "to", end) if end is not None else since + DAY
    if not since < until <= since + 31 * DAY:
        raise invalid(
            "to", "an instant after from, at most 31 days later", end or iso(until), "send one request for each month"
        )
    return since, until
