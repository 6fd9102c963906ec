"""All limits of a namespace, also those that only the constraints of schedules define and for which nobody waits."""

from __future__ import annotations

import json
from collections.abc import Iterable

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.limits import permits
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.flow import many
from chalicelib.flow.views import limits, lists
from chalicelib.flow.views.limits import LimitView
from chalicelib.flow.views.schedule_list import Wanted, rows_of
from chalicelib.ports import Page, Ports

MAX_SCHEDULES = 500  # that one request reads: ten calls or so, of versions that the process does not know
OWN, OF_EMR, OF_SCHEDULES = "own", "emr", "schedules"  # the parts of the list, in this order


def all_of_namespace(ports: Ports, namespace: str, limit: int, cursor: str | None) -> Page[LimitView]:
    """First the pools and policies, and the limits at which jobs wait; then those of EMR; then those that schedules
    define, in the order of the schedules.

    A page reads at most `MAX_SCHEDULES` schedules, so it may hold no limit and still have a next page. A limit may come
    twice: in the first part because a job waits for it, and with each page of schedules that define it. The rule of the
    later one counts then."""
    part, inner = lists.parse_cursor(cursor)
    if part in (None, OWN):
        page = limits.of_namespace(ports, namespace, limit, inner)
        return Page(page.items, json.dumps([OWN, page.cursor] if page.cursor is not None else [OF_EMR, None]))
    if part == OF_EMR:
        asks = limits.asks_of_emr(ports)
        return Page(tuple(limits.listed(ports, list(asks), asks)), json.dumps([OF_SCHEDULES, None]))
    found = rows_of(ports, namespace, Wanted(), min(limit, MAX_SCHEDULES), inner)
    schedules = many.schedules(ports, [row["name"] for row in found.items])
    asks = _asks(namespace, (schedule for _, schedule in schedules.values()))
    following = json.dumps([OF_SCHEDULES, found.cursor]) if found.cursor is not None else None
    return Page(tuple(limits.listed(ports, sorted(asks), asks)), following)


def _asks(namespace: str, schedules: Iterable[Schedule]) -> dict[str, PermitRequest]:
    """The requests because of the constraints of some schedules, by the name of the limit. Of several for one limit the
    tightest counts."""
    found: dict[str, PermitRequest] = {}
    for schedule in schedules:
        for constraint in schedule.constraints:
            for ask in constraint.permits(schedule.workflow, namespace):
                if not permits.is_unlimited(ask):
                    known = found.get(ask.limit_name)
                    found[ask.limit_name] = ask if known is None else ask.tightened_by(known)
    return found
