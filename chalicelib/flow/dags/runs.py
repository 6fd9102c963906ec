"""Runs of DAGs: what there is to see of them, and how parts of them are run again (W4).

A re-run starts nothing itself. It tells the nodes that are to run again, under the number of a new round, what stands
of all that leads to them and does not run again. From there on all is as in the first round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.dags import rounds
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import UNDER_WAY, Again, NodeRows, NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import build, correlation
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY, WAKE, ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import is_terminal
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import lookup
from chalicelib.flow.ingest.apply import apply_event
from chalicelib.flow.jobs.drop import drop_job
from chalicelib.ports import MAX_RACES, Page, Ports, RowRequest

View = dict[str, Any]
MAX_RERUNS = 100
MAX_SHOWN = 25  # runs of a page: each may have a hundred nodes, and the API has half a minute


def page(ports: Ports, name: str, limit: int, cursor: str | None) -> Page[View]:
    """The runs of a DAG, newest first; a page may be shorter than was asked for, and more may follow it."""
    found = ports.runs.runs("schedule", ids.dag_start(name), min(limit, MAX_SHOWN), cursor)
    graphs = {run.workflow: graph_of(ports, run) for run in found.items}
    whole = [(run, graphs[run.workflow], ports.runs.dag_run(run.run_id)) for run in found.items]
    states = node_states_of(ports, whole)
    return Page(tuple(_view(run, row, nodes) for (run, _, row), nodes in zip(whole, states, strict=True)), found.cursor)


def begun(ports: Ports, name: str, run_id: str) -> Run:
    """The run that began a run of a DAG; refused with 404 if it is none of this DAG's."""
    attempts = ports.runs.attempts(run_id)
    if not attempts or attempts[-1].schedule != ids.dag_start(name):
        raise errors.not_found("run of the DAG", run_id, f"sluice dags runs {name}")
    return attempts[-1]


def view(ports: Ports, run: Run, in_full: bool = False) -> View:
    """A run of a DAG as it stands: its state, and that of each node."""
    row = ports.runs.dag_run(run.run_id)
    return _view(run, row, node_states(ports, run, graph_of(ports, run), row), in_full)


def _view(run: Run, row: DagRun | None, nodes: Mapping[str, NodeStatus], in_full: bool = False) -> View:
    state = dag_status.state_of(nodes) if run.state == "SUCCEEDED" else _not_begun(run)
    ends = [found.ended_at for node in nodes.values() if (found := node.rows.run) is not None and found.ended_at]
    return {
        "run_id": run.run_id,
        "dag": ids.dag_of(run.schedule),
        "graph": run.workflow.rpartition(ids.DAG)[2],
        "state": state,
        "fired_by": run.fired_by,
        "partition": rounds.without(run.partition),
        "nominal_at": _iso(run.nominal_at),
        "started_at": iso(run.claimed_at),
        "ended_at": _iso(max(ends, default=run.ended_at)) if state != "RUNNING" else None,
        "reruns": [
            {**rerun, "round": number, "at": iso(rerun["at"])} for number, rerun in enumerate(_reruns(row), start=2)
        ],
        "nodes": {node: _node_view(states, in_full) for node, states in nodes.items()},
    }


def rerun(ports: Ports, name: str, run_id: str, what: Again, node: str | None, by: str, request: str) -> View:
    """Run a part of a DAG's run again, once for each request id, when nothing of it is under way."""
    for _ in range(MAX_RACES):
        run = begun(ports, name, run_id)
        row = ports.runs.dag_run(run_id)
        if row is not None and row.wake_at is not None:
            advance(ports, run_id)  # the one before is still to be begun
            continue
        if any(rerun["request"] == request for rerun in _reruns(row)):
            return view(ports, run, in_full=True)
        _check(ports, run, row, what, node)
        now = ports.clock.now()
        rerun = {"request": request, "what": what, "by": by, "at": now, **({"node": node} if node is not None else {})}
        base = row or DagRun(run_id, rev=0)
        later = replace(base, reruns=(*base.reruns, rerun), rev=base.rev + 1, leases=0, wake_at=now, expires_at=None)
        if ports.ledger.commit([Replace(later) if row is not None else Create(later)]) is None:
            advance(ports, run_id)
            return view(ports, run, in_full=True)
    raise errors.changed_meanwhile(f"run {run_id}")


