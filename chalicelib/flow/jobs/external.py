"""Get external answers to constraints (load, probe), if the answer decides whether a job may launch (C6, C15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import NoAnswer
from chalicelib.flow.definitions import allowed, target_roles
from chalicelib.flow.limits import pools
from chalicelib.log import logger
from chalicelib.ports import Ports


def ask(ports: Ports, job: Job, facts: Facts, now: Instant, serving: str | None) -> tuple[Job, Facts]:
    """The job and the facts with the external answers that this check needs; unchanged if it needs none.

    A call is made only if the answer decides, so a job that waits for something else costs none. An answer is valid
    until its ``until``, however often the job is checked. The answers for one kind of constraint come before those for
    the next kind: an unmet load saves the call of a probe.
    """
    schedule, workflow = facts.schedule, facts.workflow
    if schedule is None or workflow is None:
        return job, facts
    for kind in externals_by_kind(schedule.constraints):
        before = {key: constraint.last_answer(job, number_of(key)) for key, constraint in kind.items()}
        stale = {key: item for key, item in kind.items() if (last := before[key]) is None or last.until <= now}
        if not stale or not _decides(job, facts, stale, now, serving):
            continue
        answers: dict[str, Answer] = {}
        for key, constraint in stale.items():
            properties = overrides.properties_of(workflow, schedule, job.properties)
            asked = constraint.question(job, schedule.workflow, properties, now)
            reply = _reply(ports, job.schedule.partition(".")[0], asked)
            answers[key] = constraint.read(reply, before[key], now)
        job, facts = _answered(job, facts, next(iter(stale.values())), answers)
    return job, facts


def _decides(job: Job, facts: Facts, stale: Mapping[str, External], now: Instant, serving: str | None) -> bool:
    """Whether the job launches if all stale constraints are met, and does not launch if none is."""
    launched = []
    for met in (True, False):
        assumed = {**facts.answers, **{key: constraint.assume(met, now) for key, constraint in stale.items()}}
        launched.append(isinstance(check.decide(job, replace(facts, answers=assumed), now, serving), Launch))
    return launched == [True, False]


def _reply(ports: Ports, namespace: str, question: Question) -> Reply:
    """The answer from outside. Without a call, if the namespace of the schedule may no longer make it (O10)."""
    match question:
        case PoolQuestion(pool):
            row = ports.rows.get(Definition, "pool", pool)
            if row is None:
                return NoAnswer(f"there is no pool {pool}")
            return float(pools.view(ports, row)["in_use"] / row.document["size"])
        case MeterQuestion(source, named):
            refused = allowed.refusal_of(ports, namespace, named)
            return ports.targets.measure(source) if refused is None else NoAnswer(refused)
        case CallQuestion(target, body):
            refused = allowed.refusal(ports, namespace, target)
            return _asked(ports, namespace, target, body) if refused is None else NoAnswer(refused)


def _asked(ports: Ports, namespace: str, target: Mapping[str, Any], body: Mapping[str, Any]) -> Reply:
    """The answer of a probe, called with the role of the namespace of its schedule, if it has one."""
    kind = str(target["type"])
    role = target_roles.of_namespace(ports, namespace) if registry.of_type(kind).is_signed(target) else None
    if role is None:
        return ports.targets.probe(target, body)
    missing = ports.targets.assume(kind, role)
    return ports.targets.probe(target, body, role) if missing is None else NoAnswer(missing.why)


def _answered(job: Job, facts: Facts, kind: External, answers: Mapping[str, Answer]) -> tuple[Job, Facts]:
    """The job and the facts of this check with the answers."""
    numbered = {number_of(key): answer for key, answer in answers.items()}
    message, fields = kind.logged(numbered)
    logger.info(message, extra={"job": job.job_id, **fields})
    return kind.with_answers(job, numbered), replace(facts, answers={**facts.answers, **answers})
