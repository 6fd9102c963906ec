"""The books of deliveries: one transaction decides whether a job becomes a run or a record, never both.

`[Create(run), DeleteJob(job)]` is committed for many jobs together. A job that is refused is looked at by itself:
another invocation was faster, or somebody dropped the job while its message was on the way. Then the message is
recorded all the same, in the place of the record that says that the job never ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import complete, dead_letters
from chalicelib.core.targets import delivery
from chalicelib.core.targets.answers import Answer, Never, RunUpdate, Started
from chalicelib.core.targets.delivery import Delivery, GiveUp
from chalicelib.core.writes import Create, Delete, DeleteJob, Put, Replace, Write
from chalicelib.flow.limits import waiting
from chalicelib.flow.notices import notices
from chalicelib.log import logger
from chalicelib.ports import MAX_RACES, Ports

BATCH_SIZE = 50  # jobs to a transaction, which takes 100 writes
MAX_BYTES = 3_000_000  # of a transaction, of the 4 MB that DynamoDB takes
ROW_BYTES = 4_000  # of a run and its job, without what they carry
# Quick sends are booked together: a burst is not held up by its books. What was sent is in the books after so long, or
# before the next send if the sends are slow and the books take little beside them.
BOOKED_WITHIN: Millis = 10 * SECOND
SLOW: Millis = 100


@dataclass(frozen=True, slots=True)
class Ready:
    """A job that may be delivered, as far as is known: decided on ``facts``, with the run that it becomes and what that
    carries. ``turn`` names the line whose queue serves it."""

    ref: Ref
    job: Job
    facts: Facts
    run: Run
    context: Mapping[str, Any]
    serving: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A delivery that was made at an instant, its run as it was called, and what the target said."""

    ready: Ready
    called: Run
    answer: Answer
    at: Instant


