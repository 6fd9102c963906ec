"""What is lent to a job that must queue: by datasets whose data triggered it, and by urgent downstreams (W2).

It is told by the index at that moment, so nothing is stored that could grow stale; see decision 0025.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs import priority as job_priority
from chalicelib.core.jobs.priority import InheritedPriority
from chalicelib.core.limits import names as limit_names
from chalicelib.core.limits.pools import limits_of
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.schedule import WAKE, Subscription
from chalicelib.core.states import GATHERING_MODES
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.writes import Create, RemoveWaiter, Replace
from chalicelib.flow import lookup
from chalicelib.flow.limits import policies, pools
from chalicelib.ports import Ports

MAX_DOWNSTREAM = 100  # schedules that are read for one job; who lends from farther away is not heard
MAX_RANKED = 200  # of each queue, when a schedule is put or enabled


class Inherited:
    """What the downstreams of a schedule lend to its jobs, read once for all of them, when it is first asked for."""

    def __init__(self, ports: Ports, schedule: str) -> None:
        self._ports, self._schedule = ports, schedule
        self._lifts: dict[str, list[InheritedPriority]] = {}

    def to(self, workflow: str) -> list[InheritedPriority]:
        if workflow not in self._lifts:
            self._lifts[workflow] = _of_downstreams(self._ports, self._schedule, workflow)
        return self._lifts[workflow]


def with_inherited(
    ports: Ports, job: Job, schedule: Schedule, workflow: Workflow, lending: Inherited | None = None
) -> Job:  # fmt: skip
    """The job with the highest priority that anything lends it, if that is more than its own."""
    own = overrides.priority_of(schedule, workflow)
    downstreams = (lending or Inherited(ports, job.schedule)).to(schedule.workflow)
    inherited_ones = [*_of_datasets(ports, job, schedule), *downstreams]
    return job_priority.raised(job, job_priority.highest(inherited_ones, own))


def _of_datasets(ports: Ports, job: Job, schedule: Schedule) -> list[InheritedPriority]:
    """Those of the datasets whose data has come for it."""
    leaves = [leaf.trigger for leaf in tree.leaves(schedule.trigger) if leaf.id in job.leaves]
    names = {each.name for leaf in leaves for each in leaf.datasets()}
    rows = [ports.catalog.definition("dataset", name) for name in sorted(names)]
    known = [(row.name, Dataset.model_validate(row.document).priority) for row in rows if row is not None]
    return [InheritedPriority(priority, f"dataset {name}") for name, priority in known if priority is not None]


def _of_downstreams(ports: Ports, starter: str, workflow: str) -> list[InheritedPriority]:
    """Those of the schedules that wait for a success of this workflow, as this schedule starts it, and of those that
    wait for theirs, and so on."""
    found: list[InheritedPriority] = []
    followed = 0
    seen, queue = {(starter, workflow)}, [(starter, workflow)]
    while queue:
        starter, workflow = queue.pop(0)
        for row in ports.catalog.subscriptions(status_key(workflow, "COMPLETED"), MAX_DOWNSTREAM, None).items:
            if followed == MAX_DOWNSTREAM:
                return found
            followed += 1
            version = ports.catalog.version(row.schedule, row.version)
            schedule = Schedule.model_validate(version.definition) if version else None
            runs = lookup.workflow_of(ports, schedule.workflow) if schedule else None
            if schedule is None or runs is None or not _waits_for(row, schedule, starter, workflow):
                continue
            found.append(InheritedPriority(overrides.priority_of(schedule, runs), row.schedule))
            start = (row.schedule, schedule.workflow)
            if start not in seen:
                seen.add(start)
                queue.append(start)
    return found


def _waits_for(row: Subscription, schedule: Schedule, starter: str, workflow: str) -> bool:
    """Whether a row of the index speaks of the runs that this schedule starts: some leaves, those of a DAG's nodes
    among them, count the runs of one schedule only."""
    if row.leaf == WAKE:
        return True
    upstreams = tree.upstreams(schedule.trigger)
    return any("COMPLETED" in each.statuses and each.counts(workflow, starter) for each in upstreams)


def reprioritize(ports: Ports, name: str) -> None:
    """A schedule was put or enabled: what waits already of the workflows that it waits for is ranked anew."""
    schedule_state = ports.catalog.schedule_state(name)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule_state is None or schedule is None or schedule_state.mode not in GATHERING_MODES:
        return
    upstreams: dict[str, set[str | None]] = {name: {None} for name in schedule.fresh_upstreams}
    for each in tree.upstreams(schedule.trigger):
        upstreams.setdefault(each.workflow, set()).add(each.schedule)
    for upstream, by in sorted(upstreams.items()):
        workflow = lookup.workflow_of(ports, upstream)
        if workflow is not None:
            _raise_jobs_of(ports, upstream, workflow, by)


def _raise_jobs_of(ports: Ports, name: str, workflow: Workflow, by: Collection[str | None]) -> None:
    """Jobs of the schedules ``by``, as a node of a DAG waits for the one before it alone; with None in it, of any.
    Whose schedules these are, and what is lent to them, is read once: hundreds of jobs may wait of each."""
    starters: dict[str, tuple[Schedule, list[InheritedPriority]] | None] = {}
    for limit_name in _queues_of(ports, name, workflow):
        for waiter in ports.jobs.head_of(limit_name, MAX_RANKED):
            starter = waiter.job_schedule
            if None not in by and starter not in by:
                continue
            if waiter.run is None and starter not in starters:
                schedule = lookup.definition_of(ports, ports.catalog.schedule_state(starter))
                ours = schedule is not None and schedule.workflow == name
                starters[starter] = (schedule, _of_downstreams(ports, starter, name)) if schedule and ours else None
            known = starters.get(starter) if waiter.run is None else None
            if known is not None:
                _rank_anew(ports, waiter, known[0], workflow, known[1])


def _queues_of(ports: Ports, name: str, workflow: Workflow) -> list[str]:
    """Where jobs of a workflow may wait: at its own slots, in its pool, at its EMR application, for the start rate."""
    found = [limit_names.workflow_limit(name)]
    if workflow.pool is not None:
        pool = workflow.pool if "." in workflow.pool else f"{name.partition('.')[0]}.{workflow.pool}"
        row = pools.pool_of(ports, pool)
        found += list(limits_of(pool, row)) if row is not None else []
    return [*found, *workflow.target.queues(policies.start_rate(ports), workflow.resources)]


def _rank_anew(
    ports: Ports, waiter: Waiter, schedule: Schedule, workflow: Workflow, inherited: list[InheritedPriority]
) -> None:
    """One transaction: the job with its rank, out of its place and into another. Who lost the race has been served."""
    job = ports.jobs.job(waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    if job is None or job.closed or job.queued_in != waiter.limit_name or job.rank != waiter.rank:
        return
    own = overrides.priority_of(schedule, workflow)
    better = job_priority.raised(job, job_priority.highest([*_of_datasets(ports, job, schedule), *inherited], own))
    rank = job_priority.rank_of(better, schedule, workflow)
    if rank < waiter.rank:
        later = replace(better, rank=rank, rev=job.rev + 1)
        ports.ledger.commit([Replace(later), RemoveWaiter(waiter), Create(replace(waiter, rank=rank))])
