"""Views and re-runs of DAG runs (W4).

A re-run starts no job itself. It opens a new round, and applies to the nodes that run again the statuses of those
upstreams that do not. Then the round proceeds like the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NotRequired

from chalicelib.core import errors, ids
from chalicelib.core.dags import elements, rounds
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.compile import graph_of as graph_name
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import UNDER_WAY, Again, NodeStatus
from chalicelib.core.definitions.dag import Dag, Edge, JoinRule, Node
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import build
from chalicelib.core.instants import Instant, iso, iso_or_none
from chalicelib.core.jobs import holds
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY, WAKE, ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.states import is_terminal
from chalicelib.core.views import At, Code, Sentence, View, shown
from chalicelib.core.why import NONE, Why, plain
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import lookup
from chalicelib.flow.dag_states import ended_at, graph_of, keys_of, node_states, not_begun, state_of, states_of
from chalicelib.flow.dags.elements import ElementsView, counts_of, rows_of_elements, with_activity
from chalicelib.flow.ingest.apply import apply_event
from chalicelib.flow.jobs.drop import drop_job
from chalicelib.flow.runs import complete, follow, joins
from chalicelib.ports import MAX_CONFLICTS, Page, Ports

MAX_RERUNS = 100
Chosen = Literal["failed"] | Sequence[int]  # elements of a node
MAX_SHOWN = 25  # runs per page: each may have a hundred nodes, and an API request has 29 s


class StateOfNodeView(View):
    """The state of a node, with its workflow and its join rule in the graph of the run. A list of DAG runs leaves out
    ``attempt``, ``round``, ``workflow`` and ``when``. ``result`` is the JSON value that its run has handed on, and
    ``result_refused`` says why there is none although its program gave one."""

    state: str
    why: Sentence
    code: Code | None
    run_id: str | None
    started_at: At | None
    ended_at: At | None
    attempt: NotRequired[int | None]
    round: NotRequired[int | None]
    workflow: NotRequired[str]
    when: NotRequired[JoinRule]
    result: NotRequired[Any]
    result_refused: NotRequired[str]
    elements: NotRequired[ElementsView]


class RerunOfDagView(View):
    round: int
    at: At
    by: str
    what: str
    request: str
    node: NotRequired[str | None]
    elements: NotRequired[list[int]]


class RunOfDagView(View):
    """A DAG run. One that has not begun is ``WAITING``, and ``why`` says for what. ``end_by`` is its deadline.
    ``edges`` are those of the graph with which it began, which a list of runs leaves out."""

    run_id: str
    dag: str
    graph: str
    state: str
    fired_by: Sentence
    partition: dict[str, str] | None
    nominal_at: At | None
    started_at: At | None
    ended_at: At | None
    end_by: At | None
    late: bool
    why: NotRequired[Sentence]
    reruns: list[RerunOfDagView]
    nodes: dict[str, StateOfNodeView]
    edges: NotRequired[list[Edge]]


def page(ports: Ports, name: str, limit: int, cursor: str | None) -> Page[RunOfDagView]:
    """A page of the runs of a DAG, newest first. It may be shorter than ``limit`` although more pages follow."""
    found = ports.runs.runs("schedule", ids.dag_start(name), min(limit, MAX_SHOWN), cursor)
    whole = states_of(ports, found.items)
    rows = rows_of_elements(ports, [(dag, nodes) for _, dag, _, nodes in whole])
    now = ports.clock.now()
    return Page(tuple(_view(now, *each, rows) for each in whole), found.cursor)


def begun(ports: Ports, name: str, run_id: str) -> Run:
    """The run of the start schedule that began a DAG run. Raises ``not_found`` (404) if it is no run of this DAG."""
    attempts = ports.runs.attempts(run_id)
    if not attempts or attempts[-1].schedule != ids.dag_start(name):
        raise errors.not_found("run of the DAG", run_id, f"sluice dags runs {name}")
    return attempts[-1]


def find(ports: Ports, name: str, run_id: str) -> RunOfDagView:
    """A DAG run in full, also one that waits to begin. Raises ``not_found`` (404) if it is no run of this DAG."""
    job = _job_of_start(ports, name, run_id)
    return _waiting(ports, name, job) if job is not None else view(ports, begun(ports, name, run_id), in_full=True)


def _job_of_start(ports: Ports, name: str, run_id: str) -> Job | None:
    """The job of a DAG run that waits to begin, or None."""
    job = ports.jobs.find(run_id)
    waits = job is not None and not job.closed and job.schedule == ids.dag_start(name)
    return job if waits and not ports.runs.attempts(run_id) else None


def _waiting(ports: Ports, name: str, job: Job) -> RunOfDagView:
    """A DAG run that has not begun: its start is a job."""
    row, now = ports.rows.get(Definition, "dag", name), ports.clock.now()
    dag = Dag.model_validate(row.document) if row is not None else None
    pending: StateOfNodeView = {
        "state": "PENDING", "why": plain("the DAG run has not begun"), "code": None, "run_id": None,
        "started_at": None, "ended_at": None, "attempt": None, "round": 1,
    }  # fmt: skip
    return {
        "run_id": job.job_id,
        "dag": name,
        "graph": graph_name(name, dag).rpartition(ids.DAG)[2] if dag is not None else "",
        "state": "WAITING",
        "fired_by": NONE,
        "partition": rounds.without(job.correlation),
        "nominal_at": iso_or_none(job.nominal_at),
        "started_at": None,
        "ended_at": None,
        "end_by": None,
        "late": False,
        "why": holds.why(job, now),
        "reruns": [],
        "nodes": dict.fromkeys(dag.nodes, pending) if dag is not None else {},
    }


def view(ports: Ports, run: Run, in_full: bool = False) -> RunOfDagView:
    """A DAG run with its present state and that of each node."""
    row, dag = ports.rows.get(DagRun, run.run_id), graph_of(ports, run)
    nodes = node_states(ports, run, dag, row)
    found = _view(ports.clock.now(), run, dag, row, nodes, rows_of_elements(ports, [(dag, nodes)]), in_full)
    for node in found["nodes"].values() if in_full else ():
        if "elements" in node and node["state"] in UNDER_WAY:
            node["elements"] = with_activity(ports, str(node["run_id"]), node["elements"])
    return found


def _view(
    now: Instant,
    run: Run,
    dag: Dag,
    row: DagRun | None,
    nodes: Mapping[str, NodeStatus],
    of_nodes: Mapping[str, Elements],
    in_full: bool = False,
) -> RunOfDagView:
    state = state_of(run, dag, nodes)
    over = ended_at(run, nodes) if state != "RUNNING" else None
    reruns = [
        {"round": number, **rerun, "at": iso(rerun["at"])}
        for number, rerun in enumerate(map(_shown_rerun, _reruns(row)), start=2)
    ]
    return shown(
        RunOfDagView,
        run,
        dag=ids.dag_of(run.schedule),
        graph=run.workflow.rpartition(ids.DAG)[2],
        state=state,
        partition=rounds.without(run.partition),
        started_at=iso(run.claimed_at),
        ended_at=iso_or_none(over),
        late=run.end_by is not None and (now if over is None else over) > run.end_by,
        reruns=reruns,
        nodes={name: _node_view(each, of_nodes, dag.nodes[name] if in_full else None) for name, each in nodes.items()},
        **({"edges": [edge.model_dump(mode="json", by_alias=True) for edge in dag.edges]} if in_full else {}),
    )


def rerun(
    ports: Ports,
    name: str,
    run_id: str,
    what: Again,
    node: str | None,
    by: str,
    request: str,
    of_node: Chosen | None = None,
) -> RunOfDagView:
    """Run a part of a DAG run again. Returns the view of the run. A repeat with the same request id changes nothing.
    ``of_node`` are the elements of the node that run again; the others of the node keep their ends (W19).

    Raises ``conflict`` if the DAG run has not begun, if a node of it is active, or if the nodes to run again no longer
    exist.
    """
    waiting = _job_of_start(ports, name, run_id)
    if waiting is not None:
        got = f"a DAG run that has begun, got one that waits: {holds.why(waiting, ports.clock.now()).text}"
        raise _conflict(got, "wait until it has ended, or drop it: sluice dags cancel")
    for _ in range(MAX_CONFLICTS):
        run = begun(ports, name, run_id)
        row = ports.rows.get(DagRun, run_id)
        if row is not None and row.wake_at is not None:
            advance(ports, run_id)  # first begin the re-run before this one
            continue
        if any(rerun["request"] == request for rerun in _reruns(row)):
            return view(ports, run, in_full=True)
        if run.state == "RUNNING":
            follow.poll(ports, run)  # its last node may have ended a moment ago
            run = begun(ports, name, run_id)
        states = _check(ports, run, row, what, node, of_node)
        now = ports.clock.now()
        rerun = {"request": request, "what": what, "by": by, "at": now, **({"node": node} if node is not None else {})}
        if node is not None and of_node is not None:
            rerun["elements"] = _chosen(ports, run, row, what, node, of_node)
        if what == "only":
            rerun["skipped"] = sorted(name for name, status in states.items() if status.state == "SKIPPED")
        base = row or DagRun(run_id, rev=0)
        later = replace(base, reruns=(*base.reruns, rerun), rev=base.rev + 1, leases=0, wake_at=now, expires_at=None)
        if ports.ledger.commit([Replace(later) if row is not None else Create(later)]) is None:
            advance(ports, run_id)
            return view(ports, run, in_full=True)
    raise errors.changed_meanwhile(f"run {run_id}")


def advance(ports: Ports, run_id: str) -> None:
    """Begin the last re-run of a DAG run if that is still to be done, and start the nodes whose join rules are met.
    Idempotent: each event is applied once."""
    row, attempts = ports.rows.get(DagRun, run_id), ports.runs.attempts(run_id)
    if row is None or row.wake_at is None or (not attempts and joins.start_waits(ports, run_id)):
        return
    if row.reruns and attempts:
        _begin_rerun(ports, attempts[-1], row)
    complete.end_dag_run(ports, joins.settle(ports, run_id))
    # A conflict means that another invocation has begun the re-run, or that another node has ended.
    after = replace(row, rev=row.rev + 1, leases=0, wake_at=None, expires_at=ports.clock.now() + HISTORY)
    ports.ledger.commit([Replace(after)])


def _begin_rerun(ports: Ports, run: Run, row: DagRun) -> None:
    dag = graph_of(ports, run)
    round_, nodes = dag_status.last_rerun(dag, row)
    states = node_states(ports, run, dag, replace(row, reruns=row.reruns[:-1]))
    for node in sorted(nodes):
        rule, edges = dag.nodes[node].when, dag.into(node)
        ended = [states[edge.from_].rows.run for edge in edges if edge.from_ not in nodes]
        upstream = [each for each in ended if each is not None] if edges and rule != "always" else [run]
        if not dag.is_decided(node):
            _apply_upstreams(ports, ids.dag_node(run.workflow, node), round_, upstream, row.reruns[-1])
        waiting = states[node].rows.job
        if waiting is not None:  # a job of the former round must not time out later and send a notice
            why = Why.of("round_repeated", f"runs again, in round {round_.number}")
            drop_job(ports, waiting, "DROPPED", why, ports.clock.now(), exact=True)


def _check(
    ports: Ports, run: Run, row: DagRun | None, what: Again, node: str | None, of_node: Chosen | None
) -> Mapping[str, NodeStatus]:  # fmt: skip
    """The states of the nodes before a re-run. Raise SluiceError if it cannot begin. Then the node does not exist or
    would never start, a node of the DAG run is active, or the graph was deleted."""
    dag = graph_of(ports, run)
    if node is not None and node not in dag.nodes:
        known = f"a node of the graph that this run began with ({', '.join(dag.nodes)})"
        raise errors.invalid(what, known, node, "sluice dags runs shows the nodes of each run")
    _check_each(dag, node, of_node)
    states = node_states(ports, run, dag, row)
    busy = [f"{name} is {status.state}" for name, status in states.items() if status.state in UNDER_WAY]
    if busy or not dag_status.has_begun(run) or not is_terminal(run.state):
        got = ", ".join(busy) or f"the start is {not_begun(run)}"
        raise _conflict(
            f"a DAG run without active nodes, got one where {got}", "wait until it has ended, or cancel its runs"
        )
    if len(_reruns(row)) >= MAX_RERUNS:
        raise _conflict(f"at most {MAX_RERUNS} re-runs of one run", "start a new run of the DAG")
    _check_upstreams(dag, states, what, node)
    keys = keys_of(ports, run, dag, row)
    if not all((key := keys[name]) and key.lives for name in dag_status.again(dag, what, node)):
        raise _conflict("a graph that still exists, got one that was deleted", "start a new run of the present DAG")
    return states


def _check_upstreams(dag: Dag, states: Mapping[str, NodeStatus], what: Again, node: str | None) -> None:
    """Raise ``invalid`` if the upstreams of the node from which a re-run begins have not ended as it needs."""
    if node is None or dag_status.decision_on(dag, node, states) == "START":
        return
    edge, rule = _wrong(dag, states, node), dag.nodes[node].when
    before = states[edge.from_]
    asked = dag_status.is_asked(edge, before)
    needs = dag_status.unmet(edge, before).text
    got = (
        f"it {needs}" if asked or rule == "all_succeeded" else f"its rule is {rule}, and {edge.from_} is {before.state}"
    )
    begin = edge.from_
    while dag_status.decision_on(dag, begin, states) != "START":
        begin = _wrong(dag, states, begin).from_
    expected = "expected a node whose upstreams have ended as it needs"
    hint = f"begin from {begin}{', whose result decides' if asked else ''}"
    raise SluiceError("invalid", f"{expected}, got {node}: {got}", what, hint)


def _wrong(dag: Dag, states: Mapping[str, NodeStatus], node: str) -> Edge:
    """The first edge because of which a node does not run."""
    edges = dag.into(node)
    return next((edge for edge in edges if dag_status.outcome_of(edge, states[edge.from_]) != "met"), edges[0])


def _chosen(ports: Ports, run: Run, row: DagRun | None, what: Again, node: str, of_node: Chosen) -> tuple[int, ...]:
    """The elements of a node that run again. Raises ``invalid`` for one that its list does not have, and ``conflict``
    if the node has none, or if no element failed."""
    states = node_states(ports, run, graph_of(ports, run), row)
    whole = states[node].rows.run
    known = ports.rows.get(Elements, whole.run_id) if whole is not None else None
    if known is None:
        said = f"{node}, which is {states[node].state}: {states[node].why.text}"
        raise _conflict(f"a node that has run its elements, got {said}", "leave the elements out")
    found = elements.chosen(of_node, known)
    if not found:
        raise _conflict(f"elements of {node} that failed, got none", "name them by their indexes")
    if found[-1] >= known.count:
        expected = f"an element from {node}[0] to {node}[{known.count - 1}]" if known.count else "a list with elements"
        got = f"{node}[{found[-1]}]" if known.count else f"that of {node}, which is empty"
        hint = f"sluice dags elements {ids.dag_of(run.schedule)} {run.run_id} {node} lists them"
        raise SluiceError("invalid", f"expected {expected}, got {got}", "elements", hint)
    return tuple(found)


def _check_each(dag: Dag, node: str | None, of_node: Chosen | None) -> None:
    """Raise ``invalid`` if elements are named of a node that has none."""
    if node is None or of_node is None or dag.nodes[node].each is not None:
        return
    known = [name for name, each in dag.nodes.items() if each.each is not None]
    expected = f"a node with each ({', '.join(known) or 'this DAG has none'})"
    raise errors.invalid("elements", expected, node, "leave the elements out: the node runs again whole")


def _conflict(expected: str, hint: str) -> SluiceError:
    return SluiceError("conflict", f"expected {expected}", None, hint)


def _apply_upstreams(
    ports: Ports, name: str, round_: Round, upstream: Sequence[Run], rerun: Mapping[str, Any]
) -> None:  # fmt: skip
    """Apply the statuses of the upstream runs to a node, in a new round."""
    now = ports.clock.now()
    schedule_state = ports.rows.get(ScheduleState, name)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None:
        return
    index = [row for row in lifecycle.subscriptions(schedule_state, schedule, 0) if row.leaf != WAKE]
    refs: list[Ref] = []
    for run in upstream:
        status = dag_status.status_of(run)
        if status is not None:
            event = joins.of_round(build.status_event(run, status), round_, rerun)
            refs += apply_event(ports, event, [row for row in index if row.event_key == event.key], now)
    if refs:
        ports.hints.send(refs, now, now)


def _node_view(states: NodeStatus, of_nodes: Mapping[str, Elements], node: Node | None) -> StateOfNodeView:
    """The state of a node; in full if its document is given."""
    run = states.rows.run
    row = of_nodes.get(run.run_id) if run is not None else None
    view: StateOfNodeView = {
        "state": states.state,
        "why": plain(elements.said(row)) if row is not None and states.state in UNDER_WAY else states.why,
        "code": states.why.code or None,
        "run_id": run.run_id if run is not None else None,
        "started_at": iso_or_none(run.started_at or run.start_requested_at) if run is not None else None,
        "ended_at": iso_or_none(run.ended_at) if run is not None else None,
    }
    if row is not None:
        view["elements"] = counts_of(row)
    given = dag_status.result_of(states)
    if given.value is not None:
        view["result"] = given.value
    if given.refused:
        view["result_refused"] = given.refused
    if node is None:
        return view
    attempt = run.attempt if run is not None else None
    return {**view, "attempt": attempt, "round": states.round.number, "workflow": node.workflow, "when": node.when}


def _shown_rerun(rerun: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rerun.items() if name != "skipped"}


def _reruns(row: DagRun | None) -> tuple[Any, ...]:
    return row.reruns if row is not None else ()
