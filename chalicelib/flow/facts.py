"""Read the facts on which the decision about a job depends, all with strong reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.dags import elements, rounds
from chalicelib.core.definitions import foreign
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.foreign import UsedGrants
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.fires import continued
from chalicelib.core.instants import Instant, Millis, duration
from chalicelib.core.jobs import check, claim
from chalicelib.core.jobs.facts import Facts, Plan
from chalicelib.core.jobs.permits import is_tracked
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.writes import NewEdition
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import ExpectDefinition
from chalicelib.flow import fire_events, grants, lookup, period_jobs
from chalicelib.flow.limits import counting, pools
from chalicelib.flow.limits.policies import policy_of, start_rate
from chalicelib.ports import Ports

T = TypeVar("T")


class Parsed:
    """The documents that one batch has parsed, and the limits and newest partitions that it has read. So many jobs of
    one schedule cost one read and one parsing."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Any] = {}
        self._grants: grants.Rows = {}

    def _once(self, key: tuple[object, ...], read: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = read()
        found: T = self._known[key]
        return found

    def schedule(self, ports: Ports, schedule_state: ScheduleState | None) -> Schedule | None:
        if schedule_state is None:
            return None
        key = ("schedule", schedule_state.schedule, schedule_state.version)
        return self._once(key, lambda: lookup.definition_of(ports, schedule_state))

    def workflow(self, ports: Ports, name: str) -> tuple[Workflow | None, Definition | None]:
        """A workflow and its stored definition. The workflow of a DAG's graph has no stored definition."""
        if ids.is_dag_graph(name):
            return rounds.begins(), None
        return self._once(("workflow", name), lambda: _workflow(ports.rows.get(Definition, "workflow", name)))

    def policy(self, ports: Ports, name: str) -> Policy | None:
        return self._once(("policy", name), lambda: policy_of(ports, name))

    def limit_state(self, ports: Ports, name: str) -> LimitState:
        return self._once(("limit", name), lambda: ports.jobs.limit_state(name))

    def newest(self, ports: Ports, dataset: str) -> NewestPartition | None:
        return self._once(("newest", dataset), lambda: ports.rows.get(NewestPartition, dataset))

    def fresh(self, ports: Ports, dataset: str) -> Millis | None:
        """The span ``fresh`` of a dataset; None if it has none."""
        row = self._once(("dataset", dataset), lambda: ports.rows.get(Definition, "dataset", dataset))
        span = Dataset.model_validate(row.document).fresh if row is not None else None
        return duration(span) if span is not None else None

    def granted(self, ports: Ports, job: Job, schedule: Schedule, workflow: Workflow) -> UsedGrants:
        """How the grants stand for what a schedule uses of other namespaces. A backfill reads the partitions of a
        period at its claim; the trigger's own job had the grants when they came."""
        uses = foreign.of_claim(job.schedule, schedule, workflow)
        if period_jobs.is_backfilled(job, schedule):
            uses = tuple(dict.fromkeys((*uses, *foreign.of_schedule(job.schedule, schedule))))
        return grants.used_of(ports, uses, self._grants)


def _workflow(row: Definition | None) -> tuple[Workflow | None, Definition | None]:
    return (Workflow.model_validate(row.document) if row is not None else None), row


def read(ports: Ports, job: Job, parsed: Parsed | None = None) -> Facts:
    """The present facts about one job. The schedule state is read first, so all other facts are at least as new. Writes
    nothing: what has to be repaired first is among the facts."""
    parsed = parsed or Parsed()
    schedule_state = ports.rows.get(ScheduleState, job.schedule)
    schedule = parsed.schedule(ports, schedule_state)
    workflow, row = parsed.workflow(ports, schedule.workflow) if schedule else (None, None)
    if schedule is not None and workflow is not None and schedule.each is not None:
        schedule, workflow = elements.seen_by(job, schedule, workflow)
    repairs, ports = counting.missing(ports, schedule_state, row)
    known = Facts(
        schedule_state=schedule_state,
        schedule=schedule,
        workflow=workflow,
        counted=row is not None and row.counted,
        workflow_row=row,
        start_rate=start_rate(ports),
        lineage=ports.settings.lineage,
        gathering=_waiting(ports, job, schedule_state, schedule, workflow),
        already=already(ports, job, schedule_state),
        origin=_origin(ports, job),
        backfill=ports.rows.get(Backfill, job.schedule, job.backfill) if job.backfill is not None else None,
    )
    if schedule is None or workflow is None:
        return known
    pool, pool_row = pools.ask_of(ports, workflow, schedule) or (None, None)
    known = replace(
        known,
        granted=parsed.granted(ports, job, schedule, workflow),
        other=period_jobs.other_work(ports, job, schedule),
        policy=parsed.policy(ports, schedule.policy) if schedule.policy is not None else None,
        pool=pool,
        pool_row=pool_row,
    )
    states = _limits(ports, job, known, schedule, workflow, parsed)
    own = states.get(names.workflow_limit(schedule.workflow))
    if own is not None and row is not None:
        repairs += _new_edition(ports, own, row)
        # A claim expects the edition that was read first, so it fails if the workflow was replaced since.
        states[own.limit_name] = replace(own, edition=row.edition)
    return replace(
        known,
        limit_states=states,
        successes=_successes(ports, schedule, parsed),
        newest={name: parsed.newest(ports, name) for name in schedule.constraint_datasets},
        fresh={name: parsed.fresh(ports, name) for name in schedule.datasets_with_fresh},
        repairs=repairs,
    )


def _new_edition(ports: Ports, own: LimitState, read: Definition) -> tuple[Plan, ...]:
    """The transaction that gives the limit of a workflow the edition of its definition; none if it has that edition.
    Both rows change in one transaction, so they differ only after a restore from backups."""
    current = ports.rows.get(Definition, "workflow", read.name) if own.edition != read.edition else None
    if current is None or current.edition == own.edition:
        return ()
    return ([NewEdition(own.limit_name, current.edition), ExpectDefinition(current)],)


def _origin(ports: Ports, job: Job) -> Run | None:
    attempts = lookup.attempts(ports, job.rerun_of) if job.rerun_of is not None else ()
    return attempts[-1] if attempts else None


def _waiting(
    ports: Ports,
    job: Job,
    schedule_state: ScheduleState | None,
    schedule: Schedule | None,
    workflow: Workflow | None,
) -> Job | None:
    """The waiting job that a prepared fire would join, or the one that it has already become (C11)."""
    if schedule_state is None or schedule is None or not check.is_prepared(job) or job.is_bundle:
        return None
    waits, *detached = claim.keys_of_copy(job, schedule, schedule_state, ports.clock.now(), workflow)
    for sort_key in detached:
        moved = ports.rows.get(Job, job.schedule, job.generation, sort_key)
        if moved is not None and moved.job_id == job.job_id:
            return moved
    return ports.rows.get(Job, job.schedule, job.generation, waits)


def _limits(
    ports: Ports, job: Job, known: Facts, schedule: Schedule, workflow: Workflow, parsed: Parsed
) -> dict[str, LimitState]:
    """The limits of a job's permit requests. The workflow's own limit is read first, because it names the rates in
    which every start is counted."""
    tracked = known.counted or is_tracked(schedule, workflow) or bool(schedule.constraints)
    if not tracked and known.policy is None:
        return {}
    own = names.workflow_limit(schedule.workflow)
    states = {own: parsed.limit_state(ports, own)} if tracked else {}
    asks = replace(known, limit_states=states).asks(job.schedule.partition(".")[0])
    named = dict.fromkeys((*(ask.limit_name for ask in permits.with_fallbacks(asks)), *claim.admissions_of(job)))
    states |= {limit_name: parsed.limit_state(ports, limit_name) for limit_name in named if limit_name != own}
    return states | permits.with_known_starts(asks, states, ids.holder_of(job.job_id, job.attempt))


def _successes(ports: Ports, schedule: Schedule, parsed: Parsed) -> dict[str, Instant | None]:
    limits = {name: names.workflow_limit(name) for name in schedule.fresh_upstreams}
    return {name: parsed.limit_state(ports, limit_name).last_success_at for name, limit_name in limits.items()}


def already(ports: Ports, job: Job, schedule_state: ScheduleState | None = None) -> str | None:
    """The run or record that this job has become, in words, or None.

    Every job but a gathering one can be written again after that, by a repeated step. A fire that is due while an
    update is committed may have run in the generation before it.
    """
    if job.traits.gathers or job.is_bundle:  # a bundle is written once, and its run is that of the events it had
        return None
    if ports.rows.get(Run, job.job_id, job.attempt) is not None:
        return f"run {job.job_id}"
    if job.traits.timed and (run := _ran_before(ports, job, schedule_state)) is not None:
        return f"run {run}"
    if fire_events.may_be_in_bundle(job) and (bundle := fire_events.bundle_instead(ports, job)) is not None:
        return f"a place in {bundle}"
    record = ports.rows.get(Record, job.job_id) if job.traits.leaves_record else None
    return f"a record ({record.kind})" if record else None


def _ran_before(ports: Ports, job: Job, schedule_state: ScheduleState | None) -> str | None:
    """The run of the same fire in the former generation, whose trigger goes on in this one; None if there is none."""
    same = schedule_state is not None and schedule_state.generation == job.generation
    before = continued.double_of(job, schedule_state) if schedule_state is not None and same else None
    if before is None:
        return None
    found = ports.rows.get(Run, before.job_id, before.attempt)
    found = found or fire_events.run_of_fire(ports, before)
    return found.run_id if found is not None else None
