"""Routes of DAGs: their documents, their runs, and re-runs of parts of a run (W4)."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Request, Response

from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.ids import dag_start
from chalicelib.core.instants import parse_instant, parse_when
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.views import View
from chalicelib.flow.dags import elements
from chalicelib.flow.dags.actions import dag_view, delete, existing, put
from chalicelib.flow.dags.runs import begun, find, page, rerun
from chalicelib.flow.lookup import missing, require
from chalicelib.flow.requests import has_made
from chalicelib.flow.schedules import pauses
from chalicelib.flow.schedules.actions import disable, enable, run_now
from chalicelib.flow.views import explain_dag
from chalicelib.web.bodies import Occurrence, Pause, Rerun, RunNow
from chalicelib.web.http import Json, answer, caller, document, gone, if_match, parse, request_id
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_dag, check_waiting
from chalicelib.wiring import ports


class BegunDagView(View):
    dag: str
    run_id: str


def put_dag(request: Request, name: str) -> Response:
    """Create or replace a DAG. Runs that have started continue with the graph with which they started."""
    require(ports(), "app", name.rpartition(".")[0])
    sent = parse(NewDag, request)
    check_dag(name, sent.definition())
    change = put(ports(), name, sent, caller(request), if_match(request))
    return _shown(name, 201 if change.did == "created" else 200)


def get_dag(request: Request, name: str) -> Response:
    """Read a DAG, its state, and the schedules that Sluice generated from it."""
    return _shown(name)


def delete_dag(request: Request, name: str) -> Response:
    """Delete a DAG. The waiting jobs of its runs are dropped and recorded; active runs continue."""
    delete(ports(), name, caller(request), if_match(request))
    return gone()


def enable_dag(request: Request, name: str) -> Response:
    """Enable a DAG. Events that its trigger accepts from now on start DAG runs."""
    return _act(request, enable, name)


def disable_dag(request: Request, name: str) -> Response:
    """Disable a DAG. It starts no new runs; runs that have started continue to their end."""
    return _act(request, disable, name)


def pause_dag(request: Request, name: str) -> Response:
    """Pause a DAG until it is resumed: its start in the given mode, and its nodes. Active runs of nodes go on, and what
    would start waits. With ``drain``, the DAG starts no new runs, and those that have begun go on."""
    existing(ports(), name)
    sent = parse(Pause, request)
    pauses.pause_dag(ports(), dag_start(name), sent.mode, caller(request), sent.timeouts == "stop")
    return _shown(name)


def resume_dag(request: Request, name: str) -> Response:
    """Resume a paused DAG. What waited goes on."""
    return _act(request, pauses.resume_dag, name)


def why_dag(request: Request, name: str) -> explain_dag.WhyDagView:
    """Explain why a DAG has not run: the nodes that failed last, what an active run waits for, and its trigger."""
    return explain_dag.why_dag(ports(), name)


def skip_dag(request: Request, name: str) -> Response:
    """Skip one upcoming occurrence of the times that start a DAG, identified by its nominal instant."""
    return _skip(request, name, wanted=True)


def unskip_dag(request: Request, name: str) -> Response:
    """Cancel the skip of an occurrence."""
    return _skip(request, name, wanted=False)


def run_dag(request: Request, name: str) -> Response:
    """Run a DAG now or at an instant. The run skips the trigger. Requests with the same Idempotency-Key start one
    run."""
    existing(ports(), name)
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    started_by, partition = dag_start(name), request_data.partition
    check_waiting(name, lambda: has_made(ports(), "run", started_by, request_id(request)))
    run_id = run_now(ports(), started_by, request_data.properties, request_id(request), at, partition)
    return answer(BegunDagView(run_id=run_id, dag=name), 202)


def list_dag_runs(request: Request, name: str) -> Json:
    """List the runs of a DAG, newest first, each with the state of its nodes. A deleted DAG keeps its history."""
    return listing(request, partial(page, ports(), _known(name)))


def show_dag_run(request: Request, name: str, run_id: str) -> Json:
    """Read a DAG run: the state of each node, and why."""
    return find(ports(), _known(name), run_id)


def rerun_dag(request: Request, name: str, run_id: str) -> Json:
    """Run a part of a DAG run again: ``from`` a node with all that follows it, ``only`` one node, or ``all``. The
    request is refused while any node of the run is active. Requests with the same Idempotency-Key start one re-run."""
    request_data = parse(Rerun, request)
    _known(name)
    check_waiting(name)
    what, node, chosen = request_data.what, request_data.node, request_data.elements
    return rerun(ports(), name, run_id, what, node, caller(request), request_id(request), chosen)


def list_elements(request: Request, name: str, run_id: str, node: str) -> Json:
    """List the elements of a node with each in a DAG run, those that failed first. Then come those under way, those
    that have not begun, and those that succeeded."""
    run = begun(ports(), _known(name), run_id)
    return listing(request, partial(elements.page, ports(), run, node))


def _act(request: Request, act: Any, full: str) -> Response:
    existing(ports(), full)
    act(ports(), dag_start(full), caller(request))
    return _shown(full)


def _skip(request: Request, name: str, wanted: bool) -> Response:
    existing(ports(), name)
    at = parse_instant(parse(Occurrence, request).at, "at")
    pauses.skip(ports(), dag_start(name), at, caller(request), wanted)
    return _shown(name)


def _shown(full: str, status: int = 200) -> Response:
    return document(dag_view(ports(), full), status)


def _known(name: str) -> str:
    """The full name of a DAG that exists or existed. Raises ``not_found`` otherwise."""
    if ports().rows.get(ScheduleState, dag_start(name)) is None:
        raise missing(ports(), "dag", name)
    return name
