"""Begin the elements of a node with ``each``, and end the run of the node after the last one (W19).

The list is frozen with the row `Elements` in one transaction. From then on that row says what is left to do: its
``wake_at`` is set in the write that makes something due, so a death delays it only. `flow/runs/element_ends.py` counts
the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids, states
from chalicelib.core.dags import elements
from chalicelib.core.dags import status as dag_status
from chalicelib.core.definitions.each import Each
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Version
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, Replace
from chalicelib.flow.dag_states import graph_of, node_states
from chalicelib.flow.runs import element_ends, joins
from chalicelib.flow.runs.complete import advance_run
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

Frozen = tuple[list[Any], Elements]


def begin(ports: Ports, run: Run, now: Instant) -> None:
    """Freeze the list of a node's run that is STARTING, and begin its elements. Repeated after a death, it goes on with
    the list that is frozen. A list that is none, or too long, fails the run: nothing begins."""
    if run.elements is None:
        found = _list_of(ports, run, now)
        if found is None:
            return  # it is started again when its lease ends
        if isinstance(found, str):
            update = RunUpdate("FAILED", now, Why.of("list_unfit", found))
            advance_run(ports, run.run_id, run.attempt, update, may_retry=False)
            return
        values, row = found
        frozen = replace(run, elements=values, rev=run.rev + 1)
        if ports.ledger.commit([Replace(frozen), Create(row)]) is not None:
            return  # the run was changed meanwhile, such as by a cancel: it is started again when its lease ends
    update = RunUpdate("RUNNING", now, Why.of("element", "its elements run"), target_id=run.run_id)
    advance_run(ports, run.run_id, run.attempt, update)
    advance(ports, run.run_id)


def _list_of(ports: Ports, run: Run, now: Instant) -> Frozen | str | None:
    """The list of a node's run and its first row, or why there is none. None after a restore of the tables: the start
    of the DAG run has not begun (`joins.start_waits`), or the end of the node before is not known yet."""
    version, round_ = ports.rows.get(Version, run.schedule, run.version), elements.round_of(run)
    each = Schedule.model_validate(version.definition).each if version is not None else None
    if each is None or round_ is None:
        return "expected a node with each, but its schedule no longer exists"
    if run.rerun_of is not None:
        before = ports.runs.attempts(run.rerun_of)
        known = before[-1].elements if before else None
        return (
            _first(run, known, each, now)
            if known is not None
            else f"the list of run {run.rerun_of} is not kept any more"
        )
    begun, row = ports.runs.attempts(round_.dag_run), ports.rows.get(DagRun, round_.dag_run)
    if not begun and joins.start_waits(ports, round_.dag_run):
        return None
    if not begun:
        return "expected the run of a DAG, but its start is not kept any more"
    dag = graph_of(ports, begun[-1])
    node = run.schedule.rpartition(ids.DAG)[2]
    rerun = row.reruns[round_.number - 2] if row is not None and round_.number > 1 else {}
    if row is not None and rerun.get("node") == node and "elements" in rerun:
        earlier = replace(row, reruns=row.reruns[: round_.number - 2])
        before_round = dag_status.rounds(dag, round_.dag_run, earlier)[node]
        return _again(ports, run, str(before_round), rerun["elements"], each, now)
    state = node_states(ports, begun[-1], dag, row)[each.of]
    if state.state in dag_status.UNDER_WAY:
        return None
    if state.state != "SUCCEEDED":
        return f"expected a list in {each.place}, but {each.of} is {state.state}"
    values = each.values_in(dag_status.result_of(state))
    return _first(run, values, each, now) if not isinstance(values, str) else values


def _first(run: Run, values: Sequence[Any], each: Each, now: Instant) -> Frozen:
    row = elements.first(run.run_id, len(values), each.concurrency, now)
    return list(values), replace(row, attempt=run.attempt)


def _again(ports: Ports, run: Run, round_: str, indexes: Sequence[int], each: Each, now: Instant) -> Frozen | str:
    """The list and the row of a round in which some elements run again."""
    former = elements.in_round(run.run_id, round_)
    row, attempts = ports.rows.get(Elements, former), ports.runs.attempts(former)
    if row is None or not attempts or attempts[-1].elements is None:
        return f"the list of run {former} is not kept any more; run the node again without elements"
    again = elements.again(run.run_id, row, round_, indexes, each.concurrency, now)
    return list(attempts[-1].elements), replace(again, attempt=run.attempt)


def advance(ports: Ports, run_id: str) -> None:
    """Begin what may begin of the elements of a node's run, and end the run after the last one. Idempotent."""
    conflicts = 0
    while conflicts < MAX_CONFLICTS:
        row = ports.rows.get(Elements, run_id)
        if row is None or row.wake_at is None:
            return
        if elements.is_over(row):
            _finish(ports, row)
            return
        conflicts = 0 if element_ends.write(ports, row) is not None else conflicts + 1
    raise too_many_conflicts(f"the elements of run {run_id}", "the sweep will hint them again")


def _finish(ports: Ports, row: Elements) -> None:
    """End the run of a node whose elements have all ended."""
    whole, now = ports.rows.get(Run, row.run_id, row.attempt), ports.clock.now()
    if whole is not None and not states.is_terminal(whole.state):
        state, why = elements.end_of(row, whole.schedule.rpartition(ids.DAG)[2], whole.cancel)
        advance_run(ports, whole.run_id, whole.attempt, RunUpdate(state, now, why), may_retry=False)
    ports.ledger.commit([Replace(elements.closed(row, now))])  # a conflict leaves it due: this step is repeated
