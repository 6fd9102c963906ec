"""Prepare deliveries: read, decide and build what is due at one instant before that has come (E2, E6).

Rows are read a hundred to a call. Whatever is not plainly ready (it needs a line, or an answer from outside, or it has
been tried before) is left to the check of single jobs, which delivers on the same road (`flow/jobs/deliver.py`).
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

BATCH_SIZE = 500  # jobs whose rows are held in memory twice
FEWEST = 2  # one alone is checked as any other job: it may be none that is delivered, and would be read twice


@dataclass(frozen=True, slots=True)
class Batch:
    """What is ready to be sent, and what wants to be looked at one by one."""

    ready: tuple[Ready, ...]
    others: tuple[Ref, ...]


def prepare(ports: Ports, refs: Sequence[Ref], due: Instant) -> Batch:
    """Read, decide and build as if ``due`` had come. Nothing is written and nothing sent."""
    fires_only = [ref for ref in refs if ref.kind == "job" and sort_keys.is_fire(ref.parts[2])]
    if len(fires_only) < FEWEST:
        return Batch((), tuple(refs))
    ready: list[Ready] = []
    parsed, at = Parsed(), max(due, ports.clock.now())
    for part in _parts(fires_only, BATCH_SIZE):
        ready += _prepare(ports, part, at, parsed)
    taken = {each.ref for each in ready}
    return Batch(tuple(ready), tuple(ref for ref in refs if ref not in taken))


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
    """What is to be known of each: its definition, and whether it has run or has its record."""
    wanted: list[RowRequest] = []
    for job in jobs:
        schedule_state = seen.catalog.schedule_state(job.schedule)
        wanted += [("version", schedule_state.schedule, schedule_state.version)] if schedule_state else []
        wanted += [("run", job.job_id, job.attempt), ("record", job.job_id)]
    return wanted


def _waiting(seen: Ports, jobs: Iterable[Job], parsed: Parsed) -> list[RowRequest]:
    """Where a fire would wait, if it had to: somebody may do so already."""
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
    """Whether it needs no line, holds none, and its target has no lifecycle: then it is not claimed, but delivered. A
    probe is asked when the instant has come, one by one."""
    if facts.schedule is None or not all(each.decidable_ahead for each in facts.schedule.constraints):
        return False
    if overrides.deadline_of(facts.schedule, facts.workflow) is not None:
        return False
    untracked = facts.workflow is not None and not facts.workflow.target.has_lifecycle
    return untracked and not decision.asks and not job.held and job.kind == "fire" and job.tries == 0


def _parts(things: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))
