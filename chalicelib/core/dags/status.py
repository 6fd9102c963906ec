"""The status of a DAG run, node by node, and the nodes that a re-run runs again (W4).

The status is not stored: it follows from the jobs, runs and records of the nodes. A DAG run has **rounds** (see
`rounds`). The status of a node is that of the latest round to which the node belongs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from chalicelib.core.dags import rounds as dag_rounds
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions import dag as definition_dag
from chalicelib.core.definitions.dag import Dag, Edge
from chalicelib.core.instants import Instant
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import PROGRAM_STATUS, is_terminal
from chalicelib.core.why import Why, joined, plain

# PENDING: its upstream nodes are active. WAITING: it has a job, which waits for more. BLOCKED: an upstream node has not
# ended as required, so it will not run. SKIPPED: the same, for a node that only a failure or a skipped node leads to.
NodeState = Literal[
    "PENDING", "WAITING", "STARTING", "RUNNING", "RETRYING",
    "SUCCEEDED", "FAILED", "CANCELLED", "ABORTED", "BLOCKED", "SKIPPED",
]  # fmt: skip
DagState = Literal["RUNNING", "SUCCEEDED", "FAILED"]
Again = Literal["from", "only", "all"]
UNDER_WAY: tuple[NodeState, ...] = ("PENDING", "WAITING", "STARTING", "RUNNING", "RETRYING")
WELL: tuple[NodeState, ...] = ("SUCCEEDED", "SKIPPED")


@dataclass(frozen=True, slots=True)
class NodeRows:
    """The row of a node in its latest round: a waiting job, the last attempt of its run, or a record."""

    job: Job | None = None
    run: Run | None = None
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The state of a node, and why."""

    state: NodeState
    why: Why
    round: Round
    rows: NodeRows


def again(dag: Dag, what: str, node: str | None) -> frozenset[str]:
    """The nodes that a re-run runs again: a node and all that follow it (``from``), one node (``only``), or ``all``."""
    if what == "all" or node is None:
        return frozenset(dag.nodes)
    return definition_dag.downstream(dag, node) if what == "from" else frozenset({node})


def rounds(dag: Dag, dag_run: str, row: DagRun | None) -> dict[str, Round]:
    """The latest round of each node."""
    found = dict.fromkeys(dag.nodes, Round(dag_run))
    for round_, nodes in _reruns(dag, dag_run, row):
        found |= dict.fromkeys(nodes, round_)
    return found


def last_rerun(dag: Dag, row: DagRun) -> tuple[Round, frozenset[str]]:
    """The latest re-run: its round, and its nodes. Raises ValueError if the row has none."""
    *_, last = _reruns(dag, row.dag_run, row)
    return last


def _reruns(dag: Dag, dag_run: str, row: DagRun | None) -> Iterator[tuple[Round, frozenset[str]]]:
    for number, rerun in enumerate(row.reruns if row else (), start=2):
        yield Round(dag_run, number, rerun["what"] == "only"), again(dag, rerun["what"], rerun.get("node"))


def generation_at(schedule_state: ScheduleState, instant: Instant) -> int:
    """The generation of a node's schedule that runs the node for a DAG run that began at ``instant``. There may be
    several, since a deleted DAG can be created again. A generation is the instant at which it began."""
    known = (*schedule_state.former, schedule_state.generation)
    return max((began for began in known if began <= instant), default=known[0])


def node_states(
    dag: Dag, latest: Mapping[str, Round], seen: Mapping[str, NodeRows], gone: Collection[str] = ()
) -> dict[str, NodeStatus]:
    """The status of each node. Until the status of an upstream run is announced, the nodes that it reaches are active.
    Nodes in ``gone`` are blocked instead, since their schedules no longer exist."""
    found: dict[str, NodeStatus] = {}
    for node in definition_dag.in_order(dag):
        state, why = _state_of_node(node, dag, latest, seen[node], found)
        if node in gone and state in ("PENDING", "WAITING"):
            state, why = "BLOCKED", plain("the DAG was deleted before this node was reached")
        found[node] = NodeStatus(state, why, latest[node], seen[node])
    return found


def succeeding(dag: Dag) -> list[str]:
    """The nodes that run if every run succeeds, in an order in which they may. A failure alone leads to the others."""
    found: list[str] = []
    for node in definition_dag.in_order(dag):
        if all(edge.from_ in found and "COMPLETED" in edge.on for edge in dag.into(node)):
            found.append(node)
    return found


def state_of(nodes: Mapping[str, NodeStatus]) -> DagState:
    """The state of the DAG run: RUNNING while a node is active, else SUCCEEDED if all nodes succeeded or were
    skipped."""
    if any(node.state in UNDER_WAY for node in nodes.values()):
        return "RUNNING"
    return "SUCCEEDED" if all(node.state in WELL for node in nodes.values()) else "FAILED"


def status_of(run: Run) -> str | None:
    """The program status with which an attempt has ended; None if it has not, or no schedule can wait for it."""
    return PROGRAM_STATUS.get(run.state) if is_terminal(run.state) else None


def reaches(edge: Edge, run: Run | None) -> bool:
    """Whether the run of an upstream node has ended as the edge requires."""
    return run is not None and status_of(run) in edge.on


def _state_of_node(
    node: str, dag: Dag, latest: Mapping[str, Round], seen: NodeRows, before: Mapping[str, NodeStatus]
) -> tuple[NodeState, Why]:
    if seen.run is not None:
        return seen.run.state, seen.run.reason or seen.run.fired_by
    if seen.record is not None:
        reason = seen.record.reason
        return "ABORTED", Why.of(reason.code, f"{seen.record.kind.lower()}: ", reason)
    if seen.job is not None and seen.job.met_at is not None:
        return "WAITING", seen.job.reason
    edges = dag.into(node)
    lost = [edge for edge in edges if _is_lost(edge, before[edge.from_])]
    if lost:
        skipped = all(_is_skipped(edge, before[edge.from_]) for edge in lost)
        why = joined(_lost(edge, before[edge.from_]) for edge in lost)
        return "SKIPPED" if skipped else "BLOCKED", why
    open_ones = [edge.from_ for edge in edges if not reaches(edge, before[edge.from_].rows.run)]
    if open_ones:
        return "WAITING" if seen.job is not None else "PENDING", plain(f"waits for {', '.join(open_ones)}")
    # The round of this node began after those of its upstream nodes, so their statuses reach it. No later one does.
    if all(before[edge.from_].round.number <= latest[node].number for edge in edges):
        return "PENDING", plain("all upstream nodes have ended as required")
    again_alone = "an upstream node has run again alone since; run the DAG again from this node"
    return "BLOCKED", plain(again_alone)


def _is_lost(edge: Edge, upstream: NodeStatus) -> bool:
    """Whether an upstream node has ended other than the edge requires, so that the next node needs a re-run."""
    return upstream.state not in UNDER_WAY and not reaches(edge, upstream.rows.run)


def _is_skipped(edge: Edge, upstream: NodeStatus) -> bool:
    return upstream.state == "SKIPPED" or (upstream.state == "SUCCEEDED" and "COMPLETED" not in edge.on)


def _lost(edge: Edge, upstream: NodeStatus) -> str:
    return f"needs {edge.from_} {' or '.join(edge.on)}, which is {upstream.state}"


def correlation_of(round_: Round) -> dict[str, str]:
    """The correlation of the jobs of a round."""
    return {dag_rounds.KEY: str(round_)}
