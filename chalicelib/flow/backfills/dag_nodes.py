"""Cancel the nodes of a DAG run whose re-processing is cancelled with its runs (L21)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.dags.status import UNDER_WAY
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import claim
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.run import Run
from chalicelib.core.schedules.lifecycle import TOMBSTONE_LIFE
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, ExpectNoRun, Put, Replace, Write
from chalicelib.flow import dag_states
from chalicelib.flow.dag_states import NodeKey
from chalicelib.flow.jobs import drop
from chalicelib.flow.limits import waiting
from chalicelib.flow.runs import cancel
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def cancel_nodes(ports: Ports, begun: Run, why: Why) -> None:
    """Cancel the active runs of a DAG run's nodes, and let no other node of it start. Idempotent.

    The last nodes come first, so that the end of a cancelled run reaches no node that waits for it. Raises RuntimeError
    after ``MAX_CONFLICTS`` conflicts in a row.
    """
    dag, row = dag_states.graph_of(ports, begun), ports.rows.get(DagRun, begun.run_id)
    states = dag_states.node_states(ports, begun, dag, row)
    keys = dag_states.keys_of(ports, begun, dag, row)
    for node, status in reversed(states.items()):
        key, run = keys[node], status.rows.run
        if status.state not in UNDER_WAY or key is None:
            continue
        if run is None:
            _close(ports, key, why)
        elif status.state == "RETRYING":
            retry = (key.schedule, key.generation, sort_keys.retry(run.run_id, run.attempt + 1))
            if not drop.drop_at(ports, retry, why):
                cancel.request_cancel(ports, run.run_id, run.attempt + 1, why)
        else:
            cancel.request_cancel(ports, run.run_id, run.attempt, why)


def _close(ports: Ports, key: NodeKey, why: Why) -> None:
    """Put a node on record that has no run yet, and a tombstone over its job. So no status of an upstream node makes
    another job. A node that has become a run meanwhile is cancelled."""
    for _ in range(MAX_CONFLICTS):
        if ports.rows.get(Run, key.run_id, 1) is not None:
            cancel.request_cancel(ports, key.run_id, 1, why)
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
        return [Create(_tombstone(named, why, now)), Put(record), ExpectNoRun(named)]
    job = waiting.regained(ports, job)
    left = claim.released(job, drop.states_of_held(ports, job), now)
    over = Replace(replace(_tombstone(job, why, now), rev=job.rev + 1), over=job)
    return [over, Put(record_of(job, "DROPPED", why, now)), *left]


def _tombstone(job: Job, why: Why, now: Instant) -> Job:
    bare = replace(job, closed=True, job_id="", queued_in=None, rank=None, held=(), reason=why, wake_at=None)
    return replace(bare, expires_at=now + TOMBSTONE_LIFE)
