"""End a DAG run (W20): its start ends when its last node does, and a DAG run that is cancelled ends its nodes.

Only the start of a DAG with a limit, a deadline or notices lasts so long; each other start is over when its DAG run has
begun. The end of each node asks whether it was the last (`joins.settle`). A poll of the start asks the same, every ten
minutes. So an end that nobody told of is found, and the slot of the DAG run is free again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import UNDER_WAY, NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import claim
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow as core_follow
from chalicelib.core.schedules import lifecycle
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import Why, joined, plain
from chalicelib.core.writes import Create, ExpectNoRun, Put, Replace, Write
from chalicelib.flow.dag_states import NodeKey, ended_at, graph_of, keys_of, node_states
from chalicelib.flow.jobs.drop import drop_at, states_of_held
from chalicelib.flow.limits import queues
from chalicelib.flow.runs import follow
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

MAX_SAID = 3  # nodes in the reason of a DAG run
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


def said_under_way(ports: Ports, run: Run) -> str:
    """The active nodes of a DAG run in words: ``node load is RUNNING, node publish is PENDING``."""
    nodes = node_states(ports, run, graph_of(ports, run), None)
    active = [(name, node.state) for name, node in nodes.items() if node.state in UNDER_WAY]
    active.sort(key=lambda each: each[1] == "PENDING")
    return ", ".join(f"node {name} is {state}" for name, state in active[:MAX_SAID])


def cancel(ports: Ports, begun: Run, why: Why) -> None:
    """Cancel the active runs of a DAG run's nodes, and let no other node of it start. Idempotent.

    The last nodes come first, so that the end of a cancelled run reaches no node that waits for it. Raises RuntimeError
    after ``MAX_CONFLICTS`` conflicts in a row.
    """
    dag, row = graph_of(ports, begun), ports.rows.get(DagRun, begun.run_id)
    states = node_states(ports, begun, dag, row)
    keys = keys_of(ports, begun, dag, row)
    for node, found in reversed(states.items()):
        key, run = keys[node], found.rows.run
        if found.state not in UNDER_WAY or key is None:
            continue
        if run is None:
            _close_node(ports, key, why)
        elif found.state == "RETRYING":
            retry = (key.schedule, key.generation, sort_keys.retry(run.run_id, run.attempt + 1))
            if not drop_at(ports, retry, why):
                follow.request_cancel(ports, run.run_id, run.attempt + 1, why)
        else:
            follow.request_cancel(ports, run.run_id, run.attempt, why)


def _close_node(ports: Ports, key: NodeKey, why: Why) -> None:
    """Put a node on record that has no run yet, and a tombstone over its job. So no status of an upstream node makes
    another job. A node that has become a run meanwhile is cancelled."""
    for _ in range(MAX_CONFLICTS):
        if ports.rows.get(Run, key.run_id, 1) is not None:
            follow.request_cancel(ports, key.run_id, 1, why)
            return
        job = ports.rows.get(Job, key.schedule, key.generation, key.sort_key)
        if (job is not None and job.closed) or ports.ledger.commit(_closing(ports, key, job, why)) is None:
            return
    raise too_many_conflicts(f"cancelling the node of {key.run_id}", "the sweep will try again")


def _closing(ports: Ports, key: NodeKey, job: Job | None, why: Why) -> list[Write]:
    now = ports.clock.now()
    if job is None:
        named = Job(key.schedule, key.generation, key.sort_key, key.run_id, "gathering", "PENDING_TRIGGER", now)
        record = record_of(named, "DROPPED", why, now)
        return [Create(lifecycle.tombstone(named, why, now)), Put(record), ExpectNoRun(named)]
    job = queues.regained(ports, job)
    left = claim.released(job, states_of_held(ports, job), now)
    over = Replace(replace(lifecycle.tombstone(job, why, now), rev=job.rev + 1), over=job)
    return [over, Put(record_of(job, "DROPPED", why, now)), *left]
