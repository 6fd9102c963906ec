"""When a DAG run has ended: found at the end of the node that was the last (H6).

The start of most DAG runs is over when its nodes begin, so no row says how the DAG run has ended. Each end of a node
after which the DAG run may be over asks the states of all nodes, by strongly consistent reads. Of two nodes that end at
once, at least the one that is asked later sees both.
"""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.instants import Instant
from chalicelib.core.openlineage.events import EventType, Step, is_new, is_over
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import follow as core_follow
from chalicelib.core.states import is_terminal
from chalicelib.core.why import Why, plain
from chalicelib.flow.dag_states import node_states
from chalicelib.flow.openlineage.reader import Reader
from chalicelib.flow.runs import dag_ends

MAX_STARTS = 100  # DAG runs among which that of a node's record is looked for

_TYPES: Mapping[str, EventType] = {"SUCCEEDED": "COMPLETE", "FAILED": "FAIL", "CANCELLED": "ABORT"}


def ended(reader: Reader, row: Run | Record, written: Instant) -> tuple[Run, Step] | None:
    """The run that began a DAG run, and how that has ended, if the end of ``row`` may be its end; otherwise None. A row
    that is ``written`` long after its end reports nothing."""
    if not ids.is_dag_node(row.schedule) or not is_new(row, written):
        return None
    if isinstance(row, Record):
        start = _start_of_record(reader, row)
    elif not is_over(row) or row.announce or row.leases or row.element is not None:
        return None  # what follows is not decided until the end is announced
    else:
        start = _start_of_run(reader, row)
    return None if start is None else _end_of(reader, start)


def _start_of_run(reader: Reader, run: Run) -> Run | None:
    value = rounds.of_run(run)
    round_ = rounds.parse(value) if value is not None else None
    if round_ is None or _goes_on(reader, run, round_):
        return None
    attempts = reader.ports.runs.attempts(round_.dag_run)
    return attempts[-1] if attempts else None


def _start_of_record(reader: Reader, record: Record) -> Run | None:
    """The start of the DAG run in which a node never ran. The id of a record is computed from that of the start."""
    start = ids.dag_start(ids.dag_of(record.schedule))
    found = reader.ports.runs.runs("schedule", start, MAX_STARTS, None).items
    return next((run for run in found if _id_of(record, run) == record.id), None)


def _id_of(record: Record, start: Run) -> str:
    return ids.job_id(record.schedule, record.generation, str(Round(start.run_id)))


def _goes_on(reader: Reader, run: Run, round_: Round) -> bool:
    """Whether a node surely runs after this one, so that no read is needed: it follows this node alone, by its
    success."""
    if run.state != "SUCCEEDED" or round_.alone or round_.number > 1 or run.rerun_of is not None:
        return False
    graph, _, node = run.schedule.rpartition(ids.DAG)
    dag = reader.graph(graph)
    return dag is not None and any(_follows_alone(dag, node, edge.to) for edge in dag.edges if edge.from_ == node)


def _follows_alone(dag: Dag, node: str, after: str) -> bool:
    edges = dag.into(after)
    return len(edges) == 1 and not dag.is_decided(after) and edges[0].from_ == node and "COMPLETED" in edges[0].on


def _end_of(reader: Reader, start: Run) -> tuple[Run, Step] | None:
    ports, dag = reader.ports, reader.graph(start.workflow)
    if dag is None or (start.request.target.get("lasts") and not is_terminal(start.state)):
        return None  # such a start ends with its DAG run, and so does its row
    nodes = node_states(ports, start, dag, ports.rows.get(DagRun, start.run_id))
    update = dag_ends.update_of(start, dag, nodes, ports.clock.now())
    if update is None:
        return None
    state = core_follow.counts_as(start, update.state)  # its own row says the same of a timeout
    said = start.reason if state != update.state else update.reason
    reason = said if isinstance(said, Why) else plain(said)
    return start, Step(_TYPES[state], update.at, reason)
