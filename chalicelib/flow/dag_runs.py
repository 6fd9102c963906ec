"""Runs of DAGs: what there is to see of them, and how parts of them are run again (W4).

A re-run starts nothing itself. It tells the nodes that are to run again, under the number of a new round, what stands
of all that leads to them and does not run again. From there on all is as in the first round.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core import dag_keys, dag_runs, errors, ids, lifecycle, match
from chalicelib.core.calendar import Instant, iso
from chalicelib.core.dag_keys import Round
from chalicelib.core.dag_rows import DagRun
from chalicelib.core.dag_runs import UNDER_WAY, Again, Seen, Standing
from chalicelib.core.dags import Dag
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows import HISTORY, WAKE, Event, Run
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import facts
from chalicelib.flow.apply import apply_event
from chalicelib.ports import MOST_RACES, Page, Ports, Want

View = dict[str, Any]
MOST_RERUNS = 100


def page(ports: Ports, name: str, limit: int, cursor: str | None) -> Page[View]:
    """The runs of a DAG, newest first."""
    found = ports.runs.runs("schedule", ids.dag_start(name), limit, cursor)
    return Page(tuple(view(ports, run) for run in found.items), found.cursor)


def begun(ports: Ports, name: str, run_id: str) -> Run:
    """The run that began a run of a DAG; refused with 404 if it is none of this DAG's."""
    attempts = ports.runs.attempts(run_id)
    if not attempts or attempts[-1].schedule != ids.dag_start(name):
        raise errors.not_found("run of the DAG", run_id, f"sluice dags runs {name}")
    return attempts[-1]


def view(ports: Ports, run: Run, in_full: bool = False) -> View:
    """A run of a DAG as it stands: its state, and that of each node."""
    dag, row = graph_of(ports, run), ports.runs.dag_run(run.run_id)
    nodes = look(ports, run, dag, row)
    state = dag_runs.state_of(nodes) if run.state == "SUCCEEDED" else _not_begun(run)
    ends = [found.ended_at for node in nodes.values() if (found := node.seen.run) is not None and found.ended_at]
    return {
        "run_id": run.run_id,
        "dag": ids.dag_of(run.schedule),
        "graph": run.workflow.rpartition(ids.DAG)[2],
        "state": state,
        "fired_by": run.fired_by,
        "partition": dag_keys.without(run.partition),
        "nominal_at": _iso(run.nominal_at),
        "started_at": iso(run.claimed_at),
        "ended_at": _iso(max(ends, default=run.ended_at)) if state != "RUNNING" else None,
        "reruns": [
            {**wish, "round": number, "at": iso(wish["at"])} for number, wish in enumerate(_wishes(row), start=2)
        ],
        "nodes": {node: _node_view(standing, in_full) for node, standing in nodes.items()},
    }


def rerun(ports: Ports, name: str, run_id: str, what: Again, node: str | None, by: str, request: str) -> View:
    """Run a part of a DAG's run again, once for each request id, when nothing of it is under way."""
    for _ in range(MOST_RACES):
        run = begun(ports, name, run_id)
        row = ports.runs.dag_run(run_id)
        if row is not None and row.wake_at is not None:
            attend(ports, run_id)  # the one before is still to be begun
            continue
        if any(wish["request"] == request for wish in _wishes(row)):
            return view(ports, run, in_full=True)
        _check(ports, run, row, what, node)
        now = ports.clock.now()
        wish = {"request": request, "what": what, "by": by, "at": now, **({"node": node} if node is not None else {})}
        base = row or DagRun(run_id, rev=0, expires_at=now + HISTORY)
        later = replace(base, reruns=(*base.reruns, wish), rev=base.rev + 1, leases=0, wake_at=now)
        if ports.ledger.commit([Replace(later) if row is not None else Create(later)]) is None:
            attend(ports, run_id)
            return view(ports, run, in_full=True)
    raise errors.changed_meanwhile(f"run {run_id}")


def attend(ports: Ports, run_id: str) -> None:
    """Begin the last re-run of a DAG's run, if that is still to be done. Repeatable: each event is applied once."""
    row, attempts = ports.runs.dag_run(run_id), ports.runs.attempts(run_id)
    if row is None or row.wake_at is None or not attempts:
        return
    run = attempts[-1]
    dag = graph_of(ports, run)
    round_, nodes = dag_runs.last_rerun(dag, row)
    standing = look(ports, run, dag, replace(row, reruns=row.reruns[:-1]))
    for node in sorted(nodes):
        _tell(ports, run, dag, node, round_, [standing[edge.from_].seen.run for edge in dag.into(node)
                                              if edge.from_ not in nodes])  # fmt: skip
    # A refusal means that somebody else has begun it.
    ports.ledger.commit([Replace(replace(row, rev=row.rev + 1, leases=0, wake_at=None))])