def advance(ports: Ports, run_id: str) -> None:
    """Begin the last re-run of a DAG's run, if that is still to be done. Repeatable: each event is applied once."""
    row, attempts = ports.runs.dag_run(run_id), ports.runs.attempts(run_id)
    if row is None or row.wake_at is None or not attempts:
        return
    run = attempts[-1]
    dag = graph_of(ports, run)
    round_, nodes = dag_status.last_rerun(dag, row)
    states = node_states(ports, run, dag, replace(row, reruns=row.reruns[:-1]))
    for node in sorted(nodes):
        upstream = [states[edge.from_].rows.run for edge in dag.into(node) if edge.from_ not in nodes]
        _tell(ports, run, dag, node, round_, upstream, int(row.reruns[-1]["at"]))
        waited = states[node].rows.job
        if waited is not None:  # in vain, in the round before: nobody is to be told one day that it was aborted
            drop_job(ports, waited, "DROPPED", f"runs again, in round {round_.number}", ports.clock.now(), exact=True)
    # A refusal means that somebody else has begun it.
    begun = replace(row, rev=row.rev + 1, leases=0, wake_at=None, expires_at=ports.clock.now() + HISTORY)
    ports.ledger.commit([Replace(begun)])


def node_states(ports: Ports, run: Run, dag: Dag, row: DagRun | None) -> dict[str, NodeStatus]:
    """How each node of a DAG's run stands."""
    [found] = node_states_of(ports, [(run, dag, row)])
    return found


def node_states_of(ports: Ports, whole: Sequence[tuple[Run, Dag, DagRun | None]]) -> list[dict[str, NodeStatus]]:
    """How the nodes of several runs stand, read together."""
    names = {ids.dag_node(run.workflow, node) for run, dag, _ in whole for node in dag.nodes}
    seen = ports.prefetch.read(ports, [("schedule_state", name) for name in sorted(names)])
    schedule_states = {name: seen.catalog.schedule_state(name) for name in names}
    node_keys = [_node_keys(run, dag, row, schedule_states) for run, dag, row in whole]
    flat = [key for those in node_keys for key in those.values() if key is not None]
    # Jobs first: one that has become a run meanwhile is then found as that.
    seen = seen.prefetch.read(seen, [("job", each.schedule, each.generation, each.sk) for each in flat])
    more: list[RowRequest] = [("run", each.run_id, 1) for each in flat]
    seen = seen.prefetch.read(seen, [*more, *(("record", each.run_id) for each in flat)])
    found = []
    for (run, dag, row), those in zip(whole, node_keys, strict=True):
        latest = dag_status.rounds(dag, run.run_id, row)
        stands = {node: _seen(ports, seen, key) for node, key in those.items()}
        gone = [node for node, key in those.items() if key is None or not key.lives]
        found.append(dag_status.node_states(dag, latest, stands, gone))
    return found


@dataclass(frozen=True, slots=True)
class _NodeKey:
    """Where a node's job is, in its latest round, and what it becomes; ``lives``: its schedule is still the one that
    the run of the DAG began with."""

    schedule: str
    generation: int
    sk: str
    run_id: str
    lives: bool


def _node_keys(
    run: Run, dag: Dag, row: DagRun | None, schedule_states: Mapping[str, ScheduleState | None]
) -> dict[str, _NodeKey | None]:
    found: dict[str, _NodeKey | None] = {}
    for node, round_ in dag_status.rounds(dag, run.run_id, row).items():
        name = ids.dag_node(run.workflow, node)
        schedule_state = schedule_states[name]
        if schedule_state is None:
            found[node] = None
            continue
        generation = dag_status.generation_at(schedule_state, run.claimed_at)
        run_id = ids.job_id(name, generation, str(round_))
        lives = schedule_state.mode == "enabled" and schedule_state.generation == generation
        found[node] = _NodeKey(
            name, generation, correlation.gathering_key(dag_status.correlation_of(round_)), run_id, lives
        )
    return found


def _seen(ports: Ports, seen: Ports, key: _NodeKey | None) -> NodeRows:
    if key is None:
        return NodeRows()
    job = seen.jobs.job(key.schedule, key.generation, key.sk)
    first = seen.runs.run(key.run_id, 1)
    # A later attempt, or a redrive, follows one that has ended, and did not succeed.
    again = first is not None and is_terminal(first.state) and first.state != "SUCCEEDED"
    last = ports.runs.attempts(key.run_id)[-1] if again else first
    return NodeRows(job if job is not None and not job.closed else None, last, seen.runs.record(key.run_id))


