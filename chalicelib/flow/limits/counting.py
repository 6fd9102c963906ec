"""Count active runs in groups and pools that a definition names after their start (`core/runs/counting.py`)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.limits import names
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs import counting
from chalicelib.core.writes import PutDefinition, PutState, Replace, Write
from chalicelib.flow.limits import pools
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def of_schedule(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, workflow: Workflow) -> ScheduleState:
    """The schedule state after all unfinished runs of the schedule were counted.

    Only a run of an older version can lack a permit, and no more jobs of that version are claimed, so no run is missed.
    After a conflict the schedule state is returned as it was read. A claim expects it unchanged, so that claim fails.
    """
    if workflow.target.has_lifecycle:
        state = ports.jobs.limit_state(names.workflow_limit(schedule.workflow))
        for run_id, attempt in counting.living(state, schedule_state.schedule):
            _count(ports, run_id, attempt, schedule, workflow)
    after = replace(schedule_state, uncounted=False, rev=schedule_state.rev + 1)
    return after if ports.ledger.commit([PutState(after, schedule_state)]) is None else schedule_state


def of_workflow(ports: Ports, row: Definition) -> None:
    """Count all unfinished runs of a workflow whose definition names another pool than before."""
    workflow = Workflow.model_validate(row.document)
    known: dict[str, Schedule | None] = {}
    if workflow.target.has_lifecycle:
        for run_id, attempt in counting.living(ports.jobs.limit_state(names.workflow_limit(row.name)), None):
            run = ports.rows.get(Run, run_id, attempt)
            if run is None:
                continue
            if run.schedule not in known:
                known[run.schedule] = _definition_of(ports, run.schedule)
            schedule = known[run.schedule]
            if schedule is not None:
                _count(ports, run_id, attempt, schedule, workflow)
    ports.ledger.commit([PutDefinition(replace(row, uncounted=False), row.version)])


def _definition_of(ports: Ports, name: str) -> Schedule | None:
    """The definition of a schedule; of a deleted one, the last definition."""
    schedule_state = ports.rows.get(ScheduleState, name)
    version = ports.rows.get(Version, name, schedule_state.version) if schedule_state is not None else None
    return Schedule.model_validate(version.definition) if version is not None else None


def _count(ports: Ports, run_id: str, attempt: int, schedule: Schedule, workflow: Workflow) -> None:
    """Add the missing permits to a run and to their limits, in one transaction. A run that has ended needs none.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        run = ports.rows.get(Run, run_id, attempt)
        if run is None or states.is_terminal(run.state):
            return
        after, plan = run, list[Write]()
        for limit_name in counting.missing_groups(run, schedule):
            after, taken = counting.with_permit(after, ports.jobs.limit_state(limit_name))
            plan += taken
        pooled = pools.ask_of(ports, workflow, schedule)
        if pooled is not None and counting.lacks_pool(run, pooled[0]):
            after, in_pool = counting.with_pool(after, *pooled, ports.jobs.limit_state(pooled[0].limit_name))
            plan += in_pool
        if not plan:
            return
        if ports.ledger.commit([Replace(replace(after, rev=run.rev + 1)), *plan]) is None:
            logger.info("run counted", extra={"run": run_id, "attempt": attempt, "permits": after.permits})
            return
    raise too_many_conflicts(f"counting run {run_id}", "the next check of its schedule continues")
