"""Views of the elements of a node with ``each`` in a DAG run (W19)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from chalicelib.core import errors
from chalicelib.core.dags import elements
from chalicelib.core.dags.status import NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.instants import iso_or_none
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.states import is_terminal
from chalicelib.core.views import At, Sentence, View
from chalicelib.core.why import Why, plain
from chalicelib.flow import many
from chalicelib.flow.dag_states import graph_of, node_states
from chalicelib.ports import Page, Ports

MAX_SHOWN = 100  # elements per page


class ElementsView(View):
    """How far the elements of a node are. A list of DAG runs leaves out how many of the others are ``running``, and how
    many are ``waiting``."""

    count: int
    succeeded: int
    failed: int
    running: NotRequired[int]
    waiting: NotRequired[int]


class ElementView(View):
    """An element of a node: its place in the list, and its run in the latest round in which it ran."""

    index: int
    value: Any
    state: str
    why: Sentence
    run_id: str | None
    attempt: int | None
    started_at: At | None
    ended_at: At | None


def counts_of(row: Elements) -> ElementsView:
    failed = elements.bits(row.failed).bit_count()
    return {"count": row.count, "succeeded": elements.bits(row.ended).bit_count() - failed, "failed": failed}


def rows_of_elements(ports: Ports, whole: Sequence[tuple[Dag, Mapping[str, NodeStatus]]]) -> dict[str, Elements]:
    """The rows of the nodes with elements of several DAG runs, by the ids of the runs of these nodes."""
    keys = [
        (state.rows.run.run_id,)
        for dag, nodes in whole
        for node, state in nodes.items()
        if dag.nodes[node].each is not None and state.rows.run is not None
    ]
    return {row.run_id: row for row in many.rows(ports, Elements, keys)} if keys else {}


def with_activity(ports: Ports, run_id: str, view: ElementsView) -> ElementsView:
    """The counts of a node whose elements are under way, with those that run and those that wait."""
    row = ports.rows.get(Elements, run_id)
    if row is None:
        return view
    begun = ports.runs.several([(elements.id_of(run_id, index), 1) for index in elements.active_of(row)])
    running = sum(run.state in ("STARTING", "RUNNING") for run in begun)
    waiting = row.count - elements.bits(row.ended).bit_count() - running
    return {**counts_of(row), "running": running, "waiting": waiting}


def page(ports: Ports, run: Run, node: str, limit: int, cursor: str | None) -> Page[ElementView]:
    """A page of the elements of a node: those that failed first, then those under way, those that have not begun, and
    those that succeeded. Raises ``not_found`` (404) for a node without elements in this run, and ``bad_cursor``."""
    dag = graph_of(ports, run)
    if node not in dag.nodes or dag.nodes[node].each is None:
        known = [name for name, each in dag.nodes.items() if each.each is not None]
        raise errors.not_found("node with each", node, "sluice dags show lists the nodes of a run", known)
    if cursor is not None and not re.fullmatch("[0-9]{1,9}", cursor):
        raise errors.bad_cursor()
    found = _of_node(ports, run, dag, node)
    if found is None:
        return Page((), None)
    whole, row = found
    order, first = _order(row), int(cursor or 0)
    last = first + min(limit, MAX_SHOWN)
    shown = order[first:last]
    return Page(tuple(_views(ports, whole, row, shown)), str(last) if last < len(order) else None)


def every(ports: Ports, run: Run, node: str) -> list[int]:
    """The indexes of the elements of a node, in the order of their list."""
    found = _of_node(ports, run, graph_of(ports, run), node)
    return list(range(found[1].count)) if found is not None else []


def one(ports: Ports, run: Run, node: str, index: int) -> ElementView:
    """An element of a node. Raises LookupError if it has none of this index."""
    found = _of_node(ports, run, graph_of(ports, run), node)
    if found is None or index >= found[1].count:
        raise LookupError(f"expected an element {node}[{index}] of run {run.run_id}, got none")
    [view] = _views(ports, *found, [index])
    return view


def _of_node(ports: Ports, run: Run, dag: Dag, node: str) -> tuple[Run, Elements] | None:
    """The run of a node in its latest round, and the row of its elements; None if it has none."""
    whole = node_states(ports, run, dag, ports.rows.get(DagRun, run.run_id))[node].rows.run
    row = ports.rows.get(Elements, whole.run_id) if whole is not None else None
    return (whole, row) if whole is not None and row is not None else None


def _order(row: Elements) -> list[int]:
    failed, ended, begun = elements.bits(row.failed), elements.bits(row.ended), elements.bits(row.begun)
    every = (1 << row.count) - 1
    groups = (failed, begun & ~ended, every & ~begun, ended & ~failed)
    return [index for group in groups for index in elements.members(group)]


def _views(ports: Ports, whole: Run, row: Elements, shown: Sequence[int]) -> list[ElementView]:
    """The views of some elements. Jobs are read first, so that one that becomes a run meanwhile is found as that."""
    own = {index: elements.id_of(elements.whole_of(row, index), index) for index in shown}
    places = {index: (whole.schedule, whole.generation, sort_keys.element(own[index], index)) for index in shown}
    seen = ports.prefetch.read(ports, [kinds.key(Job, *place) for place in places.values()])
    runs = [kinds.key(Run, run_id, 1) for run_id in own.values()]
    seen = seen.prefetch.read(seen, [*runs, *(kinds.key(Record, run_id) for run_id in own.values())])
    values, found = whole.elements or (), []
    for index in shown:
        first = seen.rows.get(Run, own[index], 1)
        has_more = first is not None and is_terminal(first.state) and first.state != "SUCCEEDED"
        run = ports.runs.attempts(own[index])[-1] if has_more else first
        job, record = seen.rows.get(Job, *places[index]), seen.rows.get(Record, own[index])
        state, why = _state(row, index, job, run, record)
        found.append(
            ElementView(
                index=index,
                value=values[index],
                state=state,
                why=why,
                run_id=run.run_id if run is not None else None,
                attempt=run.attempt if run is not None else None,
                started_at=iso_or_none(run.started_at or run.start_requested_at) if run is not None else None,
                ended_at=iso_or_none(run.ended_at) if run is not None else None,
            )
        )
    return found


def _state(row: Elements, index: int, job: Job | None, run: Run | None, record: Record | None) -> tuple[str, Why]:
    """The state of an element, and why. PENDING: it has not begun. Without any row it has not begun, or its node was
    stopped before."""
    if run is not None:
        return run.state, run.reason or run.fired_by
    if record is not None:
        return "ABORTED", record.reason
    if job is not None:
        return "WAITING", job.reason
    if elements.bits(row.ended) >> index & 1:
        return "ABORTED", plain(row.stopped or "it has not begun")
    under_way = f"waits for others: {row.at_once} run at once" if row.at_once else "has not begun yet"
    return "PENDING", plain(under_way)
