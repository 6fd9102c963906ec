"""deliver: send a due fire to a target that has no lifecycle, at least once and always under the same id (E6).

No claim: the gate is read, the message sent, the run row put, the job deleted, in this order. A crash in between
sends again under the same id, which lets the consumer drop the repeat; it can never lose the fire. What cannot be
delivered becomes a failed run and a dead letter, in one transaction with the end of its job.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import claim, complete, dead_letters, delivery, emit
from chalicelib.core.calendar import Instant
from chalicelib.core.complete import News
from chalicelib.core.delivery import Delivery, GiveUp
from chalicelib.core.facts import Facts
from chalicelib.core.launch import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.rows import Job, Run
from chalicelib.core.sweep import ref_of
from chalicelib.core.writes import Create, Put, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import notices
from chalicelib.flow.context import build
from chalicelib.ports import Ports


def deliver(ports: Ports, job: Job, facts: Facts, why: str, now: Instant) -> str | None:
    """Send it and keep the history. Returns None, or why the target does not take it now: the job stays and wakes."""
    called = called_run(ports, job, facts, why, now)
    answer = ports.targets.of(str(called.request.target["type"])).start(called, build(ports, called))
    policy = facts.workflow.delivery if facts.workflow else Delivery()
    return settle(ports, job, called, answer, policy, now)


def called_run(ports: Ports, job: Job, facts: Facts, why: str, now: Instant) -> Run:
    """The run that a job becomes when it is delivered at this moment: its call is the next try."""
    ready = replace(job, reason=why, event=emit.fire_event(job))
    run = claim.build_run(ready, facts, (), ports.payloads.context_uri(job.job_id), now)
    first = job.first_try_at if job.first_try_at is not None else now
    return replace(run, calls=job.tries + 1, start_requested_at=first)


def settle(ports: Ports, job: Job, called: Run, answer: Answer, policy: Delivery, now: Instant) -> str | None:
    """Keep what the target answered. Returns None if that ends the job, else why it is tried again."""
    if isinstance(answer, Started):
        ports.ledger.put_all([Put(ended(called, answer, now))])
        # A job that had queued before its target changed gives back what it holds; a lost race is found as a ghost.
        ports.ledger.commit(_forget(ports, job, now))
        return None
    after = delivery.after(called.calls, answer, policy, job.job_id, now)
    if isinstance(after, GiveUp):
        failed = ended(called, Never(after.why), now)
        letter = dead_letters.of(failed, now)
        notes = notices.of_run(ports, failed, "failed", now)
        kept: list[Write] = [Create(failed), *([Put(letter)] if letter else []), *notes]
        # Refused, if another has delivered it or given it up meanwhile: then that is its end.
        if ports.ledger.commit([*kept, *_forget(ports, job, now)]) is None:
            notices.hint(ports, notes)
        return None
    waiting = replace(
        job,
        wake_at=after.at,
        reason=after.why,
        tries=called.calls,
        first_try_at=called.start_requested_at,
        retry_at=after.at,
        leases=0,
        rev=job.rev + 1,
    )
    waiting = claim.apart_from_emitter(job, waiting)
    if ports.ledger.commit(claim.moved(job, waiting)) is None:
        ports.hints.send([ref_of(waiting)], after.at, now)
    return after.why


def ended(run: Run, answer: Started | Never, now: Instant) -> Run:
    """The run of a delivery that was taken, or given up: over and quiet at once."""
    state = News("SUCCEEDED", now) if isinstance(answer, Started) else News("FAILED", now, answer.why)
    step = complete.advance(run, state, now, None)
    if step is None:
        raise ValueError("expected a run that is STARTING")
    target_id = answer.target_id if isinstance(answer, Started) else None
    return complete.without_announcement(replace(step.run, target_id=target_id))


def judged(ports: Ports, run: Run, answer: Never | NotNow | NoAnswer, now: Instant) -> Answer:
    """The same policy for a run that was claimed: its answer as that of a target which knows when to be asked again, or
    as a final one."""
    workflow = facts_of.workflow_of(ports, run.workflow)
    policy = workflow.delivery if workflow else Delivery()
    after = delivery.after(run.calls, answer, policy, run.run_id, now)
    if isinstance(after, GiveUp) or isinstance(answer, Never):
        return Never(after.why)
    return replace(answer, why=after.why, retry_after=after.at - now)


def put_back(ports: Ports, job: Job, why: str, now: Instant) -> list[Write]:
    """The dead letter of an event whose redrive goes without having been tried."""
    run = ports.runs.run(job.job_id, job.attempt - 1)
    letter = dead_letters.of(run, now, f"{run.reason}; not delivered again: {why}") if run else None
    return [Put(letter)] if letter else []


def _forget(ports: Ports, job: Job, now: Instant) -> list[Write]:
    return claim.forget(job, {line: ports.jobs.line(line) for line in job.held}, now)
