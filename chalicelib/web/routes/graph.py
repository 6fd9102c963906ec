"""Routes of what triggers what: the graph of a namespace, and the lineage of a run."""

from __future__ import annotations

import re
from typing import Any

from chalice.app import Blueprint, Request

from chalicelib.web.http import number, query
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

MAX_NODES = 300
STEPS = 2  # by default in each direction
MOST = {"graph": 10, "lineage": 5}


@route(routes, "GET", NS + "/graph", needs="read", query=("around", "up", "down", "limit"))
def graph(ns: str) -> dict[str, Any]:
    """Show how schedules, workflows and datasets trigger each other. The nodes are those at most ``up`` steps before
    ``around`` and ``down`` steps after it; without ``around``, the first schedules by name with all that they name."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.graph import graph as view

    request = routes.current_request
    require(ports(), "namespace", ns)
    up, down = (_steps(request, name, MOST["graph"]) for name in ("up", "down"))
    return view(ports(), ns, query(request, "around"), up, down, number(request, "limit", MAX_NODES, MAX_NODES))


@route(routes, "GET", "/v1/runs/{run_id}/lineage", needs="read", query=("up", "down"))
def run_lineage(run_id: str) -> dict[str, Any]:
    """Show what led to a run and what followed from it. What led to it are the events that its job has counted, and the
    runs that caused them; what followed are the jobs that have counted its statuses, and their runs."""
    from chalicelib.flow.views.lineage import lineage

    up, down = (_steps(routes.current_request, name, MOST["lineage"]) for name in ("up", "down"))
    return lineage(ports(), run_id, up, down)


def _steps(request: Request, name: str, most: int) -> int:
    from chalicelib.core.errors import invalid

    text = query(request, name)
    if text is None:
        return STEPS
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > most:
        raise invalid(name, f"a number from 0 to {most}", text, f"leave it out for {STEPS}")
    return int(text)
