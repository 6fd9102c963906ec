"""Prepare the deliveries that are due at one instant, before that instant: read, decide, build (E2, E6).

Rows are read a hundred per call. A job that needs a permit or an external answer, or that was tried before, is left to
the check of single jobs. That check delivers by the same code (`flow/jobs/deliver.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chalicelib.core.definitions import overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check, claim
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.flow import facts as facts_of
from chalicelib.flow.facts import Parsed
from chalicelib.flow.ingest import fires
from chalicelib.flow.jobs.deliver import called_run
from chalicelib.flow.jobs.delivery_books import Ready
from chalicelib.flow.runs.context import build
from chalicelib.ports import Ports, RowRequest

T = TypeVar("T")

BATCH_SIZE = 500  # bounds memory, which holds the rows of these jobs twice
MIN_BATCH = 2  # a single job gets the ordinary check: if it is not delivered, a batch would have read it twice


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries that are ready to be sent, and the refs that need a check one by one."""

    ready: tuple[Ready, ...]
    others: tuple[Ref, ...]


def prepare(ports: Ports, refs: Sequence[Ref], due: Instant) -> Batch:
    """Read, decide and build as if it were ``due``. Writes nothing and sends nothing."""
    fires_only = [ref for ref in refs if ref.kind == "job" and sort_keys.is_fire(ref.parts[2])]
    if len(fires_only) < MIN_BATCH:
        return Batch((), tuple(refs))
    ready: list[Ready] = []
    parsed, at = Parsed(), max(due, ports.clock.now())
    for part in _parts(fires_only, BATCH_SIZE):
        ready += _prepare(ports, part, at, parsed)
    ready_refs = {delivery.ref for delivery in ready}
    return Batch(tuple(ready), tuple(ref for ref in refs if ref not in ready_refs))


def _prepare(ports: Ports, refs: Sequence[Ref], at: Instant, parsed: Parsed) -> Iterable[Ready]:
    queued = {ref: (ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs}
    wanted: list[RowRequest] = [("job", *key) for key in queued.values()]
    wanted += [("schedule_state", schedule) for schedule, _, _ in queued.values()]
    seen = ports.prefetch.read(ports, wanted)
    jobs = {ref: job for ref, key in queued.items() if (job := seen.jobs.job(*key)) is not None and not job.closed}
    seen = seen.prefetch.read(seen, _needs(seen, jobs.values()))
    seen = seen.prefetch.read(seen, _waiting(seen, jobs.values(), parsed))
    for ref, job in jobs.items():
        facts = facts_of.gather(seen, job, parsed)
        decision = check.decide(job, facts, at) if not fires.is_event(job, facts, at) else None
        if isinstance(decision, Launch) and _is_plain(job, facts, decision):
            run = called_run(ports, job, facts, decision.why, at)
            yield Ready(ref, job, facts, run, build(ports, run))


def _needs(seen: Ports, jobs: Iterable[Job]) -> list[RowRequest]:
    """The rows that each job's decision needs: its definition, its run and its record."""
    wanted: list[RowRequest] = []
    for job in jobs:
        schedule_state = seen.catalog.schedule_state(job.schedule)
        wanted += [("version", schedule_state.schedule, schedule_state.version)] if schedule_state else []
        wanted += [("run", job.job_id, job.attempt), ("record", job.job_id)]
    return wanted


def _waiting(seen: Ports, jobs: Iterable[Job], parsed: Parsed) -> list[RowRequest]:
    """The rows of the jobs that each fire could join, and of its workflow: a job may already wait under those keys."""
    wanted: list[RowRequest] = []
    for job in jobs:
        schedule_state = seen.catalog.schedule_state(job.schedule)
        schedule = parsed.schedule(seen, schedule_state)
        if schedule_state is not None and schedule is not None:
            queued = claim.keys_of_copy(job, schedule, schedule_state, seen.clock.now())
            wanted += [("job", job.schedule, job.generation, key) for key in queued]
            wanted.append(("workflow", schedule.workflow))
    return wanted


def _is_plain(job: Job, facts: Facts, decision: Launch) -> bool:
    """Whether the job needs and holds no permit, and its target has no lifecycle: then Sluice delivers it without a
    claim. A job with a probe is never plain: the probe is called at the instant itself, job by job."""
    if facts.schedule is None or not all(constraint.decidable_ahead for constraint in facts.schedule.constraints):
        return False
    if overrides.deadline_of(facts.schedule, facts.workflow) is not None:
        return False
    untracked = facts.workflow is not None and not facts.workflow.target.has_lifecycle
    return untracked and not decision.asks and not job.held and job.kind == "fire" and job.tries == 0


def _parts(things: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))
