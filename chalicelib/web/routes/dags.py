"""Routes of DAGs: their documents, their runs, and re-runs of parts of a run (W4)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.web.http import answer, caller, document, gone, if_match, parse, request_id
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.quotas import check_dag, check_waiting
from chalicelib.web.routes.definitions import APP
from chalicelib.web.routing import IDEMPOTENCY_KEY, IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = APP + "/dags/{name}"
RUN = ONE + "/runs/{run_id}"


@route(routes, "GET", APP + "/dags", needs="read", query=PAGING)
def list_dags(ns: str, app: str) -> dict[str, Any]:
    """List the DAGs of an app."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.views import definition_view

    require(ports(), "app", f"{ns}.{app}")
    return listing(routes.current_request, partial(ports().catalog.definitions, "dag", f"{ns}.{app}"), definition_view)


@route(routes, "PUT", ONE, needs="define", body="NewDag", headers=(IF_MATCH,), status=(200, 201))
def put_dag(ns: str, app: str, name: str) -> Response:
    """Create or replace a DAG. Runs that have started continue with the graph with which they started."""
    from chalicelib.core.definitions.dag import NewDag
    from chalicelib.flow.dags.actions import put
    from chalicelib.flow.lookup import require

    request, full = routes.current_request, f"{ns}.{app}.{name}"
    require(ports(), "app", f"{ns}.{app}")
    sent = parse(NewDag, request)
    check_dag(ns, full, sent.definition())
    change = put(ports(), full, sent, caller(request), if_match(request))
    return _shown(full, 201 if change.did == "created" else 200)


@route(routes, "GET", ONE, needs="read")
def get_dag(ns: str, app: str, name: str) -> Response:
    """Read a DAG, its state, and the schedules that Sluice generated from it."""
    return _shown(f"{ns}.{app}.{name}")


@route(routes, "DELETE", ONE, needs="define", headers=(IF_MATCH,), status=(204,))
def delete_dag(ns: str, app: str, name: str) -> Response:
    """Delete a DAG. The waiting jobs of its runs are dropped and recorded; active runs continue."""
    from chalicelib.flow.dags.actions import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


@route(routes, "POST", ONE + "/enable", needs="operate")
def enable_dag(ns: str, app: str, name: str) -> Response:
    """Enable a DAG. Events that its trigger accepts from now on start DAG runs."""
    from chalicelib.flow.schedules.actions import enable

    return _act(enable, f"{ns}.{app}.{name}")


@route(routes, "POST", ONE + "/disable", needs="operate")
def disable_dag(ns: str, app: str, name: str) -> Response:
    """Disable a DAG. It starts no new runs; runs that have started continue to their end."""
    from chalicelib.flow.schedules.actions import disable

    return _act(disable, f"{ns}.{app}.{name}")


@route(routes, "POST", ONE + "/run", needs="operate", body="RunNow", headers=(IDEMPOTENCY_KEY,), status=(202,))
def run_dag(ns: str, app: str, name: str) -> Response:
    """Run a DAG now or at an instant. The run skips the trigger. Requests with the same Idempotency-Key start one
    run."""
    from chalicelib.core.ids import dag_start
    from chalicelib.core.instants import parse_when
    from chalicelib.flow.dags.actions import existing
    from chalicelib.flow.requests import has_made
    from chalicelib.flow.schedules.actions import run_now
    from chalicelib.web.bodies import RunNow

    request, full = routes.current_request, f"{ns}.{app}.{name}"
    existing(ports(), full)
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    started_by, partition = dag_start(full), request_data.partition
    check_waiting(ns, lambda: has_made(ports(), "run", started_by, request_id(request)))
    run_id = run_now(ports(), started_by, request_data.properties, request_id(request), at, partition)
    return answer({"run_id": run_id, "dag": full}, 202)


@route(routes, "GET", ONE + "/runs", needs="read", query=PAGING)
def list_dag_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    """List the runs of a DAG, newest first, each with the state of its nodes. A deleted DAG keeps its history."""
    from chalicelib.flow.dags.runs import page

    return listing(routes.current_request, partial(page, ports(), _known(ns, app, name)), lambda view: view)


@route(routes, "GET", RUN, needs="read")
def show_dag_run(ns: str, app: str, name: str, run_id: str) -> dict[str, Any]:
    """Read a DAG run: the state of each node, and why."""
    from chalicelib.flow.dags.runs import begun, view

    return view(ports(), begun(ports(), _known(ns, app, name), run_id), in_full=True)


@route(routes, "POST", RUN + "/rerun", needs="operate", body="Rerun", headers=(IDEMPOTENCY_KEY,))
def rerun_dag(ns: str, app: str, name: str, run_id: str) -> dict[str, Any]:
    """Run a part of a DAG run again: ``from`` a node with all that follows it, ``only`` one node, or ``all``. The
    request is refused while any node of the run is active. Requests with the same Idempotency-Key start one re-run."""
    from chalicelib.flow.dags.runs import rerun
    from chalicelib.web.bodies import Rerun

    request = routes.current_request
    request_data = parse(Rerun, request)
    full = _known(ns, app, name)
    check_waiting(ns)
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
    """The full name of a DAG that exists or existed. Raises ``not_found`` otherwise."""
    from chalicelib.core.ids import dag_start
    from chalicelib.flow.lookup import missing

    full = f"{ns}.{app}.{name}"
    if ports().rows.get(ScheduleState, dag_start(full)) is None:
        raise missing(ports(), "dag", full)
    return full
