"""Read the facts that the decision about a job depends on. Strong reads; the definition of a version is cached."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core import check, claim, dag_keys, errors, ids, lines
from chalicelib.core.calendar import Instant
from chalicelib.core.errors import SluiceError
from chalicelib.core.facts import Facts, StartRate, is_tracked
from chalicelib.core.lines import LineState
from chalicelib.core.model import Schedule, Workflow
from chalicelib.core.policies import Policy
from chalicelib.core.rows import Definition, Gate, Job, Run
from chalicelib.core.writes import DefinitionIs, NewEdition
from chalicelib.flow import counting, pools
from chalicelib.ports import Ports


class Parsed:
    """Documents that one look has parsed already: many jobs of one schedule are one parsing."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[str, int], Schedule | None] = {}
        self._workflows: dict[str, tuple[Workflow | None, Definition | None]] = {}

    def schedule(self, ports: Ports, gate: Gate | None) -> Schedule | None:
        if gate is None:
            return None
        place = (gate.schedule, gate.version)
        if place not in self._schedules:
            self._schedules[place] = definition_of(ports, gate)
        return self._schedules[place]

    def workflow(self, ports: Ports, name: str) -> tuple[Workflow | None, Definition | None]:
        """A workflow, and its definition as it is stored. That of a DAG's graph is not stored."""
        if ids.is_dag_graph(name):
            return dag_keys.begins(), None
        if name not in self._workflows:
            found = ports.catalog.definition("workflow", name)
            self._workflows[name] = (Workflow.model_validate(found.document) if found else None, found)
        return self._workflows[name]


def gather(ports: Ports, job: Job, parsed: Parsed | None = None) -> Facts:
    """The facts of the moment about one job. Gate first: whatever is read after it is at least as new."""
    parsed = parsed or Parsed()
    gate = ports.catalog.gate(job.schedule)
    schedule = parsed.schedule(ports, gate)
    workflow, row = parsed.workflow(ports, schedule.workflow) if schedule else (None, None)
    if schedule is not None and workflow is not None and workflow.target.has_lifecycle and gate is not None:
        gate = counting.of_schedule(ports, gate, schedule, workflow) if gate.uncounted else gate
        if row is not None and row.uncounted:
            counting.of_workflow(ports, row)
    known = Facts(
        gate=gate,
        schedule=schedule,
        workflow=workflow,
        counted=row is not None and row.counted,
        workflow_version=row.version if row is not None else 0,
        start_rate=start_rate(ports),
        gathering=_waiting(ports, job, gate, schedule),
        already=already(ports, job),
        origin=_origin(ports, job),
        backfill=ports.jobs.backfill(job.schedule, job.backfill) if job.backfill is not None else None,
    )
    if schedule is None or workflow is None:
        return known
    if schedule.policy is not None:
        known = replace(known, policy=policy_of(ports, schedule.policy))
    pooled = pools.ask_of(ports, workflow, schedule)
    known = replace(known, pool=pooled[0], pool_row=pooled[1]) if pooled is not None else known
    states = _of_edition(ports, _lines(ports, job, known, schedule, workflow), schedule.workflow, row)
    return replace(known, lines=states, successes=_successes(ports, schedule))


def _of_edition(
    ports: Ports, states: dict[str, LineState], workflow: str, row: Definition | None
) -> dict[str, LineState]:
    """The lines as they were read, but the workflow's as one of the definition that was read before: so a claim that
    relies on a workflow which was replaced since is refused.

    The two change together. Where a restore from backups has parted them, the definition is right."""
    own = lines.workflow_line(workflow)
    if own not in states or row is None or states[own].edition == row.edition:
        return states
    current = ports.catalog.definition("workflow", workflow)
    if current is not None and current.edition != states[own].edition:
        ports.ledger.commit([NewEdition(own, current.edition), DefinitionIs(current)])
    return states | {own: replace(states[own], edition=row.edition)}


def _origin(ports: Ports, job: Job) -> Run | None:
    attempts = ports.runs.attempts(job.rerun_of) if job.rerun_of is not None else ()
    return attempts[-1] if attempts else None


