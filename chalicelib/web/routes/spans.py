"""Routes of views of many runs: the timeline of a namespace, and the days of a schedule."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from chalice.app import Request

from chalicelib.core.documents import check_reference
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, zone
from chalicelib.core.names import name_in
from chalicelib.flow.lookup import require
from chalicelib.flow.views import spans
from chalicelib.web.http import Json, flag, instant, number, query
from chalicelib.web.routes.schedules import known
from chalicelib.wiring import ports

DEFAULT_SPANS, MAX_SPANS = 2_000, 5_000
MAX_DAYS = 7  # of a timeline; a longer span is for the reports
WEEKS, MAX_CALENDAR_DAYS = 26, 190  # of the days of a schedule: the default, and the most days; runs are kept for 180


def timeline(request: Request, ns: str) -> Json:
    """Show what ran when. The attempts that were claimed from one instant to another, newest first, in columns.
    ``waited`` and ``took`` are in ms, ``at`` is when the wait began, and ``row`` and ``state`` are numbers in ``names``
    and ``states``. With ``ids=true`` the ids of the runs are there, too."""
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
    return spans.timeline(ports(), ns, spans.Within(since, until, limit, schedule, workflow), flag(request, "ids"))


def show_outcomes(request: Request, ns: str) -> Json:
    """Count the newest 500 attempts of the last two weeks by state, and show the last eight that failed. With ``more``
    there are older ones."""
    require(ports(), "namespace", ns)
    return spans.outcomes(ports(), ns)


def schedule_days(request: Request, ns: str, app: str, name: str) -> Json:
    """Count the runs and records of a schedule by day and state, newest day first. Days without any are left out. The
    days are those of ``zone``, by default UTC; ``from`` and ``to`` are both included."""
    full, of = known(ns, app, name), zone(query(request, "zone") or "UTC", "zone")
    today = datetime.fromtimestamp(ports().clock.now() / 1000, UTC).astimezone(of).date()
    last: date = _day(request, "to", today)
    first: date = _day(request, "from", last - timedelta(weeks=WEEKS) + timedelta(days=1))
    if not first <= last < first + timedelta(days=MAX_CALENDAR_DAYS):
        raise invalid(
            "from",
            f"a day up to to, at most {MAX_CALENDAR_DAYS} days in all",
            query(request, "from"),
            "send one request for each part",
        )
    return spans.days(ports(), full, first, last, of)


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
    """The full name of a schedule or workflow of this namespace, from ``app.name`` or the full name."""
    text = query(request, name)
    if text is None:
        return None
    full = name_in(ns, text)
    if full is None:
        raise invalid(name, f"app.name, or a full name of the namespace {ns}", text, f"such as {ns}.flights.clean")
    return check_reference(full.replace("~", ""), name) and full
