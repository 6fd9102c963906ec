"""The last run of each workflow for which a trigger still waits, if it ended in another status than the trigger counts.

A join of two workflows never starts if one of them has failed. The event of that failure does not reach the join, so
the explanation of the join reads the runs of the workflow.
"""

from __future__ import annotations

from collections.abc import Mapping

from chalicelib.core.dags import rounds
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events.build import reached
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.run import Run
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Upstream
from chalicelib.core.why import Why, joined, mention
from chalicelib.flow import lookup
from chalicelib.ports import Ports

ENDED = ("FAILED", "CANCELLED", "ABORTED")


def of_job(ports: Ports, job: Job, schedule: Schedule, now: Instant) -> list[Why]:
    """A phrase for each workflow whose run for the job's correlation values ended in a status that does not count."""
    return _phrases(ports, job.schedule, schedule, job.leaves, job.correlation, now)


def of_schedule(ports: Ports, name: str, schedule: Schedule, now: Instant) -> list[Why]:
    """The same for a schedule that has no waiting job: about the last run of each workflow."""
    return _phrases(ports, name, schedule, {}, None, now)


def _phrases(
    ports: Ports,
    name: str,
    schedule: Schedule,
    progress: Mapping[str, Progress],
    values: Mapping[str, str] | None,
    now: Instant,
) -> list[Why]:
    namespace = name.partition(".")[0]
    found: dict[Why, None] = {}
    for leaf in tree.leaves(schedule.trigger):
        if leaf.trigger.evaluate(progress.get(leaf.id), now).met:
            continue
        for upstream in leaf.trigger.upstreams():
            # A signer who may read this schedule may have no right in the namespace of the run.
            last = next(lookup.runs_for(ports, upstream, values), None)
            if last is not None and _has_missed(last, upstream) and last.schedule.startswith(f"{namespace}."):
                found[_phrase(last, values)] = None
    return list(found)


def _has_missed(run: Run, upstream: Upstream) -> bool:
    """Whether a run has ended without a status that counts."""
    return run.state in ENDED and not set(reached(run)) & set(upstream.statuses)


def _phrase(run: Run, values: Mapping[str, str] | None) -> Why:
    own = rounds.without(values)
    of = f" for {' '.join(f'{key}={value}' for key, value in own.items())}" if own else ""
    at = run.ended_at if run.ended_at is not None else run.state_at
    when = f" at {iso(at)}" if at is not None else ""
    said = joined([f"the last run of {run.workflow}{of} {run.state}{when}", run.reason], ": ")
    return said.then(" (run ", mention("run", run.run_id), ")")
