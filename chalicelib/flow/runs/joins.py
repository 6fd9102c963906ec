"""Start the nodes of a DAG run whose join rules are met (W17) and those that a result chooses (W18), and end it with
its last node (W20).

A node may end without a run: its job was aborted, or it was skipped or blocked. So no single event decides a join.
After each end, `settle` reads the states of all nodes and starts those whose rule is met, each by one event with a
computed id. Of two nodes that end at one moment, the one whose end is stored last sees the other's. So no start is
lost, and a second one changes nothing.

The end is stored together with a request to settle: the run announces it, or the row of the DAG run wakes. So a death
in between delays the start only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.dags import rounds
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import NodeStatus
from chalicelib.core.definitions import dag as definition_dag
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.events import build
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import RecordKind, Run
from chalicelib.core.rows.schedule import WAKE, ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Create, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.dag_states import graph_of, node_states
from chalicelib.flow.ingest.apply import apply_event
from chalicelib.flow.runs import dag_ends
from chalicelib.ports import Ports


def follow(ports: Ports, schedule: str) -> bool:
    """Whether a node with a join rule or a pattern comes after the node of this schedule, directly or later."""
    graph, _, node = schedule.rpartition(ids.DAG)
    row = ports.rows.get(Definition, "dag", graph)
    dag = Dag.model_validate(row.document) if row is not None else None
    return dag is not None and any(dag.is_decided(each) for each in definition_dag.downstream(dag, node) - {node})


def settle(ports: Ports, dag_run: str) -> tuple[Run, RunUpdate] | None:
    """Start the nodes of a DAG run whose join rules are met. Idempotent: each node starts once in a round. If all nodes
    have ended, returns the start that lasts until then, and how it ends."""
    attempts = ports.runs.attempts(dag_run)
    if not attempts:
        _later(ports, dag_run)
        return None
    run, row = attempts[-1], ports.rows.get(DagRun, dag_run)
    dag, now = graph_of(ports, run), ports.clock.now()
    states = node_states(ports, run, dag, row)
    refs: list[Ref] = []
    for node, status in states.items():
        if status.starts and dag.is_decided(node):
            refs += _start(ports, run, row, node, _ends(dag, node, states), status.round, now)
    if refs:
        ports.hints.send(refs, now, now)
    update = dag_ends.update_of(run, dag, states, now) if run.state == "RUNNING" else None
    return (run, update) if update is not None else None


def start_waits(ports: Ports, dag_run: str) -> bool:
    """Whether the start of a DAG run is still a job although a node has run. So it is after a restore of the tables:
    the run of the node is found at its target, and that of the start executes nothing anywhere."""
    job = ports.jobs.find(dag_run)
    return job is not None and not job.closed


def _later(ports: Ports, dag_run: str) -> None:
    """Have the nodes decided when the start has begun: the row of the DAG run wakes until then."""
    row, now = ports.rows.get(DagRun, dag_run), ports.clock.now()
    if row is not None and row.wake_at is not None:
        return
    if not start_waits(ports, dag_run) and not ports.runs.attempts(dag_run):
        return
    due = DagRun(dag_run, rev=0) if row is None else row
    due = replace(due, rev=due.rev + 1, leases=0, wake_at=now, expires_at=None)
    ports.ledger.commit([Create(due) if row is None else Replace(due)])  # a conflict: another end has woken it


def _ends(dag: Dag, node: str, states: Mapping[str, NodeStatus]) -> list[tuple[Run, str]]:
    """The runs of the nodes before a node that have ended, each with its status."""
    found = (states[edge.from_].rows.run for edge in dag.into(node))
    return [(run, status) for run in found if run is not None and (status := dag_status.status_of(run)) is not None]


def _start(
    ports: Ports,
    begun: Run,
    row: DagRun | None,
    node: str,
    ends: list[tuple[Run, str]],
    round_: Round,
    now: Instant,
) -> tuple[Ref, ...]:
    """Apply the event that meets the rule of a node: the last end before it, or the start of the DAG run if no run
    ended. The other ends are beside it."""
    name = ids.dag_node(begun.workflow, node)
    schedule_state = ports.rows.get(ScheduleState, name)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None:
        return ()
    events = [build.status_event(run, reached) for run, reached in ends or [(begun, "COMPLETED")]]
    if row is not None and round_.number > 1:
        rerun = row.reruns[round_.number - 2]
        events = [event if _is_of(event, round_) else of_round(event, round_, rerun) for event in events]
    *others, last = sorted(events, key=_accepted)
    index = [each for each in lifecycle.subscriptions(schedule_state, schedule, 0) if each.leaf != WAKE]
    return apply_event(ports, build.joined(last, round_), index[:1], now, beside=others)


def _accepted(event: Event) -> tuple[Instant, str]:
    return event.accepted_at, event.id


def _is_of(event: Event, round_: Round) -> bool:
    return rounds.which(event.partition) == str(round_)


def of_round(event: Event, round_: Round, rerun: Mapping[str, Any]) -> Event:
    """The status event of a run for a later round, accepted at the instant of the re-run request, in the name of who
    requested it."""
    by = str(rerun["by"]) if str(rerun["by"]).startswith("arn:") else None
    return build.of_round(event, round_, by, int(rerun["at"]))


def record_kind(ports: Ports, job: Job, kind: RecordKind) -> RecordKind:
    """The kind of the record of a job that is dropped: the job of a node that is skipped, because a node before it was,
    is not aborted when it runs out of time."""
    round_ = rounds.decides(job.correlation)
    if kind != "ABORTED" or job.met_at is not None or round_ is None:
        return kind
    attempts, row = ports.runs.attempts(round_.dag_run), ports.rows.get(DagRun, round_.dag_run)
    if not attempts:
        return kind
    dag, node = graph_of(ports, attempts[-1]), job.schedule.rpartition(ids.DAG)[2]
    decision = dag_status.decision_on(dag, node, node_states(ports, attempts[-1], dag, row))
    return "SKIPPED" if decision == "SKIPPED" else kind


@dataclass(frozen=True, slots=True)
class AfterDrop:
    """What a dropped job leaves for the nodes after its own: a write in the same transaction, and the row to hint."""

    writes: tuple[Write, ...]
    ref: Ref


def after_drop(ports: Ports, job: Job, now: Instant) -> AfterDrop | None:
    """What has the joins after the node of a dropped job decided, and the DAG run ended; None if neither waits. The end
    of a retry is that of its run, which announces it."""
    round_ = rounds.decides(job.correlation)
    if round_ is None or job.traits.retries:
        return None
    if not follow(ports, job.schedule) and not dag_ends.is_awaited(ports, round_):
        return None
    row = ports.rows.get(DagRun, round_.dag_run)
    if row is None:
        write: Write = Create(DagRun(round_.dag_run, wake_at=now))
    elif round_.number > len(row.reruns):
        write = Replace(replace(row, rev=row.rev + 1, leases=0, wake_at=now, expires_at=None))
    else:
        return None  # it was left over by an earlier round
    return AfterDrop((write,), kinds.ref(DagRun, round_.dag_run))
