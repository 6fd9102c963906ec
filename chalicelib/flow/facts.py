"""Read the facts that the decision about a job depends on. Strong reads; the definition of a version is cached."""

from __future__ import annotations

from chalicelib.core.check import Facts, StartRate, asks_of
from chalicelib.core.model import Schedule, Workflow
from chalicelib.core.rows import GATHERING, Gate, Job
from chalicelib.ports import Ports


def gather(ports: Ports, job: Job) -> Facts:
    """The facts of the moment about one job. Gate first: whatever is read after it is at least as new."""
    gate = ports.catalog.gate(job.schedule)
    schedule = definition_of(ports, gate)
    workflow = workflow_of(ports, schedule.workflow) if schedule else None
    rate = start_rate(ports)
    asks = asks_of(schedule, workflow, rate) if schedule and workflow else ()
    fire = job.kind == "fire" and job.place != GATHERING
    return Facts(
        gate=gate,
        schedule=schedule,
        workflow=workflow,
        start_rate=rate,
        gathering=ports.jobs.job(job.schedule, job.generation, GATHERING) if fire else None,
        already=_already(ports, job),
        lines={ask.line: ports.jobs.line(ask.line) for ask in asks},
    )


def definition_of(ports: Ports, gate: Gate | None) -> Schedule | None:
    version = ports.catalog.version(gate.schedule, gate.version) if gate else None
    return Schedule.model_validate(version.definition) if version else None


def workflow_of(ports: Ports, name: str) -> Workflow | None:
    definition = ports.catalog.definition("workflow", name)
    return Workflow.model_validate(definition.document) if definition else None


def start_rate(ports: Ports) -> StartRate:
    settings = ports.settings
    return StartRate(settings.emr_application_id, settings.start_spacing, settings.start_burst)


def _already(ports: Ports, job: Job) -> str | None:
    """Whether this very job has become a run or a record. All but a gathering job can be written again by a repeat."""
    if job.kind == "gathering":
        return None
    if ports.runs.run(job.job_id, job.attempt) is not None:
        return f"run {job.job_id}"
    record = ports.runs.record(job.job_id) if job.kind != "retry" else None
    return f"a record ({record.kind})" if record else None
