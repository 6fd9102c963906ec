"""deliver: send a due fire to a target that has no lifecycle, at least once and always under the same id (E6).

No claim: the gate is read, the message sent, the run row put, the job deleted, in this order. A crash in between
sends again under the same id, which lets the consumer drop the repeat; it can never lose the fire.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import claim, complete, emit, launch
from chalicelib.core.calendar import Instant
from chalicelib.core.complete import News
from chalicelib.core.facts import Facts
from chalicelib.core.launch import Never, Started
from chalicelib.core.rows import Job, Run
from chalicelib.core.sweep import ref_of
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.context import build
from chalicelib.ports import Ports

RETRY_MOST = 12


def deliver(ports: Ports, job: Job, facts: Facts, why: str, now: Instant) -> str | None:
    """Send it and keep the history. Returns None, or why the target does not take it now: the job stays and wakes."""
    ready = replace(job, reason=why, event=emit.fire_event(job))
    run = claim.build_run(ready, facts, (), ports.payloads.context_uri(job.job_id), now)
    called = replace(run, calls=1, start_requested_at=now)
    answer = ports.targets.of(str(run.request.target["type"])).start(called, build(ports, run))
    if isinstance(answer, Started | Never):
        ports.ledger.put_all([Put(_ended(called, answer, now))])
        # A job that had queued before its target changed gives back what it holds; a lost race is found as a ghost.
        ports.ledger.commit(claim.forget(job, {line: ports.jobs.line(line) for line in job.held}, now))
        return None
    later = now + launch.backoff(min(job.leases, RETRY_MOST), job.job_id)
    waiting = replace(job, wake_at=later, reason=answer.why, leases=job.leases + 1, rev=job.rev + 1)
    if ports.ledger.commit([Replace(waiting)]) is None:
        ports.hints.send([ref_of(waiting)], later, now)
    return answer.why


def _ended(run: Run, answer: Started | Never, now: Instant) -> Run:
    state = News("SUCCEEDED", now) if isinstance(answer, Started) else News("FAILED", now, answer.why)
    step = complete.advance(run, state, now, None)
    if step is None:
        raise ValueError("expected a run that is STARTING")
    target_id = answer.target_id if isinstance(answer, Started) else None
    return complete.without_announcement(replace(step.run, target_id=target_id))
