"""Routes of what triggers what: the graph of a namespace, and the lineage of a run."""

from __future__ import annotations

import re

from chalice.app import Request

from chalicelib.core.errors import invalid
from chalicelib.flow.lookup import require
from chalicelib.flow.views.graph import graph as view
from chalicelib.flow.views.graph import thing_of, unknown
from chalicelib.flow.views.lineage import lineage
from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.http import Json, number, query
from chalicelib.wiring import ports

MAX_NODES = 300
STEPS = 2  # by default in each direction
MAX_STEPS = {"graph": 10, "lineage": 5}


def graph(request: Request, ns: str) -> Json:
    """Show how schedules, workflows and datasets trigger each other. The nodes are those at most ``up`` steps before
    ``around`` and ``down`` steps after it. Without ``around``, they are the first schedules by name with all that they
    name. Names of namespaces that the signer may not read are left out."""
    require(ports(), "namespace", ns)
    up, down = (_steps(request, name, MAX_STEPS["graph"]) for name in ("up", "down"))
    around, visible = query(request, "around"), sees(request)
    center = thing_of(around) if around is not None else None
    if center is not None and not visible(center.name):
        raise unknown(center)
    shown = view(ports(), ns, around, up, down, number(request, "limit", MAX_NODES, MAX_NODES))
    return unseen.graph(shown, visible)


def run_lineage(request: Request, run_id: str) -> Json:
    """Show what led to a run and what followed from it. What led to it are the events that its job has counted, and the
    runs that caused them. What followed are the jobs that have counted its statuses, and their runs. What belongs to a
    namespace that the signer may not read is left out."""
    up, down = (_steps(request, name, MAX_STEPS["lineage"]) for name in ("up", "down"))
    return unseen.lineage(lineage(ports(), run_id, up, down), sees(request))


def _steps(request: Request, name: str, most: int) -> int:
    text = query(request, name)
    if text is None:
        return STEPS
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > most:
        raise invalid(name, f"a number from 0 to {most}", text, f"leave it out for {STEPS}")
    return int(text)
