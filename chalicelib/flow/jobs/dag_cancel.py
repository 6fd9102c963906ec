"""Cancel a DAG run: its nodes, those that run and those that wait (W20, L12, L21)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.dags.status import UNDER_WAY
from chalicelib.core.jobs import claim
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.run import Run
from chalicelib.core.schedules import lifecycle
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, ExpectNoRun, Put, Replace, Write
from chalicelib.flow.dag_states import NodeKey, graph_of, keys_of, node_states
from chalicelib.flow.jobs.drop import drop_at, states_of_held
from chalicelib.flow.limits import queues
from chalicelib.flow.runs import follow
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


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
        else:
            _end(ports, key, run.attempt, why)


def _end(ports: Ports, key: NodeKey, attempt: int, why: Why) -> None:
    """Cancel an attempt of a node. If it has failed meanwhile, drop its retry, or cancel the next attempt."""
    for number in range(attempt, attempt + MAX_CONFLICTS):
        run = ports.rows.get(Run, key.run_id, number)
        if run is not None and run.state != "RETRYING":
            follow.request_cancel(ports, key.run_id, number, why)
            run = ports.rows.get(Run, key.run_id, number)
        if run is None or run.state != "RETRYING":
            return
        if drop_at(ports, (key.schedule, key.generation, sort_keys.retry(run.run_id, number + 1)), why):
            return


def _close_node(ports: Ports, key: NodeKey, why: Why) -> None:
    """Put a node on record that has no run yet, and a tombstone over its job. So no status of an upstream node makes
    another job. A node that has become a run meanwhile is cancelled."""
    for _ in range(MAX_CONFLICTS):
        if ports.rows.get(Run, key.run_id, 1) is not None:
            _end(ports, key, 1, why)
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
