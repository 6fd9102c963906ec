"""The route of reports: what a day was like, workflow by workflow."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint

from chalicelib.web.definitions import NS
from chalicelib.web.http import day
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routing import route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "GET", NS + "/reports", query=("day", *PAGING))
def read_report(ns: str) -> dict[str, Any]:
    """Read what a day was like, workflow by workflow; without a day, the newest that there is."""
    from chalicelib.flow.definitions import require
    from chalicelib.flow.reports import newest_day, report

    request = routes.current_request
    require(ports(), "namespace", ns)
    of = day(request) or newest_day(ports(), ns)
    return {"day": of, **listing(request, partial(report, ports(), ns, of), dict)}
