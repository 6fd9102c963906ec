"""probe: ask the user's own check whether a job may launch, when nothing else stands in its way (C15)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.constraints import probe as constraint_probe
from chalicelib.core.constraints.constraint import Probe
from chalicelib.core.constraints.probe import ProbeResult
from chalicelib.core.definitions import overrides
from chalicelib.core.instants import Instant
from chalicelib.core.jobs import check
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.log import logger
from chalicelib.ports import Ports


def ask(ports: Ports, job: Job, facts: Facts, now: Instant, turn: str | None) -> tuple[Job, Facts]:
    """The job and the facts with what the probe says, if it is to be asked at this look; else as they are.

    It is asked when the answer decides: a job that waits for something else anyway, or is run whatever it says, costs
    no call. What it said before holds until it is to be asked again, however often the job is looked at until then.
    """
    named = facts.schedule.constraints if facts.schedule else ()
    probe = next((each for each in named if isinstance(each, Probe)), None)
    if probe is None or facts.workflow is None:
        return job, facts
    before = constraint_probe.remembered(job.probed)
    if before is not None and before.until > now:
        return job, facts
    if not _decides(job, facts, now, turn):
        return job, facts
    said = _said(ports, job, facts, probe, before, now)
    logger.info("probed", extra={"job": job.job_id, "verdict": said.verdict, "why": said.why})
    return replace(job, probed=said.kept()), replace(facts, probe=said)


def _decides(job: Job, facts: Facts, now: Instant, turn: str | None) -> bool:
    launched = {
        verdict: isinstance(check.decide(job, replace(facts, probe=ProbeResult(verdict, now, now)), now, turn), Launch)
        for verdict in ("met", "unmet")
    }
    return launched["met"] and not launched["unmet"]


def _said(ports: Ports, job: Job, facts: Facts, probe: Probe, before: ProbeResult | None, now: Instant) -> ProbeResult:
    if facts.schedule is None or facts.workflow is None:
        raise ValueError("expected complete facts")
    properties = overrides.properties_of(facts.workflow, facts.schedule, job.properties)
    question = constraint_probe.question(job, facts.schedule.workflow, properties, now)
    told = ports.targets.probe(probe.target.model_dump(mode="json"), question)
    if isinstance(told, Never | NoAnswer):
        return constraint_probe.failed(told.why, probe.span, before, now)
    return constraint_probe.read(told, probe.span, before, now)
