"""A delivery that is ready, its answer, and what follows from an answer: the final run, or the next try (E6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles, fire
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows import delivery_lease
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete, dead_letters
from chalicelib.core.targets import retries
from chalicelib.core.targets.answers import Answer, Never, RunUpdate, Started
from chalicelib.core.targets.retries import Delivery, GiveUp
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, Put, Write
from chalicelib.flow.notices import notices
from chalicelib.flow.runs.context import build
from chalicelib.ports import Ports

MAX_BYTES = 3_000_000  # per transaction; DynamoDB allows 4 MB
ROW_BYTES = 4_000  # of a run and its job, without data and properties

Ends = dict[Ref, Why | None]  # None: the delivery is final; else why it is tried again


@dataclass(frozen=True, slots=True)
class Ready:
    """A job that may be delivered: the ``facts`` of that decision, and the run that it becomes with its ``context``.

    ``serving`` names the limit whose queue serves it. ``bundle`` is the bundle of its event, if it is in one. Then no
    row is stored under ``ref``. It is sent ``at`` an instant or later; with a permit of a policy, before ``until``.
    """

    ref: Ref
    job: Job
    facts: Facts
    run: Run
    context: Mapping[str, Any]
    serving: str | None = None
    bundle: Job | None = None
    at: Instant = 0
    until: Instant | None = None

    @property
    def row(self) -> Job:
        """The stored row: that of the bundle, or of the job."""
        return self.bundle or self.job

    @property
    def leased(self) -> Job:
        """What a lease covers: the row, or one event of a bundle, of which several invocations send some each."""
        if self.bundle is None or self.serving is None:
            return self.row
        return bundles.leased_as(self.bundle, self.job.index)

    @property
    def leased_ref(self) -> Ref:
        """What has the same ref is under the same lease."""
        return self.row_ref if self.serving is None else self.ref

    @property
    def mark(self) -> str:
        return delivery_lease.mark(self.leased)

    @property
    def row_ref(self) -> Ref:
        return self.ref if self.bundle is None else ref_of(self.bundle)


@dataclass(frozen=True, slots=True)
class Answered:
    """A delivery that was made at ``at``, its run at the call, and the answer of the target."""

    ready: Ready
    called: Run
    answer: Answer
    at: Instant


def ready_of(
    ports: Ports, job: Job, facts: Facts, why: Why, at: Instant, serving: str | None = None
) -> Ready:  # fmt: skip
    """A job as the delivery that it is if it is sent at ``at``."""
    run = called_run(ports, job, facts, why, at)
    return Ready(ref_of(job), job, facts, run, build(ports, run), serving)


def called_run(ports: Ports, job: Job, facts: Facts, why: Why, now: Instant) -> Run:
    """The run that a job becomes if it is delivered now, with this call counted as its next try."""
    ready = replace(job, reason=why, event=fire.event_of(job))
    run = claim.build_run(ready, facts, (), ports.payloads.context_uri(job.job_id), now)
    return called_at(run, job, now, job.tries + 1)


def called_at(run: Run, job: Job, now: Instant, calls: int) -> Run:
    """The run with its call at ``now``, the instant from which its lateness is measured (T4). It is the call number
    ``calls``."""
    first = job.first_try_at if job.first_try_at is not None else now
    late = job.window_end is not None and now >= job.window_end
    return replace(run, calls=calls, claimed_at=now, start_requested_at=first, late=late)


def ended(run: Run, answer: Started | Never, now: Instant) -> Run:
    """The final run, without announcements, of a delivery that the target accepted or that Sluice gave up."""
    state = (
        RunUpdate("SUCCEEDED", now, result=answer.result)
        if isinstance(answer, Started)
        else RunUpdate("FAILED", now, Why.of("not_delivered", answer.why))
    )
    step = complete.advance(run, state, now, None)
    if step is None:
        raise ValueError("expected a run that is STARTING")
    target_id = answer.target_id if isinstance(answer, Started) else None
    return complete.without_announcement(replace(step.run, target_id=target_id))


@dataclass(frozen=True, slots=True)
class Next:
    """What follows a delivery that was not taken: its writes, beside those that end or move the job. ``job`` is the job
    with its next try; None if the delivery was given up. ``why`` is the reason of the next try."""

    plan: list[Write]
    job: Job | None = None
    why: Why | None = None
    notices: Sequence[Write] = ()


def next_of(ports: Ports, each: Answered, now: Instant) -> Next:
    """The next try of a delivery that was not taken, or its failed run and dead letter. The job of an event in a bundle
    is created by the plan, since it has no row before."""
    if isinstance(each.answer, Started):
        raise TypeError("expected a delivery that was not taken")
    job, called = each.ready.job, each.called
    policy = each.ready.facts.workflow.delivery if each.ready.facts.workflow else Delivery()
    after = retries.next_try(called.calls, each.answer, policy, job.job_id, now)
    if isinstance(after, GiveUp):
        failed = ended(called, Never(after.why), now)
        letter = dead_letters.of(failed, now)
        due = notices.of_run(ports, failed, "failed", now)
        if job.event is None and not job.traits.timed:
            # A redrive gets this context: the events lie under the generation that gathered them, and expire with it.
            ports.payloads.put_context(failed.run_id, each.ready.context)
        return Next([Create(failed), *([Put(letter)] if letter else []), *due], notices=due)
    why = Why.of("try_failed", after.why)
    later = replace(
        job,
        wake_at=after.at,
        reason=why,
        tries=called.calls,
        first_try_at=called.start_requested_at,
        retry_at=after.at,
        leases=0,
    )
    if each.ready.bundle is None:
        return Next([], later, why)
    later = bundles.alone(later)
    return Next([Create(later)], later, why)


def bytes_of(each: Answered) -> int:
    """An upper bound for the bytes of a run and its job."""
    request = each.called.request
    data = sum(len(str(part)) for part in (request.data or {}).values())
    return ROW_BYTES + 4 * data + 2 * len(json.dumps(dict(request.properties)))
