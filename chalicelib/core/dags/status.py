"""The status of a DAG run, node by node, and the nodes that a re-run runs again (W4).

The status is not stored: it follows from the jobs, runs and records of the nodes. A DAG run has **rounds** (see
`rounds`). The status of a node is that of the latest round to which the node belongs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chalicelib.core import ids, results
from chalicelib.core.dags import branches, join
from chalicelib.core.dags import rounds as dag_rounds
from chalicelib.core.dags.join import Decision, Outcome
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions import dag as definition_dag
from chalicelib.core.definitions.dag import Dag, Edge, Node
from chalicelib.core.results import Result
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import PROGRAM_STATUS, is_terminal
from chalicelib.core.why import Why, joined, plain

# PENDING: its upstream nodes are active. WAITING: it has a job, which waits for more. BLOCKED: an upstream node has
# failed, so it will not run. SKIPPED: it will not run, and no failure is the reason.
NodeState = Literal[
    "PENDING", "WAITING", "STARTING", "RUNNING", "RETRYING",
    "SUCCEEDED", "FAILED", "CANCELLED", "ABORTED", "BLOCKED", "SKIPPED",
]  # fmt: skip
DagState = Literal["RUNNING", "SUCCEEDED", "FAILED"]
Again = Literal["from", "only", "all"]
UNDER_WAY: tuple[NodeState, ...] = ("PENDING", "WAITING", "STARTING", "RUNNING", "RETRYING")
WELL: tuple[NodeState, ...] = ("SUCCEEDED", "SKIPPED")
_NONE_KEPT: Mapping[str, NodeState] = {}


@dataclass(frozen=True, slots=True)
class NodeRows:
    """The row of a node in its latest round: a waiting job, the last attempt of its run, or a record."""

    job: Job | None = None
    run: Run | None = None
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The state of a node, and why. ``starts``: its join rule is met, and it has no job, run or record yet."""

    state: NodeState
    why: Why
    round: Round
    rows: NodeRows
    starts: bool = False


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


def frozen(dag: Dag, dag_run: str, row: DagRun | None) -> dict[str, NodeState]:
    """The nodes that did not run before a node before them ran again alone, with the states that they had then. They
    keep these: a re-run decides about its own round."""
    latest, found = rounds(dag, dag_run, row), dict[str, NodeState]()
    for (round_, nodes), rerun in zip(_reruns(dag, dag_run, row), row.reruns if row else (), strict=True):
        if "skipped" not in rerun:  # not alone, or requested before states were kept
            continue
        after = [edge.to for edge in dag.edges if edge.from_ in nodes and latest[edge.to].number < round_.number]
        found |= {node: "SKIPPED" if node in rerun["skipped"] else "BLOCKED" for node in after}
    return found


def generation_at(schedule_state: ScheduleState, begun: Run) -> int:
    """The generation of a node's schedule that runs the node for the DAG run that the run ``begun`` has begun. There
    may be several, since a deleted DAG can be created again. A generation is the instant at which it began, or a little
    later if another one began at that instant. The nodes of a DAG are put before its start, so theirs is not after
    that of the start."""
    latest = max(begun.claimed_at, begun.generation)
    known = (*schedule_state.former, schedule_state.generation)
    return max((began for began in known if began <= latest), default=known[0])


def node_states(
    dag: Dag,
    latest: Mapping[str, Round],
    seen: Mapping[str, NodeRows],
    gone: Collection[str] = (),
    kept: Mapping[str, NodeState] = _NONE_KEPT,
) -> dict[str, NodeStatus]:
    """The status of each node. Until the status of an upstream run is announced, the nodes that it reaches are active.
    Nodes in ``gone`` are blocked instead, since their schedules no longer exist. ``kept`` is from `frozen`."""
    found: dict[str, NodeStatus] = {}
    for node in definition_dag.in_order(dag):
        status = _status_of_node(node, dag, latest, seen[node], found, kept.get(node))
        if node in gone and status.state in ("PENDING", "WAITING"):
            why = plain("the DAG was deleted before this node was reached")
            status = NodeStatus("BLOCKED", why, latest[node], seen[node])
        found[node] = status
    return found