class Books:
    """What was sent and is not booked yet. ``ends`` says of each booked job why it is tried again, None if that was its
    end; ``failed`` are those whose books could not be kept."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: list[Answered] = []
        self.ends: dict[Ref, str | None] = {}
        self.failed: dict[Ref, Exception] = {}

    def add(self, answered: Sequence[Answered]) -> None:
        """Note what was just sent. It is booked at once, or together with what comes next."""
        self._open += answered
        now = self._ports.clock.now()
        if answered and (now - answered[0].at >= SLOW or now - self._open[0].at >= BOOKED_WITHIN):
            self.keep()

    def keep(self) -> None:
        """Book what was sent. A failure here never makes this invocation send again."""
        answered, self._open = self._open, []
        together = [each for each in answered if _is_plain(each)]
        alone = [each for each in answered if not _is_plain(each)]
        for group in _groups(together):
            try:
                alone += self._commit(group)
            except Exception as error:
                self._fail(group, error)
        for each in alone:
            try:
                self._alone(each)
            except Exception as error:
                self._fail([each], error)

    def _commit(self, group: list[Answered]) -> list[Answered]:
        """Book a group in one transaction; what is refused is left out. Returns that."""
        plans = [(each, _plan(each)) for each in group]
        left_out: list[Answered] = []
        while plans:
            told = self._ports.ledger.commit([write for _, plan in plans for write in plan])
            if told is None:
                break
            refused = {id(write) for write in told.writes}
            left_out += [each for each, plan in plans if any(id(write) in refused for write in plan)]
            plans = [(each, plan) for each, plan in plans if not any(id(write) in refused for write in plan)]
        self.ends |= {each.ready.ref: None for each, _ in plans}
        return left_out

    def _alone(self, each: Answered) -> None:
        if isinstance(each.answer, Started):
            _book(self._ports, each)
            self.ends[each.ready.ref] = None
        else:
            self.ends[each.ready.ref] = _not_taken(self._ports, each)

    def _fail(self, group: Sequence[Answered], error: Exception) -> None:
        logger.exception("books not kept", extra={"size": len(group)})
        self.failed |= {each.ready.ref: error for each in group}


def _is_plain(each: Answered) -> bool:
    """Whether it was taken and its job holds nothing: then its books are two writes."""
    return isinstance(each.answer, Started) and not each.ready.job.held and each.ready.job.queued_in is None


def ended(run: Run, answer: Started | Never, now: Instant) -> Run:
    """The run of a delivery that was taken, or given up: over and quiet at once."""
    state = RunUpdate("SUCCEEDED", now) if isinstance(answer, Started) else RunUpdate("FAILED", now, answer.why)
    step = complete.advance(run, state, now, None)
    if step is None:
        raise ValueError("expected a run that is STARTING")
    target_id = answer.target_id if isinstance(answer, Started) else None
    return complete.without_announcement(replace(step.run, target_id=target_id))


def _plan(each: Answered) -> tuple[Write, Write]:
    return Create(_delivered(each)), DeleteJob(each.ready.job)


def _delivered(each: Answered) -> Run:
    if not isinstance(each.answer, Started):
        raise TypeError("expected a delivery that was taken")
    return ended(each.called, each.answer, each.at)


def _book(ports: Ports, each: Answered) -> None:
    """Record what was sent, also if its job is gone meanwhile. A run that is there already stays as it is."""
    run, job_id = _delivered(each), each.ready.job.job_id
    for _ in range(MAX_RACES):
        if ports.runs.run(run.run_id, run.attempt) is not None:
            return  # another invocation was faster
        job, record = _what_became_of(ports, each.ready.job)
        plan: list[Write] = [Create(run)]
        if job is not None:
            plan += _taken_off(ports, waiting.regained(ports, job), each.at)
        elif record is not None:
            plan.append(Delete(record))
        if ports.ledger.commit(plan) is None:
            return
    raise RuntimeError(f"the books of job {job_id} lost {MAX_RACES} races")


def _what_became_of(ports: Ports, job: Job) -> tuple[Job | None, Record | None]:
    """The job where it is now, or the record of its end. One that had to wait meanwhile has another place, and one
    whose generation was closed lies under a tombstone. A job goes in the transaction that writes its record, so the
    record is read after it."""
    here = ports.jobs.job(job.schedule, job.generation, job.sort_key)
    if here is not None and here.job_id == job.job_id:
        return here, None
    record = ports.runs.record(job.job_id)
    if record is not None:
        return None, record
    moved = ports.jobs.find(job.job_id)
    return moved, ports.runs.record(job.job_id) if moved is None else None


def _taken_off(ports: Ports, job: Job, now: Instant) -> list[Write]:
    """The end of a job, giving back what it holds. A tombstone over it stays, so that nothing joins it."""
    plan = claim.delete_plan(job, {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}, now)
    if not job.closed:
        return plan
    bare = replace(job, job_id="", queued_in=None, rank=None, held=(), units=0, rev=job.rev + 1)
    return [Replace(bare, over=job), *(write for write in plan if not isinstance(write, DeleteJob))]


def _not_taken(ports: Ports, each: Answered) -> str | None:
    """Try it again later, or give it up: a failed run and a dead letter, in one transaction with the end of its job."""
    if isinstance(each.answer, Started):
        raise TypeError("expected a delivery that was not taken")
    now = ports.clock.now()
    job, called = each.ready.job, each.called
    policy = each.ready.facts.workflow.delivery if each.ready.facts.workflow else Delivery()
    after = delivery.next_try(called.calls, each.answer, policy, job.job_id, now)
    if isinstance(after, GiveUp):
        failed = ended(called, Never(after.why), now)
        letter = dead_letters.of(failed, now)
        notices_due = notices.of_run(ports, failed, "failed", now)
        kept: list[Write] = [Create(failed), *([Put(letter)] if letter else []), *notices_due]
        held = {limit_name: ports.jobs.limit_state(limit_name) for limit_name in job.held}
        # Refused, if another has delivered it or given it up meanwhile: then that is its end.
        if ports.ledger.commit([*kept, *claim.delete_plan(job, held, now)]) is None:
            notices.hint(ports, notices_due)
        return None
    for _ in range(MAX_RACES):
        later = replace(
            job,
            wake_at=after.at,
            reason=after.why,
            tries=called.calls,
            first_try_at=called.start_requested_at,
            retry_at=after.at,
            leases=0,
            rev=job.rev + 1,
        )
        later = claim.detached_from_emitter(job, later)
        if ports.ledger.commit(claim.moved(job, later)) is None:
            ports.hints.send([ref_of(later)], after.at, now)
            break
        # The sweep may have leased it while the call was under way: the try counts all the same.
        found = ports.jobs.job(job.schedule, job.generation, job.sort_key)
        if found is None or found.closed or (found.job_id, found.tries) != (job.job_id, job.tries):
            break
        job = replace(job, rev=found.rev)
    return after.why


def _groups(answered: Sequence[Answered]) -> Iterator[list[Answered]]:
    """As many to a transaction as DynamoDB takes, by number and by bytes."""
    group: list[Answered] = []
    size = 0
    for each in answered:
        more = _bytes(each)
        if group and (len(group) == BATCH_SIZE or size + more > MAX_BYTES):
            yield group
            group, size = [], 0
        group.append(each)
        size += more
    if group:
        yield group


def _bytes(each: Answered) -> int:
    """Of a run and its job, not less than they are."""
    request = each.called.request
    data = sum(len(str(part)) for part in (request.data or {}).values())
    return ROW_BYTES + 4 * data + 2 * len(json.dumps(dict(request.properties)))
