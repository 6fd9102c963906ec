"""watches: a job with a deadline is looked at when it must have started, and when its run must have ended (H5).

No polling: the row wakes at these two instants, and at no other.
"""

from __future__ import annotations

from chalicelib.core.definitions import overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.writes import Create, Replace, Write
from chalicelib.flow import lookup as facts_of
from chalicelib.flow.notices import notices
from chalicelib.ports import LONGEST_DELAY, MOST_RACES, Ports


def begin(ports: Ports, job: Job, facts: Facts, now: Instant) -> None:
    """Watch a job from its first look on, if its schedule or its workflow has a deadline. Once for each."""
    if facts.schedule is None or overrides.deadline_of(facts.schedule, facts.workflow) is None:
        return
    watch = deadlines.begun(job, facts.schedule, facts.workflow, now)
    if watch is None or ports.jobs.watch(watch.id) is not None or facts.already is not None:
        return
    if ports.ledger.commit([Create(watch)]) is None:
        _hint(ports, watch.id, watch.wake_at, now)


def look(ports: Ports, job_id: str) -> None:
    """Judge what is due of a watch, and note what was missed, in one transaction."""
    for _ in range(MOST_RACES):
        watch, now = ports.jobs.watch(job_id), ports.clock.now()
        if watch is None or watch.wake_at is None or _next(watch.start_by, watch.end_by) > now:
            return
        # The job first: what has left the queue meanwhile is found as a run or a record.
        job = ports.jobs.find(job_id)
        attempts = ports.runs.attempts(job_id)
        record = ports.runs.record(job_id)
        judged = deadlines.judge(watch, job, attempts, record, now)
        gate = ports.catalog.gate(watch.schedule)
        rules = notices.rules_of(facts_of.definition_of(ports, gate), facts_of.workflow_of(ports, watch.workflow))
        notes: list[Write] = []
        for what, why in judged.missed:
            note = PendingNotice(watch.workflow, what, job_id, watch.schedule, why, now, wake_at=now)
            notes += notices.noted(rules, what, note)
        if ports.ledger.commit([Replace(judged.watch), *notes]) is None:
            notices.hint(ports, notes)
            _hint(ports, job_id, judged.watch.wake_at, now)
            return
    raise RuntimeError(f"watch of {job_id} lost {MOST_RACES} races; the sweep will find it again")


def _next(*instants: Instant | None) -> Instant:
    return min((at for at in instants if at is not None), default=0)


def _hint(ports: Ports, job_id: str, at: Instant | None, now: Instant) -> None:
    """What is due later than a message can be held back is found by the tick after it."""
    if at is not None and at - now <= LONGEST_DELAY:
        ports.hints.send([Ref("watch", (job_id,))], max(at, now), now)