def succeeding(dag: Dag) -> list[str]:
    """The nodes that run if every run succeeds and every result matches, in an order in which they may. A failure alone
    leads to the others."""
    found: list[str] = []
    for node in definition_dag.in_order(dag):
        outcomes: list[Outcome] = [
            "met" if edge.from_ in found and "COMPLETED" in edge.on else "skipped" for edge in dag.into(node)
        ]
        if join.judge(dag.nodes[node].when, outcomes) == "START":
            found.append(node)
    return found


def state_of(dag: Dag, nodes: Mapping[str, NodeStatus]) -> DagState:
    """The state of the DAG run: RUNNING while a node is active, else FAILED if a node failed that no rule took care
    of."""
    if any(node.state in UNDER_WAY for node in nodes.values()):
        return "RUNNING"
    return "FAILED" if failures(dag, nodes) else "SUCCEEDED"


def failures(dag: Dag, nodes: Mapping[str, NodeStatus]) -> list[str]:
    """The nodes that did not end well, and that no rule took care of.

    A node with one of the rules `join.HANDLES` that succeeded takes care of the failed nodes before it. If one of them
    is BLOCKED, then also of the failures that blocked it.
    """
    found: list[str] = []
    for node in reversed(definition_dag.in_order(dag)):
        after = [edge.to for edge in dag.edges if edge.from_ == node]
        taken_care = any(
            (dag.nodes[each].when in join.HANDLES and nodes[each].state == "SUCCEEDED")
            or (nodes[each].state == "BLOCKED" and each not in found)
            for each in after
        )
        if nodes[node].state not in WELL and not taken_care:
            found.append(node)
    return found


def has_begun(run: Run) -> bool:
    """Whether the run of a DAG's start has begun a DAG run."""
    return run.state == "SUCCEEDED" or run.running_seen_at is not None


def status_of(run: Run) -> str | None:
    """The program status with which an attempt has ended; None if it has not, or no schedule can wait for it. The start
    of a DAG run is complete when the DAG run has begun."""
    if ids.is_dag_graph(run.workflow):
        return "COMPLETED" if has_begun(run) else None
    return PROGRAM_STATUS.get(run.state) if is_terminal(run.state) else None


def reaches(edge: Edge, run: Run | None) -> bool:
    """Whether the run of an upstream node has ended as the edge requires."""
    return run is not None and status_of(run) in edge.on


def result_of(node: NodeStatus) -> Result:
    """What the run of a node has handed on in its latest round. None before it has succeeded."""
    run = node.rows.run
    return results.NONE if run is None else Result(run.result, run.result_refused)


def outcome_of(edge: Edge, upstream: NodeStatus) -> Outcome:
    """What the state of an upstream node means for an edge."""
    if upstream.state in UNDER_WAY:
        return "open"
    if reaches(edge, upstream.rows.run):
        return branches.outcome(edge.if_, result_of(upstream))
    no_failure = upstream.state == "SUCCEEDED" and "COMPLETED" not in edge.on
    return "skipped" if upstream.state == "SKIPPED" or no_failure else "failed"


def decision_on(dag: Dag, node: str, states: Mapping[str, NodeStatus]) -> Decision:
    """Whether a node runs, by the states of its upstream nodes."""
    return join.judge(dag.nodes[node].when, [outcome_of(edge, states[edge.from_]) for edge in dag.into(node)])


