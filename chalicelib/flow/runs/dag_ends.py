"""How a DAG run ends (W20): its start ends when its last node does.

Only the start of a DAG with a limit, a deadline or notices lasts so long; each other start is over when its DAG run has
begun. The end of each node asks whether it was the last (`joins.settle`). A poll of the start asks the same, every ten
minutes. So an end that nobody told of is found, and the slot of the DAG run is free again.
"""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow as core_follow
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import Why, joined, plain
from chalicelib.flow.dag_states import MAX_SAID, ended_at, graph_of, node_states
from chalicelib.ports import Ports

MAX_REASON = 200  # characters of the reason of each


def is_awaited(ports: Ports, round_: Round | None) -> bool:
    """Whether the start of a DAG run waits for the end of this round's nodes."""
    attempts = ports.runs.attempts(round_.dag_run) if round_ is not None and round_.number == 1 else ()
    return bool(attempts) and attempts[-1].state == "RUNNING"


def status(ports: Ports, run: Run) -> RunUpdate | None:
    """How the DAG run ended that ``run`` has begun; None while a node of it is active."""
    dag = graph_of(ports, run)
    return update_of(run, dag, node_states(ports, run, dag, None), ports.clock.now())


def update_of(run: Run, dag: Dag, nodes: Mapping[str, NodeStatus], now: Instant) -> RunUpdate | None:
    """The update of a DAG's start by the states of its nodes; None while one is active."""
    state = dag_status.state_of(dag, nodes)
    if state == "RUNNING":
        return None
    records = [node.rows.record.recorded_at for node in nodes.values() if node.rows.record is not None]
    at = max(ended_at(run, nodes) or 0, *records, 0) or now
    if state == "SUCCEEDED":
        return RunUpdate("SUCCEEDED", at)
    if core_follow.ends(run):
        return RunUpdate("CANCELLED", at)
    return RunUpdate("FAILED", at, why_failed(dag, nodes))


def why_failed(dag: Dag, nodes: Mapping[str, NodeStatus]) -> Why:
    """The nodes because of which a DAG run failed: those that ran and failed, else those that never ran."""
    lost = [node for node in dag.nodes if node in dag_status.failures(dag, nodes)]
    lost = [node for node in lost if nodes[node].state != "BLOCKED"] or lost
    said = [plain(f"node {node} is {nodes[node].state}: ", nodes[node].why.cut(MAX_REASON)) for node in lost[:MAX_SAID]]
    more = plain(f"{len(lost) - MAX_SAID} more failed" if len(lost) > MAX_SAID else "")
    return Why.of("dag_failed", joined([*said, more]))
