"""Cancel a run, also that which has begun a run of a DAG: then the whole DAG run ends (W8, W20)."""

from __future__ import annotations

from chalicelib.core import ids, states
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.status import UNDER_WAY
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.run import Run
from chalicelib.core.why import Why
from chalicelib.flow.dag_states import graph_of, node_states
from chalicelib.flow.jobs import dag_cancel
from chalicelib.flow.lookup import find_run
from chalicelib.flow.runs import actions
from chalicelib.ports import Ports


def cancel(ports: Ports, run_id: str, by: str) -> Run:
    """As `flow/runs/actions.py::cancel`. The run of a DAG's start stands for its DAG run: active nodes are cancelled,
    and no other node starts, under no join rule.

    A start that lasts as long as its DAG run keeps the request. For each other one, and for a re-run, this cancels the
    nodes before it returns. A repeat finishes a cancel that was interrupted.
    """
    run = find_run(ports, run_id)[-1]
    is_over = states.is_terminal(run.state) and dag_status.has_begun(run)
    if not ids.is_dag_graph(run.workflow) or not is_over:
        return actions.cancel(ports, run_id, by)
    dag, row = graph_of(ports, run), ports.rows.get(DagRun, run_id)
    nodes = node_states(ports, run, dag, row)
    if any(node.state in UNDER_WAY for node in nodes.values()):
        dag_cancel.cancel(ports, run, Why.of("dag_cancelled", f"the run of the DAG was cancelled by {by}"))
    elif not run.cancel and all(node.why.code != "dag_cancelled" for node in nodes.values()):
        got = f"one that is {dag_status.state_of(dag, nodes)}"
        raise SluiceError("conflict", f"expected a run of a DAG that has not ended, got {got}", None, None)
    return run