def _status_of_node(
    node: str,
    dag: Dag,
    latest: Mapping[str, Round],
    seen: NodeRows,
    before: Mapping[str, NodeStatus],
    kept: NodeState | None,
) -> NodeStatus:
    def status(state: NodeState, why: Why) -> NodeStatus:
        return NodeStatus(state, why, latest[node], seen)

    if seen.run is not None:
        return status(seen.run.state, seen.run.reason or seen.run.fired_by)
    if seen.record is not None:
        kind, reason = seen.record.kind, seen.record.reason
        return status("SKIPPED" if kind == "SKIPPED" else "ABORTED", Why.of(reason.code, f"{kind.lower()}: ", reason))
    if seen.job is not None and seen.job.met_at is not None:
        return status("WAITING", seen.job.reason)
    definition, edges, decision = dag.nodes[node], dag.into(node), decision_on(dag, node, before)
    # The round of a node begins after those of its upstream nodes, so their ends reach it. No later one does.
    in_time = definition.when == "always" or all(
        before[edge.from_].round.number <= latest[node].number for edge in edges
    )
    if decision == "START" and in_time and kept is None:
        return replace(status("PENDING", plain(_met(definition))), starts=True)
    if decision == "START" or (kept is not None and decision != kept):
        again_alone = "an upstream node has run again alone since; run the DAG again from this node"
        return status(kept or "BLOCKED", plain(again_alone))
    if decision == "OPEN" or _runs_anyway(dag, node, seen, before):
        open_ones = [edge.from_ for edge in edges if outcome_of(edge, before[edge.from_]) == "open"]
        waits = f"waits for {', '.join(open_ones)}" if open_ones else "runs when its timeout ends"
        return status("WAITING" if seen.job is not None else "PENDING", plain(waits))
    return status(decision, _lost(definition, decision, edges, before))


def _runs_anyway(dag: Dag, name: str, seen: NodeRows, before: Mapping[str, NodeStatus]) -> bool:
    """Whether the timeout of a node runs it although nodes before it failed. It has a job, or the end of a node before
    it makes one."""
    node, edges = dag.nodes[name], dag.into(name)
    if dag.is_decided(name) or node.when == "always" or node.timeout == "never" or node.timeout.then != "run":
        return False
    return seen.job is not None or any(outcome_of(edge, before[edge.from_]) in ("met", "open") for edge in edges)


def _met(node: Node) -> str:
    return "all upstream nodes have ended as required" if node.when == "all_succeeded" else f"{node.when}: starts"


def _lost(node: Node, decision: Decision, edges: Sequence[Edge], before: Mapping[str, NodeStatus]) -> Why:
    """Why a node will not run: the nodes before it that are the reason."""
    outcomes = [(edge, outcome_of(edge, before[edge.from_])) for edge in edges]
    if node.when == "all_succeeded":
        return joined(unmet(edge, before[edge.from_]) for edge, outcome in outcomes if outcome not in ("met", "open"))
    wanted = {"BLOCKED": "failed", "SKIPPED": "unmet"}[decision] if node.when in ("none_failed", "all_done") else None
    reasons = [edge for edge, outcome in outcomes if wanted in (None, outcome)]
    said = joined((_is_now(edge, before[edge.from_]) for edge in reasons), ", ")
    return Why.of(said.code, f"{node.when}: ", said)


def is_asked(edge: Edge, upstream: NodeStatus) -> bool:
    """Whether the result of an upstream node was asked for, since it succeeded."""
    return edge.if_ is not None and reaches(edge, upstream.rows.run)


def unmet(edge: Edge, upstream: NodeStatus) -> Why:
    """What an edge needs that the end of its upstream node did not give."""
    if edge.if_ is not None and is_asked(edge, upstream):
        return branches.lacks(edge.from_, edge.if_, result_of(upstream))
    return plain(f"needs {edge.from_} {' or '.join(edge.on)}, which is {upstream.state}")


def _is_now(edge: Edge, upstream: NodeStatus) -> Why:
    lacks = is_asked(edge, upstream) and outcome_of(edge, upstream) != "met"
    return unmet(edge, upstream) if lacks else plain(f"{edge.from_} is {upstream.state}")


def correlation_of(round_: Round) -> dict[str, str]:
    """The correlation of the jobs of a round."""
    return {dag_rounds.KEY: str(round_)}
