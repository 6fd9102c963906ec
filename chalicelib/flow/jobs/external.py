"""external: ask something outside about a constraint, when the answer decides whether a job may launch (C6, C15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chalicelib.core.constraints.constraint import (
    Answer,
    CallQuestion,
    External,
    MeterQuestion,
    PoolQuestion,
    Question,
    Reply,
    number_of,
)
from chalicelib.core.constraints.registry import externals_by_kind
from chalicelib.core.definitions import overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from chalicelib.core.targets.answers import NoAnswer
from chalicelib.flow.limits import pools
from chalicelib.log import logger
from chalicelib.ports import Ports


def ask(ports: Ports, job: Job, facts: Facts, now: Instant, serving: str | None) -> tuple[Job, Facts]:
    """The job and the facts with the answers to what is to be asked at this look; without such, as they are.

    A constraint is asked when the answer decides: a job that waits for something else anyway, or is run whatever the
    answer is, costs no call. What was answered before holds until it is to be asked again, however often the job is
    looked at until then. A kind is asked as a whole, and before the next one: an unmet load spares the call of a probe.
    """
    schedule, workflow = facts.schedule, facts.workflow
    if schedule is None or workflow is None:
        return job, facts
    for kind in externals_by_kind(schedule.constraints):
        before = {key: each.last_answer(job, number_of(key)) for key, each in kind.items()}
        stale = {key: each for key, each in kind.items() if (said := before[key]) is None or said.until <= now}
        if not stale or not _decides(job, facts, stale, now, serving):
            continue
        answers: dict[str, Answer] = {}
        for key, each in stale.items():
            properties = overrides.properties_of(workflow, schedule, job.properties)
            reply = _reply(ports, each.question(job, schedule.workflow, properties, now))
            answers[key] = each.read(reply, before[key], now)
        job, facts = _answered(job, facts, next(iter(stale.values())), answers)
    return job, facts


def _decides(job: Job, facts: Facts, stale: Mapping[str, External], now: Instant, serving: str | None) -> bool:
    """Whether the job is launched if all are met, and is not if none is."""
    launched = []
    for met in (True, False):
        assumed = {**facts.answers, **{key: each.assume(met, now) for key, each in stale.items()}}
        launched.append(isinstance(check.decide(job, replace(facts, answers=assumed), now, serving), Launch))
    return launched == [True, False]


def _reply(ports: Ports, question: Question) -> Reply:
    match question:
        case PoolQuestion(pool):
            row = ports.catalog.definition("pool", pool)
            if row is None:
                return NoAnswer(f"there is no pool {pool}")
            return float(pools.view(ports, row)["in_use"] / row.document["size"])
        case MeterQuestion(source):
            return ports.targets.measure(source)
        case CallQuestion(target, body):
            return ports.targets.probe(target, body)


def _answered(job: Job, facts: Facts, kind: External, answers: Mapping[str, Answer]) -> tuple[Job, Facts]:
    """The job keeps the answers, and the facts of this look hold them."""
    numbered = {number_of(key): answer for key, answer in answers.items()}
    message, told = kind.logged(numbered)
    logger.info(message, extra={"job": job.job_id, **told})
    return kind.with_answers(job, numbered), replace(facts, answers={**facts.answers, **answers})
