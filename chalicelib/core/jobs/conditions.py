"""The condition of each constraint of a job at an instant: met or not, why, and when time alone would meet it (C1-C17).

The result depends only on the job, the facts and ``now``. `core/jobs/check.py` decides by it, and ``why`` shows it.
`core/constraints` has the evaluation of each kind of constraint.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.constraints.constraint import Condition, Situation, externals_of, keyed
from chalicelib.core.definitions import overrides
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job


def evaluate(job: Job, facts: Facts, schedule: Schedule, now: Instant) -> tuple[Condition, ...]:
    """The condition of each constraint of the schedule, in their order, and of the approval of its workflow. For a job
    of a backfill only those that apply to backfills: concurrency, approval and probe. The others measure the present:
    the hour, a rate, or how fresh data is.
    """
    situation = Situation(
        job=job,
        workflow=schedule.workflow,
        namespace=job.schedule.partition(".")[0],
        limit_states=facts.limit_states,
        successes=facts.successes,
        newest=facts.newest,
        now=now,
        externals=externals_of(schedule.constraints),
        answers=facts.answers,
        content=overrides.content_of(schedule, facts.workflow) if job.approvals else "",
    )
    constraints = overrides.constraints_of(schedule, facts.workflow)
    asked = [(key, each) for key, each in keyed(constraints).items() if job.backfill is None or each.for_backfill]
    return tuple(replace(constraint.evaluate(situation), key=key) for key, constraint in asked)
