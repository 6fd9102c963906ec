"""Inherited priority of queued jobs: from datasets whose data triggered them, and from urgent downstreams (W2).

The downstreams are read from the subscriptions when a job queues, so no stored priority can grow stale (decision 0025).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Millis
from chalicelib.core.jobs import priority as job_priority
from chalicelib.core.jobs.priority import InheritedPriority
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits.pools import limits_of
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription, Version
from chalicelib.core.runs import launch, queued
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.writes import Create, RemoveWaiter, Replace
from chalicelib.flow import lookup
from chalicelib.flow.limits import policies, pools, queues
from chalicelib.ports import Ports

MAX_DOWNSTREAM = 100  # schedules read for one job; the priority of downstreams beyond them is not inherited
MAX_AGED = 1_000  # waiters of each queue that are ranked again when its aging changes
MAX_RANKED = 200  # waiters of each queue that are ranked again when a schedule is put or enabled


class Inherited:
    """The priorities that jobs of one schedule inherit from its downstreams, read once for all jobs, on first use."""

    def __init__(self, ports: Ports, schedule: str) -> None:
        self._ports, self._schedule = ports, schedule
        self._by_workflow: dict[str, list[InheritedPriority]] = {}

    def to(self, workflow: str) -> list[InheritedPriority]:
        if workflow not in self._by_workflow:
            self._by_workflow[workflow] = _of_downstreams(self._ports, self._schedule, workflow)
        return self._by_workflow[workflow]


def with_inherited(
    ports: Ports, job: Job, schedule: Schedule, workflow: Workflow, inherited: Inherited | None = None
) -> Job:  # fmt: skip
    """The job with the highest priority that it inherits, if that is higher than its own."""
    own = overrides.priority_of(schedule, workflow)
    downstreams = (inherited or Inherited(ports, job.schedule)).to(schedule.workflow)
    candidates = [*_of_datasets(ports, job, schedule), *downstreams]
    return job_priority.raised(job, job_priority.highest(candidates, own))


def _of_datasets(ports: Ports, job: Job, schedule: Schedule) -> list[InheritedPriority]:
    """The priorities of the datasets whose data the job has gathered."""
    leaves = [leaf.trigger for leaf in tree.leaves(schedule.trigger) if leaf.id in job.leaves]
    names = {dataset.name for leaf in leaves for dataset in leaf.datasets()}
    rows = [ports.rows.get(Definition, "dataset", name) for name in sorted(names)]
    known = [(row.name, Dataset.model_validate(row.document).priority) for row in rows if row is not None]
    return [InheritedPriority(priority, name, "dataset") for name, priority in known if priority is not None]


def _of_downstreams(ports: Ports, starter: str, workflow: str) -> list[InheritedPriority]:
    """The priorities of all direct and indirect downstreams. The direct ones are schedules that wait for a success of
    this workflow when ``starter`` starts it. The next ones wait for a success of those, and so on."""
    found: list[InheritedPriority] = []
    followed = 0
    seen, queue = {(starter, workflow)}, [(starter, workflow)]
    while queue:
        starter, workflow = queue.pop(0)
        for row in ports.catalog.subscriptions(status_key(workflow, "COMPLETED"), MAX_DOWNSTREAM, None).items:
            if followed == MAX_DOWNSTREAM:
                return found
            followed += 1
            version = ports.rows.get(Version, row.schedule, row.version)
            schedule = Schedule.model_validate(version.definition) if version else None
            runs = lookup.workflow_of(ports, schedule.workflow) if schedule else None
            if schedule is None or runs is None or not _is_counted(row, schedule, starter, workflow):
                continue
            found.append(InheritedPriority(overrides.priority_of(schedule, runs), row.schedule))
            start = (row.schedule, schedule.workflow)
            if start not in seen:
                seen.add(start)
                queue.append(start)
    return found


def _is_counted(row: Subscription, schedule: Schedule, starter: str, workflow: str) -> bool:
    """Whether a subscription counts the runs that ``starter`` starts. Some leaves count the runs of one schedule only,
    for example those of a DAG's nodes."""
    return row.leaf == WAKE or tree.waits_for(schedule.trigger, workflow, starter, "COMPLETED")


def reprioritize(ports: Ports, name: str) -> None:
    """Rank the waiting jobs of the upstream workflows again, after a schedule was put or enabled."""
    schedule_state = ports.rows.get(ScheduleState, name)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None or schedule_state.mode not in GATHERING_MODES:
        return
    reprioritize_for(ports, [schedule])


