"""What is lent to a job that must queue: by datasets whose data triggered it, and by urgent downstreams (W2).

It is told by the index at that moment, so nothing is stored that could grow stale; see decision 0025.
"""

from __future__ import annotations

from chalicelib.core import leaves, triggers, urgency
from chalicelib.core.leaves import PartitionTrigger, SizeTrigger
from chalicelib.core.model import Dataset, Schedule, Workflow
from chalicelib.core.rows import Job
from chalicelib.core.urgency import Lift
from chalicelib.flow import facts
from chalicelib.ports import Ports

MOST_DOWNSTREAM = 100  # workflows that are followed; who lends from farther away is not heard
PAGE = 1000


def lifted(ports: Ports, job: Job, schedule: Schedule, workflow: Workflow) -> Job:
    """The job with the highest priority that anything lends it, if that is more than its own."""
    own = urgency.priority_of(schedule, workflow)
    lifts = [*_of_datasets(ports, job, schedule), *_of_downstreams(ports, schedule.workflow)]
    return urgency.lifted(job, urgency.highest(lifts, own))


def _of_datasets(ports: Ports, job: Job, schedule: Schedule) -> list[Lift]:
    """Those of the datasets whose data has come for it."""
    sources = [leaves.source_of(leaf.trigger) for leaf in triggers.leaves(schedule.trigger) if leaf.id in job.leaves]
    names = {each.dataset for each in sources if isinstance(each, PartitionTrigger | SizeTrigger)}
    rows = [ports.catalog.definition("dataset", name) for name in sorted(names)]
    known = [(row.name, Dataset.model_validate(row.document).priority) for row in rows if row is not None]
    return [Lift(priority, f"dataset {name}") for name, priority in known if priority is not None]


def _of_downstreams(ports: Ports, workflow: str) -> list[Lift]:
    """Those of the schedules that wait for a success of this workflow, and of those that wait for theirs, and so on."""
    found: list[Lift] = []
    seen, queue = {workflow}, [workflow]
    while queue and len(seen) <= MOST_DOWNSTREAM:
        key = leaves.status_key(queue.pop(0), "COMPLETED")
        for row in ports.catalog.subscriptions(key, PAGE, None).items:
            version = ports.catalog.version(row.schedule, row.version)
            schedule = Schedule.model_validate(version.definition) if version else None
            runs = facts.workflow_of(ports, schedule.workflow) if schedule else None
            if schedule is None or runs is None:
                continue
            found.append(Lift(urgency.priority_of(schedule, runs), row.schedule))
            if schedule.workflow not in seen:
                seen.add(schedule.workflow)
                queue.append(schedule.workflow)
    return found
