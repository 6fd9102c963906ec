"""How each constraint of a job stands at a moment: met or not, why, and when time alone would meet it (C1-C8, C14-C17).

Pure, of the job, the facts and ``now``. `core/jobs/check.py` decides by it, and ``why`` shows it: the same words. The
evaluation of each kind is in its own file of `core/constraints`.
"""

from __future__ import annotations

from chalicelib.core.constraints.constraint import Condition, Situation, externals_of
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import Instant
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.rows.job import Job


def evaluate(job: Job, facts: Facts, schedule: Schedule, now: Instant) -> tuple[Condition, ...]:
    """Each constraint of the schedule, in the order in which it names them. What measures the present (the hour, how
    often, how fresh) holds no backfill up: its jobs ask for a place among the runs at a time, for the approval of each,
    and the probe."""
    situation = Situation(
        job=job,
        workflow=schedule.workflow,
        namespace=job.schedule.partition(".")[0],
        limit_states=facts.limit_states,
        successes=facts.successes,
        now=now,
        externals=externals_of(schedule.constraints),
        answers=facts.answers,
    )
    asked = [each for each in schedule.constraints if job.backfill is None or each.for_backfill]
    return tuple(constraint.evaluate(situation) for constraint in asked)
