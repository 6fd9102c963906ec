"""Deliver a crowd: many prepared fires that are due at one instant, for targets that have no lifecycle (E2, E6).

One by one is right, and ten calls a job. Here rows are read a hundred to a call and messages sent in the target's own
batches, in two steps: `prepare` reads, decides and builds before the instant; `send` reads the gates once more when it
has come, sends, and only then keeps the books: runs first, then the jobs out. A death in between sends again under the
same ids, as it does one by one. Whatever is not plainly ready is left to the check of single jobs, in every respect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chalicelib.core import check, claim, watches
from chalicelib.core.calendar import Instant
from chalicelib.core.check import Launch
from chalicelib.core.constraints import Approval, Load, Probe
from chalicelib.core.delivery import Delivery
from chalicelib.core.facts import Facts
from chalicelib.core.launch import Answer, Started
from chalicelib.core.rows import Gate, Job, Run
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Delete, Put
from chalicelib.flow import deliver, fires
from chalicelib.flow import facts as facts_of
from chalicelib.flow.context import build
from chalicelib.flow.facts import Parsed
from chalicelib.log import logger
from chalicelib.ports import Ports, Want

T = TypeVar("T")

AT_ONCE = 500  # jobs whose rows are held in memory twice
FEWEST = 2  # one alone is checked as any other job


@dataclass(frozen=True, slots=True)
class Ready:
    """A fire that may go when its instant has come, as far as could be known before."""

    ref: Ref
    job: Job
    facts: Facts
    run: Run
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Crowd:
    """What is ready to be sent, and what wants to be looked at one by one."""

    ready: tuple[Ready, ...]
    others: tuple[Ref, ...]


def prepare(ports: Ports, refs: Sequence[Ref], due: Instant) -> Crowd:
    """Read, decide and build as if ``due`` had come. Nothing is written and nothing sent."""
    fires_only = [ref for ref in refs if ref.kind == "job" and ref.parts[2].startswith("FIRE#")]
    if len(fires_only) < FEWEST:
        return Crowd((), tuple(refs))
    ready: list[Ready] = []
    parsed, at = Parsed(), max(due, ports.clock.now())
    for part in _parts(fires_only, AT_ONCE):
        ready += _prepare(ports, part, at, parsed)
    taken = {each.ref for each in ready}
    return Crowd(tuple(ready), tuple(ref for ref in refs if ref not in taken))


def send(ports: Ports, crowd: Crowd) -> tuple[Ref, ...]:
    """Send what is ready, then keep the books. Returns what is to be looked at one by one after all."""
    gates = _gates(ports, crowd.ready)
    now = ports.clock.now()
    open_ones = [each for each in crowd.ready if gates.get(each.job.schedule) == each.facts.gate]
    groups: dict[str, list[Ready]] = {}
    for each in open_ones:
        groups.setdefault(str(each.run.request.target["type"]), []).append(each)
    answered: list[tuple[Ready, Run, Answer]] = []
    for kind, group in groups.items():
        called = [replace(each.run, claimed_at=now, start_requested_at=now) for each in group]
        calls = [(run, each.context) for run, each in zip(called, group, strict=True)]
        answers = ports.targets.of(kind).start_many(calls)
        answered += zip(group, called, answers, strict=True)
    _keep(ports, answered, now)
    logger.info("crowd", extra={"sent": len(answered), "others": len(crowd.others) + len(crowd.ready) - len(answered)})
    sent = {each.ref for each in open_ones}
    return (*crowd.others, *(each.ref for each in crowd.ready if each.ref not in sent))


def _prepare(ports: Ports, refs: Sequence[Ref], at: Instant, parsed: Parsed) -> Iterable[Ready]:
    places = {ref: (ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs}
    wanted: list[Want] = [("job", *place) for place in places.values()]
    wanted += [("gate", schedule) for schedule, _, _ in places.values()]
    seen = ports.ahead.read(ports, wanted)
    jobs = {ref: job for ref, place in places.items() if (job := seen.jobs.job(*place)) is not None and not job.closed}
    seen = seen.ahead.read(seen, _needs(seen, jobs.values()))
    seen = seen.ahead.read(seen, _waiting(seen, jobs.values(), parsed))
    for ref, job in jobs.items():
        facts = facts_of.gather(seen, job, parsed)
        decision = check.decide(job, facts, at) if not fires.is_event(job, facts, at) else None
        if isinstance(decision, Launch) and _is_plain(job, facts, decision):
            run = deliver.called_run(ports, job, facts, decision.why, at)
            yield Ready(ref, job, facts, run, build(ports, run))


def _needs(seen: Ports, jobs: Iterable[Job]) -> list[Want]:
    """What is to be known of each: its definition, and whether it has run or has its record."""
    wanted: list[Want] = []
    for job in jobs:
        gate = seen.catalog.gate(job.schedule)
        wanted += [("version", gate.schedule, gate.version)] if gate else []
        wanted += [("run", job.job_id, job.attempt), ("record", job.job_id)]
    return wanted


def _waiting(seen: Ports, jobs: Iterable[Job], parsed: Parsed) -> list[Want]:
    """Where a fire would wait, if it had to: somebody may do so already."""
    wanted: list[Want] = []
    for job in jobs:
        gate = seen.catalog.gate(job.schedule)
        schedule = parsed.schedule(seen, gate)
        if gate is not None and schedule is not None:
            places = claim.places_of_copy(job, schedule, gate, seen.clock.now())
            wanted += [("job", job.schedule, job.generation, place) for place in places]
            wanted.append(("workflow", schedule.workflow))
    return wanted


def _is_plain(job: Job, facts: Facts, decision: Launch) -> bool:
    """Whether it needs no line, holds none, and its target has no lifecycle: then it is not claimed, but delivered. A
    probe is asked when the instant has come, one by one."""
    if facts.schedule is None or any(isinstance(each, Probe | Load | Approval) for each in facts.schedule.constraints):
        return False
    if watches.deadline_of(facts.schedule, facts.workflow) is not None:
        return False
    untracked = facts.workflow is not None and not facts.workflow.target.has_lifecycle
    return untracked and not decision.asks and not job.held and job.kind == "fire" and job.tries == 0


def _gates(ports: Ports, ready: Sequence[Ready]) -> dict[str, Gate | None]:
    names = list(dict.fromkeys(each.job.schedule for each in ready))
    seen = ports.ahead.read(ports, [("gate", name) for name in names])
    return {name: seen.catalog.gate(name) for name in names}


def _keep(ports: Ports, answered: Sequence[tuple[Ready, Run, Answer]], now: Instant) -> None:
    """The books of what was sent. Runs first: a job that is found without its run is sent again, and never lost."""
    taken = [(each, deliver.ended(run, answer, now)) for each, run, answer in answered if isinstance(answer, Started)]
    if taken:
        ports.ledger.put_all([Put(run) for _, run in taken])
        ports.ledger.delete_all([Delete(each.job) for each, _ in taken])
    for each, run, answer in answered:
        if not isinstance(answer, Started):
            policy = each.facts.workflow.delivery if each.facts.workflow else Delivery()
            deliver.settle(ports, each.job, run, answer, policy, now)


def _parts(things: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))