def graph_of(ports: Ports, run: Run) -> Dag:
    """The graph that a run began with. Graphs are kept, for runs are."""
    row = ports.catalog.definition("dag", run.workflow)
    if row is None:
        raise errors.not_found("graph", run.workflow)
    return Dag.model_validate(row.document)


def _check(ports: Ports, run: Run, row: DagRun | None, what: Again, node: str | None) -> None:
    """Refuse what cannot begin: a node that there is not, or that would wait in vain; a run that is still under way."""
    dag = graph_of(ports, run)
    if node is not None and node not in dag.nodes:
        raise errors.invalid(what, f"a node of the graph that this run began with ({', '.join(dag.nodes)})", node)
    states = node_states(ports, run, dag, row)
    busy = [f"{name} is {each.state}" for name, each in states.items() if each.state in UNDER_WAY]
    if busy or run.state != "SUCCEEDED":
        got = ", ".join(busy) or f"it is {_not_begun(run)}"
        hint = "wait until it has ended, or cancel what runs"
        raise SluiceError("conflict", f"expected a run of which nothing is under way, got one where {got}", None, hint)
    if len(_reruns(row)) >= MAX_RERUNS:
        raise SluiceError("conflict", f"expected at most {MAX_RERUNS} re-runs of one run", None, "run the DAG anew")
    for edge in dag.into(node) if node is not None else ():
        if not dag_status.reaches(edge, states[edge.from_].rows.run):
            got = f"{node}, which waits for {edge.from_}, which is {states[edge.from_].state}"
            raise errors.invalid(what, "a node whose upstreams have ended as it needs", got, f"begin from {edge.from_}")
    schedule_states = {
        name: ports.catalog.schedule_state(name) for name in (ids.dag_node(run.workflow, each) for each in dag.nodes)
    }
    node_keys = _node_keys(run, dag, row, schedule_states)
    if not all((key := node_keys[name]) and key.lives for name in dag_status.again(dag, what, node)):
        hint = "run the DAG as it is now"
        raise SluiceError("conflict", "expected a graph that is still there, got one that is gone", None, hint)


def _tell(
    ports: Ports, begun: Run, dag: Dag, node: str, round_: Round, upstream: list[Run | None], asked: Instant
) -> None:
    """Apply to a node, in a new round, what has ended before it."""
    name, now = ids.dag_node(begun.workflow, node), ports.clock.now()
    schedule_state = ports.catalog.schedule_state(name)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None:
        return
    index = [row for row in lifecycle.subscriptions(schedule_state, schedule, 0) if row.leaf != WAKE]
    refs: list[Ref] = []
    for run in upstream if dag.into(node) else [begun]:
        status = dag_status.status_of(run) if run is not None else None
        if run is not None and status is not None:
            event = _retold(run, status, round_, asked)
            ref = apply_event(ports, event, [row for row in index if row.event_key == event.key], now)
            refs += [ref] if ref is not None else []
    if refs:
        ports.hints.send(refs, now, now)


def _retold(run: Run, status: str, round_: Round, asked: Instant) -> Event:
    """The status of a run, told again to a later round: accepted when that was asked for."""
    event = build.status_event(run, status)
    partition = {**(rounds.without(run.partition) or {}), rounds.KEY: str(round_)}
    own = ids.event_id("program_status", run.run_id, status, str(round_))
    return replace(event, id=own, partition=partition, accepted_at=asked)


def _node_view(states: NodeStatus, in_full: bool) -> View:
    run = states.rows.run
    told = {
        "state": states.state,
        "why": states.why,
        "run_id": run.run_id if run is not None else None,
        "started_at": _iso(run.started_at or run.start_requested_at) if run is not None else None,
        "ended_at": _iso(run.ended_at) if run is not None else None,
    }
    attempt = {"attempt": run.attempt if run is not None else None, "round": states.round.number}
    return {**told, **attempt} if in_full else told


def _not_begun(run: Run) -> str:
    return "RUNNING" if run.state in ("STARTING", "RUNNING") else run.state


def _reruns(row: DagRun | None) -> tuple[Any, ...]:
    return row.reruns if row is not None else ()


def _iso(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
