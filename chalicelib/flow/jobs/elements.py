"""Follow the run of a node with ``each``: cancel its elements with it, and find ends that were not counted (W19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.dags import elements
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.writes import Replace
from chalicelib.flow import many
from chalicelib.flow.jobs.drop import drop_at
from chalicelib.flow.runs import element_ends
from chalicelib.flow.runs import elements as running
from chalicelib.flow.runs import follow as run_follow
from chalicelib.flow.runs.complete import ingest_status
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

CANCELLED_AT_ONCE = 100  # elements in one invocation; the next one cancels the others


def follow(ports: Ports, run: Run) -> None:
    """Go on with a node's run that is RUNNING: cancel its elements if it is cancelled. Called at each poll."""
    more = run.cancel and _cancel(ports, run)
    _recount(ports, run.run_id)
    running.advance(ports, run.run_id)
    current = ports.rows.get(Run, run.run_id, run.attempt)
    if current is None or states.is_terminal(current.state):
        return
    if more:
        now = ports.clock.now()
        again = replace(current, wake_at=now, leases=0, rev=current.rev + 1)
        if ports.ledger.commit([Replace(again)]) is None:
            ports.hints.send([run_ref(run.run_id, run.attempt)], now, now)
    else:
        ingest_status(ports, current, None)


def _recount(ports: Ports, run_id: str) -> None:
    """Count the ends that the row does not have. None is missing, unless the tables were restored from backups."""
    row = ports.rows.get(Elements, run_id)
    active = {elements.id_of(run_id, index): index for index in elements.active_of(row)} if row is not None else {}
    begun = {run.run_id: run for run in _latest(ports, list(active))}
    for run in begun.values():
        if states.is_terminal(run.state) and run.state != "RETRYING":
            element_ends.on_end(ports, run)
    dropped = many.rows(ports, Record, [(own,) for own in active if own not in begun])
    for record in dropped:
        element_ends.count(ports, run_id, active[record.id], well=False)


def _cancel(ports: Ports, whole: Run) -> bool:
    """Let no further element of a node's run begin, and cancel those that have begun and not ended. Returns whether
    more of them are left than one invocation cancels."""
    row = _stop(ports, whole.run_id, "the node was cancelled")
    if row is None:
        return False
    active = [(elements.id_of(row.run_id, index), index) for index in elements.active_of(row)]
    begun = {run.run_id: run for run in _latest(ports, [run_id for run_id, _ in active])}
    left = [(run_id, index) for run_id, index in active if run_id not in begun or not begun[run_id].cancel]
    for run_id, index in left[:CANCELLED_AT_ONCE]:
        _cancel_one(ports, whole, run_id, index, begun.get(run_id))
    return len(left) > CANCELLED_AT_ONCE


def _stop(ports: Ports, run_id: str, why: str) -> Elements | None:
    """The row of a node's run of which no further element begins. An invocation that was about to begin some meets a
    conflict."""
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(Elements, run_id)
        if row is None or row.stopped:
            return row
        after = elements.written(elements.stopped(row, why), ports.clock.now())
        if ports.ledger.commit([Replace(after)]) is None:
            return after
    raise too_many_conflicts(f"stopping the elements of run {run_id}", "the sweep will try again")


def _latest(ports: Ports, run_ids: Sequence[str]) -> list[Run]:
    """The last attempt of each of these runs that has begun."""
    first = ports.runs.several([(run_id, 1) for run_id in run_ids])
    return [ports.runs.attempts(run.run_id)[-1] if run.state == "RETRYING" else run for run in first]


def _cancel_one(ports: Ports, whole: Run, run_id: str, index: int, run: Run | None) -> None:
    key = sort_keys.element(run_id, index)
    if run is None and drop_at(ports, (whole.schedule, whole.generation, key), whole.reason):
        return
    last = run or next(iter(ports.runs.attempts(run_id)[-1:]), None)
    if last is not None and last.state == "RETRYING":
        again = sort_keys.retry(run_id, last.attempt + 1)
        if not drop_at(ports, (whole.schedule, whole.generation, again), whole.reason):
            run_follow.request_cancel(ports, run_id, last.attempt + 1, whole.reason)
    elif last is not None:
        run_follow.request_cancel(ports, run_id, last.attempt, whole.reason)
