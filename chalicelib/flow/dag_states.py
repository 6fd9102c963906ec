"""The states of the nodes of DAG runs, read from their jobs, runs and records (W4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chalicelib.core import errors, ids
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.status import UNDER_WAY, NodeRows, NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import gather
from chalicelib.core.rows import kinds
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import GATHERING_MODES, is_terminal
from chalicelib.ports import Ports

MAX_SAID = 3  # nodes that a sentence about a DAG run names


def node_states(ports: Ports, run: Run, dag: Dag, row: DagRun | None) -> dict[str, NodeStatus]:
    """The status of each node of a DAG run."""
    [found] = node_states_of(ports, [(run, dag, row)])
    return found


def node_states_of(ports: Ports, whole: Sequence[tuple[Run, Dag, DagRun | None]]) -> list[dict[str, NodeStatus]]:
    """The statuses of the nodes of several DAG runs, read together."""
    seen, keys_of = _keys_of(ports, whole)
    flat = [key for keys in keys_of for key in keys.values() if key is not None]
    # Jobs are read first, so that a job which becomes a run meanwhile is found as that run.
    seen = seen.prefetch.read(seen, [kinds.key(Job, key.schedule, key.generation, key.sort_key) for key in flat])
    more: list[Key] = [kinds.key(Run, key.run_id, 1) for key in flat]
    seen = seen.prefetch.read(seen, [*more, *(kinds.key(Record, key.run_id) for key in flat)])
    found = []
    for (run, dag, row), keys in zip(whole, keys_of, strict=True):
        latest = dag_status.rounds(dag, run.run_id, row)
        rows = {node: _rows_of(ports, seen, key) for node, key in keys.items()}
        gone = [node for node, key in keys.items() if key is None or not key.lives]
        found.append(dag_status.node_states(dag, latest, rows, gone, dag_status.frozen(dag, run.run_id, row)))
    return found


@dataclass(frozen=True, slots=True)
class NodeKey:
    """The keys of a node's job and run in its latest round. ``lives`` means that the schedule of the node is still the
    one with which the DAG run began."""

    schedule: str
    generation: int
    sort_key: str
    run_id: str
    lives: bool


def keys_of(ports: Ports, run: Run, dag: Dag, row: DagRun | None) -> dict[str, NodeKey | None]:
    """The key of each node of a DAG run, with the present states of their schedules."""
    _, [found] = _keys_of(ports, [(run, dag, row)])
    return found


def _keys_of(
    ports: Ports, whole: Sequence[tuple[Run, Dag, DagRun | None]]
) -> tuple[Ports, list[dict[str, NodeKey | None]]]:
    """The keys of several DAG runs, and the ports with the states of their schedules read ahead."""
    names = {ids.dag_node(run.workflow, node) for run, dag, _ in whole for node in dag.nodes}
    seen = ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in sorted(names)])
    schedule_states = {name: seen.rows.get(ScheduleState, name) for name in names}
    return seen, [node_keys(run, dag, row, schedule_states) for run, dag, row in whole]


def node_keys(
    run: Run, dag: Dag, row: DagRun | None, schedule_states: Mapping[str, ScheduleState | None]
) -> dict[str, NodeKey | None]:
    """The key of each node of a DAG run; None for one without a schedule."""
    found: dict[str, NodeKey | None] = {}
    for node, round_ in dag_status.rounds(dag, run.run_id, row).items():
        name = ids.dag_node(run.workflow, node)
        schedule_state = schedule_states[name]
        if schedule_state is None:
            found[node] = None
            continue
        generation = dag_status.generation_at(schedule_state, run)
        run_id = ids.job_id(name, generation, str(round_))
        lives = schedule_state.mode in GATHERING_MODES and schedule_state.generation == generation
        found[node] = NodeKey(name, generation, gather.gathering_key(dag_status.correlation_of(round_)), run_id, lives)
    return found


def _rows_of(ports: Ports, seen: Ports, key: NodeKey | None) -> NodeRows:
    if key is None:
        return NodeRows()
    job = seen.rows.get(Job, key.schedule, key.generation, key.sort_key)
    first = seen.rows.get(Run, key.run_id, 1)
    # A later attempt or a redrive follows only an attempt that has ended without success.
    has_more = first is not None and is_terminal(first.state) and first.state != "SUCCEEDED"
    last = ports.runs.attempts(key.run_id)[-1] if has_more else first
    return NodeRows(job if job is not None and not job.closed else None, last, seen.rows.get(Record, key.run_id))


def graph_of(ports: Ports, run: Run) -> Dag:
    """The graph with which a DAG run began. Sluice keeps the graphs because it keeps the runs."""
    row = ports.rows.get(Definition, "dag", run.workflow)
    if row is None:
        raise errors.not_found("graph", run.workflow)
    return Dag.model_validate(row.document)


def states_of(ports: Ports, starts: Sequence[Run]) -> list[tuple[Run, Dag, DagRun | None, dict[str, NodeStatus]]]:
    """The graphs of several DAG runs and the statuses of their nodes, by the runs that began them. It reads them
    together."""
    of_graph = {run.workflow: run for run in starts}
    graphs = {workflow: graph_of(ports, run) for workflow, run in of_graph.items()}
    seen = ports.prefetch.read(ports, [kinds.key(DagRun, run.run_id) for run in starts])
    whole = [(run, graphs[run.workflow], seen.rows.get(DagRun, run.run_id)) for run in starts]
    return [(*each, nodes) for each, nodes in zip(whole, node_states_of(ports, whole), strict=True)]


def has_begun(run: Run) -> bool:
    """As `core/dags/status.py::has_begun`."""
    return dag_status.has_begun(run)


def state_of(run: Run, dag: Dag, nodes: Mapping[str, NodeStatus]) -> str:
    """The state of a DAG run, which ``run`` has begun or could not begin."""
    return dag_status.state_of(dag, nodes) if dag_status.has_begun(run) else not_begun(run)


def ended_at(run: Run, nodes: Mapping[str, NodeStatus]) -> Instant | None:
    """When the last run of a DAG run that is over has ended."""
    ends = [found.ended_at for node in nodes.values() if (found := node.rows.run) is not None and found.ended_at]
    return max(ends, default=run.ended_at)


def said_under_way(ports: Ports, run: Run) -> str:
    """The active nodes of a DAG run in words: ``node load is RUNNING, node publish is PENDING``."""
    nodes = node_states(ports, run, graph_of(ports, run), None)
    active = [(name, node.state) for name, node in nodes.items() if node.state in UNDER_WAY]
    active.sort(key=lambda each: each[1] == "PENDING")
    return ", ".join(f"node {name} is {state}" for name, state in active[:MAX_SAID])


def not_begun(run: Run) -> str:
    """The state of a DAG run whose start has not succeeded."""
    return "RUNNING" if run.state in ("STARTING", "RUNNING") else run.state