def _waiting(ports: Ports, job: Job, gate: Gate | None, schedule: Schedule | None) -> Job | None:
    """The job that a prepared fire would join, or that it has become already (C11)."""
    if gate is None or schedule is None or not check.is_prepared(job):
        return None
    waits, *apart = claim.places_of_copy(job, schedule, gate, ports.clock.now())
    for place in apart:
        moved = ports.jobs.job(job.schedule, job.generation, place)
        if moved is not None and moved.job_id == job.job_id:
            return moved
    return ports.jobs.job(job.schedule, job.generation, waits)


def _lines(ports: Ports, job: Job, known: Facts, schedule: Schedule, workflow: Workflow) -> dict[str, LineState]:
    """The workflow's own line first: it says which others every start is counted in."""
    tracked = known.counted or is_tracked(schedule, workflow) or bool(schedule.constraints)
    if not tracked and known.policy is None:
        return {}
    own = lines.workflow_line(schedule.workflow)
    states = {own: ports.jobs.line(own)} if tracked else {}
    asks = replace(known, lines=states).asks(job.schedule.partition(".")[0])
    named = dict.fromkeys((*(ask.line for ask in lines.with_spares(asks)), *claim.turns_of(job)))
    return states | {line: ports.jobs.line(line) for line in named if line != own}


def _successes(ports: Ports, schedule: Schedule) -> dict[str, Instant | None]:
    return {name: ports.jobs.line(lines.workflow_line(name)).last_success_at for name in schedule.fresh_upstreams}


@dataclass(frozen=True, slots=True)
class Stored:
    """A schedule as it is stored, and when it was put: what it says relatively was counted from then."""

    definition: Schedule
    put_at: Instant


def stored(ports: Ports, gate: Gate | None) -> Stored | None:
    version = ports.catalog.version(gate.schedule, gate.version) if gate else None
    return Stored(Schedule.model_validate(version.definition), version.created_at) if version else None


def is_same(stored: Stored | None, name: str, sent: Schedule) -> bool:
    """Whether a schedule that is sent says what is stored. Relative instants are counted as those of the stored one
    were: the same words again are the same schedule, and its ``due_time`` and ``ttl`` do not begin anew."""
    namespace, app, _ = name.split(".")
    try:
        return stored is not None and stored.definition == sent.resolved(namespace, app, stored.put_at)
    except SluiceError:
        return False  # what has no order counted from then is something else


def definition_of(ports: Ports, gate: Gate | None) -> Schedule | None:
    found = stored(ports, gate)
    return found.definition if found else None


def existing(ports: Ports, name: str) -> tuple[Gate, Schedule]:
    """The gate and definition of a schedule that is there; refused with 404 if there is none."""
    gate = ports.catalog.gate(name)
    schedule = definition_of(ports, gate)
    if gate is None or schedule is None or gate.mode == "deleted":
        raise errors.not_found("schedule", name)
    return gate, schedule


def workflow_of(ports: Ports, name: str) -> Workflow | None:
    if ids.is_dag_graph(name):
        return dag_keys.begins()
    definition = ports.catalog.definition("workflow", name)
    return Workflow.model_validate(definition.document) if definition else None


def goes_on(ports: Ports, schedule: str, backfill: str) -> bool:
    """Whether a backfill may still begin anything (L12)."""
    row = ports.jobs.backfill(schedule, backfill)
    return row is not None and row.state == "RUNNING"


def policy_of(ports: Ports, name: str) -> Policy | None:
    definition = ports.catalog.definition("policy", name)
    return Policy.model_validate(definition.document) if definition else None


def start_rate(ports: Ports) -> StartRate:
    settings = ports.settings
    return StartRate(
        settings.emr_application_id,
        settings.start_spacing,
        settings.start_burst,
        settings.emr_job_role_arn,
        dict(settings.emr_run_limits),
    )


def already(ports: Ports, job: Job) -> str | None:
    """Whether this very job has become a run or a record. All but a gathering job can be written again by a repeat."""
    if job.kind == "gathering":
        return None
    if ports.runs.run(job.job_id, job.attempt) is not None:
        return f"run {job.job_id}"
    record = ports.runs.record(job.job_id) if job.kind not in ("retry", "redrive") else None
    return f"a record ({record.kind})" if record else None