def look(ports: Ports, run: Run, dag: Dag, row: DagRun | None) -> dict[str, Standing]:
    """How each node of a DAG's run stands, read together."""
    latest = dag_runs.rounds(dag, run.run_id, row)
    names = {node: ids.dag_node(run.workflow, node) for node in dag.nodes}
    seen = ports.ahead.read(ports, [("gate", name) for name in names.values()])
    generations = {node: gate.generation for node, name in names.items() if (gate := seen.catalog.gate(name))}
    run_ids = {node: ids.job_id(names[node], made, str(latest[node])) for node, made in generations.items()}
    places = {node: match.gathering_place(dag_runs.place_of(latest[node])) for node in generations}
    # Jobs first: one that has become a run meanwhile is then found as that.
    wanted: list[Want] = [("job", names[node], made, places[node]) for node, made in generations.items()]
    seen = seen.ahead.read(seen, wanted)
    more: list[Want] = [("run", run_id, 1) for run_id in run_ids.values()]
    seen = seen.ahead.read(seen, [*more, *(("record", run_id) for run_id in run_ids.values())])
    found = dict.fromkeys(dag.nodes, Seen())
    for node, run_id in run_ids.items():
        job = seen.jobs.job(names[node], generations[node], places[node])
        first = seen.runs.run(run_id, 1)
        # A later attempt, or a redrive, follows one that did not succeed.
        again = first is not None and first.state != "SUCCEEDED"
        last = ports.runs.attempts(run_id)[-1] if again else first
        found[node] = Seen(job if job is not None and not job.closed else None, last, seen.runs.record(run_id))
    return dag_runs.stand(dag, latest, found)


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
    standing = look(ports, run, dag, row)
    busy = [f"{name} is {each.state}" for name, each in standing.items() if each.state in UNDER_WAY]
    if busy or run.state != "SUCCEEDED":
        got = ", ".join(busy) or f"it is {_not_begun(run)}"
        hint = "wait until it has ended, or cancel what runs"
        raise SluiceError("conflict", f"expected a run of which nothing is under way, got one where {got}", None, hint)
    if len(_wishes(row)) >= MOST_RERUNS:
        raise SluiceError("conflict", f"expected at most {MOST_RERUNS} re-runs of one run", None, "run the DAG anew")
    for edge in dag.into(node) if node is not None else ():
        if not dag_runs.reaches(edge, standing[edge.from_].seen.run):
            got = f"{node}, which waits for {edge.from_}, which is {standing[edge.from_].state}"
            raise errors.invalid(what, "a node whose upstreams have ended as it needs", got, f"begin from {edge.from_}")
    gates = [ports.catalog.gate(ids.dag_node(run.workflow, each)) for each in dag_runs.again(dag, what, node)]
    if any(gate is None or gate.mode != "enabled" for gate in gates):
        hint = "run the DAG as it is now"
        raise SluiceError("conflict", "expected a graph that is still there, got one that is gone", None, hint)


def _tell(ports: Ports, begun: Run, dag: Dag, node: str, round_: Round, upstream: list[Run | None]) -> None:
    """Apply to a node, in a new round, what has ended before it."""
    name, now = ids.dag_node(begun.workflow, node), ports.clock.now()
    gate = ports.catalog.gate(name)
    schedule = facts.definition_of(ports, gate)
    if gate is None or schedule is None:
        return
    index = [row for row in lifecycle.subscriptions(gate, schedule, 0) if row.leaf != WAKE]
    refs: list[Ref] = []
    for run in upstream if dag.into(node) else [begun]:
        status = dag_runs.status_of(run) if run is not None else None
        if run is not None and status is not None:
            event = _retold(run, status, round_)
            ref = apply_event(ports, event, [row for row in index if row.event_key == event.key], now)
            refs += [ref] if ref is not None else []
    if refs:
        ports.hints.send(refs, now, now)


def _retold(run: Run, status: str, round_: Round) -> Event:
    """The status of a run, told again to a later round."""
    event = match.status_event(run, status)
    partition = {**(dag_keys.without(run.partition) or {}), dag_keys.KEY: str(round_)}
    return replace(event, id=ids.event_id("program_status", run.run_id, status, str(round_)), partition=partition)


def _node_view(standing: Standing, in_full: bool) -> View:
    run = standing.seen.run
    told = {
        "state": standing.state,
        "why": standing.why,
        "run_id": run.run_id if run is not None else None,
        "started_at": _iso(run.started_at or run.start_requested_at) if run is not None else None,
        "ended_at": _iso(run.ended_at) if run is not None else None,
    }
    attempt = {"attempt": run.attempt if run is not None else None, "round": standing.round.number}
    return {**told, **attempt} if in_full else told


def _not_begun(run: Run) -> str:
    return "RUNNING" if run.state in ("STARTING", "RUNNING") else run.state


def _wishes(row: DagRun | None) -> tuple[Any, ...]:
    return row.reruns if row is not None else ()


def _iso(instant: Instant | None) -> str | None:
    return None if instant is None else iso(instant)
