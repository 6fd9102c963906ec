"""The filters of lists: query parameters that mean the same for runs, jobs, records, dead letters and schedules."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from chalice.app import Request

from chalicelib.core.documents import check_name, check_reference, types_of
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, parse_instant
from chalicelib.core.names import full_name
from chalicelib.core.targets.registry import TARGETS
from chalicelib.flow.schedules.bulk import Tag, parse_tag
from chalicelib.flow.views import lists
from chalicelib.flow.views.chosen import Chooser, Chosen, Row, facts_of
from chalicelib.web.access import sees
from chalicelib.web.http import choice, day, flag, instant, query
from chalicelib.web.paging import Read, chosen, ending
from chalicelib.wiring import ports

TARGET_TYPES = tuple(kind for target in TARGETS for kind in types_of(target))
MAX_READ = 500  # rows that a request with a filter reads


def of(request: Request, ns: str, states: Collection[str] = (), app: str | None = None) -> Chosen:
    """The filters of a request for rows of a namespace. ``states`` are the values of ``?state``. A short ``?workflow``
    is one of ``app`` (a short name). Those that a route does not have are refused before. Raises ``invalid``."""
    within = query(request, "app")
    if within is not None:
        check_name(within, "app")
    since, until = _span(request)
    text = query(request, "q")
    return Chosen(
        app=f"{ns}.{within}" if within is not None else None,
        workflow=workflow_of(request, ns, within or app),
        target=choice(request, "target", TARGET_TYPES),
        tag=tag_of(request),
        state=choice(request, "state", states),
        text=text.lower() if text else None,
        since=since,
        until=until,
        late=flag(request, "late"),
    )


def workflow_of(request: Request, ns: str, app: str | None) -> str | None:
    """The full name of ``?workflow``. Raises ``invalid`` for a short name without an app."""
    workflow = query(request, "workflow")
    if workflow is None:
        return None
    if app is None and "." not in workflow:
        raise invalid("workflow", "app.name", workflow, "name its app, or add app=...")
    return full_name(check_reference(workflow, "workflow"), ns, app or "")


def tag_of(request: Request) -> Tag | None:
    tag = query(request, "tag")
    return parse_tag(tag) if tag is not None else None


def chosen_by(request: Request, wanted: Chosen, read: Read, sorted_by_time: bool = False) -> Read:
    """A read of the rows that a request chooses. A request reads at most `MAX_READ` rows if it has a filter. Rows that
    are sorted newest first end where the span begins."""
    if wanted == Chosen():
        return read
    if sorted_by_time and wanted.since is not None:
        read = ending(read, partial(_is_before, wanted))
    return chosen(read, Chooser(ports(), wanted, sees(request)).kept, MAX_READ)


def by_days(wanted: Chosen, ns: str, read: lists.ReadOf[Any]) -> Read:
    """A read of the rows of a namespace day by day, of the span that a request names."""
    return partial(lists.of_namespace, read, ns, wanted.days(ports().clock.now()))


def _is_before(wanted: Chosen, row: Row) -> bool:
    now = ports().clock.now()
    return wanted.since is not None and facts_of(row, now).at < wanted.since


def _span(request: Request) -> tuple[int | None, int | None]:
    """The span ``?from`` to before ``?to``, or that of ``?day``. Raises ``invalid`` for both, and for an empty one."""
    of_day, begin, end = day(request), query(request, "from"), query(request, "to")
    if of_day is not None and (begin is not None or end is not None):
        name = "from" if begin is not None else "to"
        raise invalid(name, "a day, or from and to", "both", "leave one of them out")
    if of_day is not None:
        first = parse_instant(f"{of_day}T00:00:00Z", "day")
        return first, first + DAY
    since = instant(request, "from", 0) if begin is not None else None
    until = instant(request, "to", 0) if end is not None else None
    if since is not None and until is not None and since >= until:
        raise invalid("to", "an instant after from", end, "the span ends before to")
    return since, until
