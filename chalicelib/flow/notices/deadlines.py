"""Deadline watches: check a job when it must have started, and when its run must have ended (H5).

Nothing polls: the row of a watch wakes at these two instants only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions import overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.notices import deadlines
from chalicelib.core.notices.deadlines import Judged
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import DeadlineWatch, PendingNotice
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Create, Put, Replace, Write
from chalicelib.flow import lookup as facts_of
from chalicelib.flow.notices import notices
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports, too_many_conflicts


def begin(ports: Ports, job: Job, facts: Facts, now: Instant) -> None:
    """Create the deadline watch of a job at its first check, if its schedule or its workflow has a deadline."""
    if facts.schedule is None or overrides.deadline_of(facts.schedule, facts.workflow) is None:
        return
    deadline = deadlines.begun(job, facts.schedule, facts.workflow, now)
    if deadline is None or ports.rows.get(DeadlineWatch, deadline.id) is not None or facts.already is not None:
        return
    if ports.ledger.commit([Create(deadline)]) is None:
        _hint(ports, deadline.id, deadline.wake_at, now)


def judge_deadline(ports: Ports, job_id: str) -> None:
    """Judge the deadlines of a watch that are due, and write pending notices of missed ones, in one transaction.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        deadline, now = ports.rows.get(DeadlineWatch, job_id), ports.clock.now()
        if deadline is None or deadline.wake_at is None or _next(deadline.start_by, deadline.end_by) > now:
            return
        # The job is read first, so that a job which ends between the reads is found as a run or a record.
        job = ports.jobs.find(job_id)
        attempts = ports.runs.attempts(job_id)
        record = ports.rows.get(Record, job_id)
        judged = deadlines.judge(deadline, job, attempts, record, now)
        if judged.missed and attempts and ids.is_dag_graph(deadline.workflow):
            judged = _with_nodes(ports, judged, attempts[-1])
        work = attempts[-1] if attempts else job
        missed = _missed(ports, judged, work.element if work is not None else None, now)
        over = _recovered(ports, missed, now)
        if ports.ledger.commit([Replace(judged.deadline), *missed, *over]) is None:
            # A run that has succeeded since it was read saw no miss that it would end.
            later = [] if over else _recovered(ports, missed, now)
            if later:
                ports.ledger.commit(later)
            notices.hint(ports, [*missed, *over, *later])
            _hint(ports, job_id, judged.deadline.wake_at, now)
            return
    raise too_many_conflicts(f"the deadline watch of {job_id}", "the sweep will hint it again")


def _with_nodes(ports: Ports, judged: Judged, run: Run) -> Judged:
    """The missed deadlines of a DAG run with the nodes that are active."""
    from chalicelib.flow import dag_states  # few deadlines are those of DAGs

    active = dag_states.said_under_way(ports, run) if run.state == "RUNNING" else ""
    missed = tuple((what, f"{why}; {active}" if active else why) for what, why in judged.missed)
    return replace(judged, missed=missed)


def _missed(ports: Ports, judged: Judged, element: Mapping[str, Any] | None, now: Instant) -> list[Write]:
    """The pending notices of missed deadlines."""
    deadline = judged.deadline
    schedule_state = ports.rows.get(ScheduleState, deadline.schedule)
    rules = notices.rules_of(
        facts_of.definition_of(ports, schedule_state), facts_of.workflow_of(ports, deadline.workflow)
    )
    found: list[Write] = []
    for what, why in judged.missed:
        notice = PendingNotice(deadline.workflow, what, deadline.id, deadline.schedule, why, now, wake_at=now)
        found += notices.pending(rules, notices.about(notice, element))
    return found


def _recovered(ports: Ports, missed: Sequence[Write], now: Instant) -> list[Write]:
    """What ends the incident of these misses, if their run has succeeded before they are written; of an element, that
    of its node."""
    rows = (each.row for each in missed if isinstance(each, Put))
    of = next((row.of or row.id for row in rows if isinstance(row, PendingNotice)), None)
    attempts = ports.runs.attempts(of) if of is not None else []
    return notices.of_success(ports, attempts[-1], now) if attempts and attempts[-1].state == "SUCCEEDED" else []


def _next(*instants: Instant | None) -> Instant:
    return min((at for at in instants if at is not None), default=0)


def _hint(ports: Ports, job_id: str, at: Instant | None, now: Instant) -> None:
    """Hint a watch, unless its instant is later than the maximum delay of a message: then the sweep finds it."""
    if at is not None and at - now <= MAX_DELAY:
        ports.hints.send([kinds.ref(DeadlineWatch, job_id)], max(at, now), now)
