"""Routes of DAGs: their documents, their runs, and running parts of these again (W4)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.http import answer, caller, document, gone, if_match, parse, request_id
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routes.definitions import APP
from chalicelib.web.routing import IDEMPOTENCY_KEY, IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = APP + "/dags/{name}"
RUN = ONE + "/runs/{run_id}"


@route(routes, "GET", APP + "/dags", query=PAGING)
def list_dags(ns: str, app: str) -> dict[str, Any]:
    """List the DAGs of an app."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.views import definition_view

    require(ports(), "app", f"{ns}.{app}")
    return listing(routes.current_request, partial(ports().catalog.definitions, "dag", f"{ns}.{app}"), definition_view)


@route(routes, "PUT", ONE, body="NewDag", headers=(IF_MATCH,), status=(200, 201))
def put_dag(ns: str, app: str, name: str) -> Response:
    """Create or replace a DAG. Runs that have begun go on with the graph they began with."""
    from chalicelib.core.definitions.dag import NewDag
    from chalicelib.flow.dags.actions import put
    from chalicelib.flow.lookup import require

    request, full = routes.current_request, f"{ns}.{app}.{name}"
    require(ports(), "app", f"{ns}.{app}")
    change = put(ports(), full, parse(NewDag, request), caller(request), if_match(request))
    return _shown(full, 201 if change.did == "created" else 200)


@route(routes, "GET", ONE)
def get_dag(ns: str, app: str, name: str) -> Response:
    """Read a DAG, its state, and the schedules that it became."""
    return _shown(f"{ns}.{app}.{name}")


@route(routes, "DELETE", ONE, headers=(IF_MATCH,), status=(204,))
def delete_dag(ns: str, app: str, name: str) -> Response:
    """Delete a DAG. What waits of its runs is dropped on record, what runs goes on."""
    from chalicelib.flow.dags.actions import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


@route(routes, "POST", ONE + "/enable")
def enable_dag(ns: str, app: str, name: str) -> Response:
    """Enable a DAG: what its trigger accepts from now on starts runs of it."""
    from chalicelib.flow.schedules.actions import enable

    return _act(enable, f"{ns}.{app}.{name}")


@route(routes, "POST", ONE + "/disable")
def disable_dag(ns: str, app: str, name: str) -> Response:
    """Disable a DAG: it begins no runs. Those that have begun go on to their end."""
    from chalicelib.flow.schedules.actions import disable

    return _act(disable, f"{ns}.{app}.{name}")


@route(routes, "POST", ONE + "/run", body="RunNow", headers=(IDEMPOTENCY_KEY,), status=(202,))
def run_dag(ns: str, app: str, name: str) -> Response:
    """Begin a run of a DAG now, or at an instant, past its trigger. One Idempotency-Key, one run."""
    from chalicelib.core.ids import dag_start
    from chalicelib.core.instants import parse_when
    from chalicelib.flow.dags.actions import existing
    from chalicelib.flow.schedules.actions import run_now
    from chalicelib.web.bodies import RunNow

    request, full = routes.current_request, f"{ns}.{app}.{name}"
    existing(ports(), full)
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    run_id = run_now(ports(), dag_start(full), request_data.properties, request_id(request), at)
    return answer({"run_id": run_id, "dag": full}, 202)


@route(routes, "GET", ONE + "/runs", query=PAGING)
def list_dag_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the runs of a DAG, newest first, each with the state of its nodes. A deleted one keeps its history."""
    from chalicelib.flow.dags.runs import page

    return listing(routes.current_request, partial(page, ports(), _known(ns, app, name)), lambda view: view)


@route(routes, "GET", RUN)
def show_dag_run(ns: str, app: str, name: str, run_id: str) -> dict[str, Any]:
    """Tell how a run of a DAG stands, node by node, and why."""
    from chalicelib.flow.dags.runs import begun, view

    return view(ports(), begun(ports(), _known(ns, app, name), run_id), in_full=True)


@route(routes, "POST", RUN + "/rerun", body="Rerun", headers=(IDEMPOTENCY_KEY,))
def rerun_dag(ns: str, app: str, name: str, run_id: str) -> dict[str, Any]:
    """Run a part of a DAG's run again: ``from`` a node with all that follows it, ``only`` one, or ``all``. Not while
    anything of the run is under way. One Idempotency-Key, one re-run."""
    from chalicelib.flow.dags.runs import rerun
    from chalicelib.web.bodies import Rerun

    request = routes.current_request
    request_data = parse(Rerun, request)
    full = _known(ns, app, name)
    return rerun(ports(), full, run_id, request_data.what, request_data.node, caller(request), request_id(request))


def _act(act: Any, full: str) -> Response:
    from chalicelib.core.ids import dag_start
    from chalicelib.flow.dags.actions import existing

    existing(ports(), full)
    act(ports(), dag_start(full), caller(routes.current_request))
    return _shown(full)


def _shown(full: str, status: int = 200) -> Response:
    from chalicelib.flow.dags.actions import dag_view

    return document(dag_view(ports(), full), status)


def _known(ns: str, app: str, name: str) -> str:
    """The full name of a DAG that is or was."""
    from chalicelib.core.errors import not_found
    from chalicelib.core.ids import dag_start

    full = f"{ns}.{app}.{name}"
    if ports().catalog.schedule_state(dag_start(full)) is None:
        raise not_found("dag", full)
    return full