def reprioritize_for(ports: Ports, schedules: Iterable[Schedule]) -> None:
    """The same for several schedules that gather, each upstream workflow once."""
    upstreams: dict[str, set[str | None]] = {}
    for schedule in schedules:
        for name in schedule.fresh_upstreams:
            upstreams.setdefault(name, set()).add(None)
        for upstream in tree.upstreams(schedule.trigger):
            upstreams.setdefault(upstream.workflow, set()).add(upstream.schedule)
    for upstream_name, by in sorted(upstreams.items()):
        workflow = lookup.workflow_of(ports, upstream_name)
        if workflow is not None:
            _raise_jobs_of(ports, upstream_name, workflow, by)


def _raise_jobs_of(ports: Ports, name: str, workflow: Workflow, by: Collection[str | None]) -> None:
    """Rank the waiting jobs of a workflow again, of the schedules ``by`` only, or of all if ``by`` contains None.

    A node of a DAG waits for the runs of one schedule only. Definitions and inherited priorities are read once for each
    schedule, because hundreds of its jobs may wait.
    """
    starters: dict[str, tuple[Schedule, list[InheritedPriority]] | None] = {}
    for limit_name in _queues_of(ports, name, workflow):
        for waiter in ports.jobs.head_of(limit_name, MAX_RANKED):
            starter = waiter.job_schedule
            if None not in by and starter not in by:
                continue
            if waiter.run is None and starter not in starters:
                schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, starter))
                runs_it = schedule is not None and schedule.workflow == name
                starters[starter] = (schedule, _of_downstreams(ports, starter, name)) if schedule and runs_it else None
            known = starters.get(starter) if waiter.run is None else None
            if known is not None:
                _rank_again(ports, waiter, known[0], workflow, known[1])


def _queues_of(ports: Ports, name: str, workflow: Workflow) -> list[str]:
    """The limits at which jobs of a workflow may queue: its slots, its pool, its EMR application, the start rate."""
    found = [limit_names.workflow_limit(name)]
    if workflow.pool is not None:
        pool = workflow.pool if "." in workflow.pool else f"{name.partition('.')[0]}.{workflow.pool}"
        row = pools.pool_of(ports, pool)
        found += list(limits_of(pool, row)) if row is not None else []
    return [*found, *workflow.target.queues(policies.start_rate(ports), workflow.resources)]


def _rank_again(
    ports: Ports, waiter: Waiter, schedule: Schedule, workflow: Workflow, inherited: list[InheritedPriority]
) -> None:
    """Raise the rank of a job."""
    job = ports.rows.get(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    if job is None or job.closed or job.queued_in != waiter.limit_name or job.rank != waiter.rank:
        return
    own = overrides.priority_of(schedule, workflow)
    better = job_priority.raised(job, job_priority.highest([*_of_datasets(ports, job, schedule), *inherited], own))
    rank = job_priority.rank_of(better, schedule, workflow, aging_of(ports, waiter.limit_name))
    if rank < waiter.rank:
        move(ports, waiter, replace(better, rank=rank))


def move(ports: Ports, waiter: Waiter, ranked: Job | Run) -> None:
    """Store a job or run with its new rank, and move its waiter, in one transaction. A conflict means that it was
    served."""
    moved, behind = replace(ranked, rev=ranked.rev + 1), replace(waiter, rank=str(ranked.rank))
    ports.ledger.commit([Replace(moved), RemoveWaiter(waiter), Create(behind)])


def aging_of(ports: Ports, limit_name: str) -> Millis:
    """The aging in the queue of a limit; 0 without."""
    kind, _, name = limit_names.whole(limit_name).partition(":")
    name = name.partition(":")[0]  # without the share of a pool, or what an admission is for
    if kind not in ("pool", "policy", "admission"):
        return 0
    document = pools.pool_of(ports, name) if kind == "pool" else policies.policy_of(ports, name)
    return document.aging_span if document is not None else 0


def rank_all(ports: Ports, limits: Iterable[str]) -> None:
    """Rank the first `MAX_AGED` waiters of these limits again, after the aging of their pool or policy has changed."""
    for limit_name in limits:
        aging, state = aging_of(ports, limit_name), queues.state_of(ports, limit_name)
        for waiter in queues.head_of(ports, state, MAX_AGED) if state.waiters else ():
            found = _of_aging(ports, waiter, aging)
            if found is not None and found.rank not in (None, waiter.rank):
                move(ports, waiter, found)


def _of_aging(ports: Ports, waiter: Waiter, aging: Millis) -> Job | Run | None:
    """The job or run of a waiter, with its rank for this aging; None if it does not wait there any more."""
    if waiter.run is not None:
        run = ports.rows.get(Run, *waiter.run)
        return replace(run, rank=launch.queued_rank(run, aging)) if run and queued.waiter_of(run) == waiter else None
    job = ports.rows.get(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, waiter.job_schedule))
    workflow = lookup.workflow_of(ports, schedule.workflow) if schedule is not None else None
    if job is None or job.closed or queued.waiter_of(job) != waiter or schedule is None or workflow is None:
        return None
    return replace(job, rank=job_priority.rank_of(job, schedule, workflow, aging))
