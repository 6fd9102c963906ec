"""After a carrying update or a resume, check the waiting jobs, runs and backfills of a schedule by its new definition.

The schedule state is the outbox. It stays in the wake index until all jobs were checked, so a crash repeats this step.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits import names
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import launch as core_launch
from chalicelib.flow import lookup, priority, wake
from chalicelib.flow.backfills import backfill
from chalicelib.flow.limits import policies
from chalicelib.flow.priority import MAX_RANKED
from chalicelib.flow.runs import launch
from chalicelib.ports import Ports


def refresh_all(ports: Ports, schedule: str, soon: bool = False) -> None:
    """Check all waiting runs and jobs of a schedule, and its backfills, if its state has a ``wake_at``. Idempotent.
    ``soon``: a user waits, so of many jobs all but the first are left to a hint."""
    schedule_state = ports.rows.get(ScheduleState, schedule)
    if schedule_state is None or schedule_state.wake_at is None:
        return
    backfill.carried(ports, schedule_state)
    for limit_name in _paces(ports, schedule_state):
        for waiter in ports.jobs.head_of(limit_name, MAX_RANKED):
            if (waiter.job_schedule, waiter.job_generation) == (schedule_state.schedule, schedule_state.generation):
                _rank_run(ports, waiter, schedule_state)
    wake.all_of(ports, schedule) if soon else wake.rest_of(ports, schedule)


def _paces(ports: Ports, schedule_state: ScheduleState) -> list[str]:
    """The queues in which a claimed run of a schedule may wait for its next start call."""
    schedule = lookup.definition_of(ports, schedule_state)
    workflow = lookup.workflow_of(ports, schedule.workflow) if schedule else None
    if schedule is None or workflow is None:
        return []
    asks = asks_of(schedule, workflow, policies.start_rate(ports), schedule_state.schedule.partition(".")[0])
    policy = [names.policy_limit(schedule.policy)] if schedule.policy is not None else []
    return [*(ask.limit_name for ask in asks if names.is_pace(ask.limit_name)), *policy]


def _rank_run(ports: Ports, waiter: Waiter, schedule_state: ScheduleState) -> None:
    """Update a queued run and its position in the queue, in one transaction.

    A run that has been served since, or that may have started, does not change.
    """
    run = ports.rows.get(Run, *waiter.run) if waiter.run is not None else None
    if run is None or run.queued_in != waiter.limit_name or run.rank != waiter.rank:
        return
    later = launch.as_updated(ports, run, schedule_state)
    rank = core_launch.queued_rank(later, priority.aging_of(ports, waiter.limit_name))
    if rank != run.rank:
        priority.move(ports, waiter, replace(later, rank=rank))
