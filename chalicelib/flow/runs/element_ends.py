"""Count the ends of the elements of a node with ``each``, and begin the next ones (W19).

The end of an element is counted from its run's announcement, or in the transaction that drops its job. Both set a bit
of the row `Elements`, so a repeat changes nothing. What is due then, its ``wake_at`` says: `flow/runs/elements.py` does
it.
"""

from __future__ import annotations

from chalicelib.core import states
from chalicelib.core.dags import elements
from chalicelib.core.instants import Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.elements import Elements
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Create, Replace, Write
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def on_end(ports: Ports, run: Run) -> None:
    """Count the end of an element, and begin the next one."""
    element = run.element or {}
    count(ports, str(element["of"]), int(element["index"]), run.state == "SUCCEEDED")


def count(ports: Ports, whole: str, index: int, well: bool) -> None:
    """Count the end of an element of the run ``whole`` of its node, and begin the next one. The end of the last one
    hints the row, so that the run of the node ends."""
    for _ in range(MAX_CONFLICTS):
        row = ports.rows.get(Elements, whole)
        if row is None:
            return
        counted = elements.with_end(row, index, well)
        after = row if counted is row else write(ports, counted)
        if after is None:
            continue
        if after.wake_at is not None:
            now = ports.clock.now()
            ports.hints.send([kinds.ref(Elements, whole)], now, now)
        return
    raise too_many_conflicts(f"the end of an element of run {whole}", "it is announced again")


def after_drop(ports: Ports, job: Job, now: Instant) -> Elements | None:
    """The row that counts the end of an element whose job is dropped, for the same transaction; None if the end is that
    of its run, or of a run that a user runs again."""
    element = job.element or {}
    if job.traits.retries or job.rerun_of is not None:
        return None
    row = ports.rows.get(Elements, str(element["of"]))
    counted = elements.with_end(row, int(element["index"]), well=False) if row is not None else None
    return elements.written(counted, now) if counted is not None and counted is not row else None


def write(ports: Ports, row: Elements) -> Elements | None:
    """Write a row with the jobs of the elements that begin now. Returns the row as it is then; None after a
    conflict."""
    now, jobs = ports.clock.now(), []
    if elements.next_of(row):
        whole = ports.rows.get(Run, row.run_id, row.attempt)
        why = _closed(ports, whole)
        row = elements.stopped(row, why) if why else row
        indexes = elements.next_of(row)
        jobs = [elements.job_of(whole, index, now) for index in indexes] if whole is not None else []
        row = elements.with_begun(row, indexes)
    after = elements.written(row, now)
    writes: list[Write] = [Replace(after), *map(Create, jobs)]
    refused = ports.ledger.commit(writes)
    if refused is not None and Replace(after) not in refused.writes:
        # After a restore of the tables, a job may be there that the row does not know of.
        jobs = [job for job in jobs if Create(job) not in refused.writes]
        refused = ports.ledger.commit([Replace(after), *map(Create, jobs)])
    if refused is not None:
        return None
    if jobs:
        ports.hints.send([ref_of(job) for job in jobs], now, now)
    return after


def _closed(ports: Ports, whole: Run | None) -> str:
    """Why no further element of a node's run may begin; empty if they may."""
    if whole is None or states.is_terminal(whole.state):
        return "the run of the node has ended"
    if whole.cancel:
        return "the node was cancelled"
    schedule_state = ports.rows.get(ScheduleState, whole.schedule)
    lives = schedule_state is not None and schedule_state.generation == whole.generation
    if lives and schedule_state is not None and states.may_start("detached", schedule_state.mode):
        return ""
    return "the DAG was deleted before the others began"
