"""Routes of history by workflow: its runs, and the daily report."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint

from chalicelib.core.rows.definition import Definition
from chalicelib.web.http import day
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routes.definitions import APP, NS
from chalicelib.web.routes.history import in_state
from chalicelib.web.routing import route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "GET", NS + "/reports", needs="read", query=("day", *PAGING))
def read_report(ns: str) -> dict[str, Any]:
    """Read the report of a day, workflow by workflow. Without a day, it is the newest report."""
    from chalicelib.flow.history.reports import newest_day, report
    from chalicelib.flow.lookup import require

    request = routes.current_request
    require(ports(), "namespace", ns)
    of = day(request) or newest_day(ports(), ns)
    return {"day": of, **listing(request, partial(report, ports(), ns, of), dict)}


@route(routes, "GET", APP + "/workflows/{name}/runs", needs="read", query=("state", *PAGING))
def workflow_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the runs of a workflow, newest first. A deleted workflow keeps its history."""
    from chalicelib.flow.lookup import missing
    from chalicelib.flow.views.views import run_view

    full, request = f"{ns}.{app}.{name}", routes.current_request
    read = partial(ports().runs.runs, "workflow", full)
    if ports().rows.get(Definition, "workflow", full) is None and not read(1, None).items:
        raise missing(ports(), "workflow", full)
    return listing(request, in_state(request, read), partial(run_view, prices=ports().settings.prices))
