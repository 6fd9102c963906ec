"""Count active runs in groups and pools that a definition names after their start (`core/runs/counting.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

from chalicelib.core import states
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs.facts import Plan
from chalicelib.core.limits import names
from chalicelib.core.limits.slots import Slots
from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import counting
from chalicelib.core.writes import PutDefinition, PutState, Replace, Write
from chalicelib.flow.limits import pools
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def of_schedule(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, workflow: Workflow) -> ScheduleState:
    """The schedule state after all unfinished runs of the schedule were counted.

    Only a run of an older version can lack a permit, and no more jobs of that version are claimed, so no run is missed.
    After a conflict the schedule state is returned as it was read. A claim expects it unchanged, so that claim fails.
    """
    _count(ports, lambda: _missing_of_schedule(ports, schedule_state.schedule, schedule, workflow))
    done = _counted(schedule_state)
    return done.schedule_state if ports.ledger.commit([done]) is None else schedule_state


def of_workflow(ports: Ports, row: Definition) -> None:
    """Count all unfinished runs of a workflow whose definition names another pool than before."""
    _count(ports, lambda: _missing_of_workflow(ports, row))
    ports.ledger.commit([_counted_definition(row)])


def missing(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, workflow: Workflow, row: Definition | None
) -> tuple[tuple[Plan, ...], Ports]:
    """The transactions that a put has left, because it died before it had counted all runs. Each is based on those
    before it. Also the ports by which the rows are read as these transactions will leave them."""
    plans, after = list[Plan](), _After(ports)
    if schedule_state.uncounted:
        plans += map(after.made, _missing_of_schedule(after.ports, schedule_state.schedule, schedule, workflow))
        plans.append([_counted(schedule_state)])
    if row is not None and row.uncounted:
        plans += map(after.made, _missing_of_workflow(after.ports, row))
        plans.append([_counted_definition(row)])
    return tuple(plans), after.ports if plans else ports


def _counted(schedule_state: ScheduleState) -> PutState:
    return PutState(replace(schedule_state, uncounted=False, rev=schedule_state.rev + 1), schedule_state)


def _counted_definition(row: Definition) -> PutDefinition:
    return PutDefinition(replace(row, uncounted=False), row.version)


def _count(ports: Ports, missing: Callable[[], Iterator[Plan]]) -> None:
    """Commit what is missing, in order; after a conflict what is missing then.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    conflicts = 0
    while conflicts < MAX_CONFLICTS:
        for plan in missing():
            if ports.ledger.commit(plan) is not None:
                conflicts += 1
                break
            conflicts = 0
        else:
            return
    raise too_many_conflicts("counting active runs", "the next check of a job of their schedule continues")


def _missing_of_schedule(ports: Ports, name: str, schedule: Schedule, workflow: Workflow) -> Iterator[Plan]:
    return _missing(ports, schedule.workflow, name, workflow, lambda _: schedule)


def _missing_of_workflow(ports: Ports, row: Definition) -> Iterator[Plan]:
    return _missing(ports, row.name, None, Workflow.model_validate(row.document), cache(partial(_last, ports)))


def _last(ports: Ports, name: str) -> Schedule | None:
    """The definition of a schedule; of a deleted one, the last definition."""
    schedule_state = ports.catalog.schedule_state(name)
    version = ports.catalog.version(name, schedule_state.version) if schedule_state is not None else None
    return Schedule.model_validate(version.definition) if version is not None else None


def _missing(
    ports: Ports, name: str, only: str | None, workflow: Workflow, schedule_of: Callable[[str], Schedule | None]
) -> Iterator[Plan]:
    """For each unfinished run of a workflow, or of one schedule ``only``, that lacks permits: the transaction that adds
    them to the run and to their limits. A run and its limits are read when its transaction is asked for."""
    if not workflow.target.has_lifecycle:
        return
    for run_id, attempt in counting.living(ports.jobs.limit_state(names.workflow_limit(name)), only):
        run = ports.runs.run(run_id, attempt)
        schedule = None if run is None or states.is_terminal(run.state) else schedule_of(run.schedule)
        if run is None or schedule is None:
            continue
        after, plan = run, list[Write]()
        for limit_name in counting.missing_groups(run, schedule):
            after, taken = counting.with_permit(after, ports.jobs.limit_state(limit_name))
            plan += taken
        pooled = pools.ask_of(ports, workflow, schedule)
        if pooled is not None and counting.lacks_pool(run, pooled[0]):
            after, taken = counting.with_pool(after, *pooled, ports.jobs.limit_state(pooled[0].limit_name))
            plan += taken
        if plan:
            yield [Replace(replace(after, rev=run.rev + 1)), *plan]


class _After:
    """The tables as some transactions will leave their runs, limits and definitions."""

    def __init__(self, ports: Ports) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}
        over: Any = [_Over(table, self._known) for table in (ports.catalog, ports.jobs, ports.runs)]
        self.ports = replace(ports, catalog=over[0], jobs=over[1], runs=over[2])

    def made(self, plan: Plan) -> Plan:
        """The plan. From now on its writes are read."""
        for write in plan:
            match write:
                case Replace(row=Run() as run):
                    self._known["run", run.run_id, run.attempt] = run
                case PutDefinition(definition=row):
                    self._known["definition", row.kind, row.name] = row
                case AcquirePermit(ask=Slots() as ask):
                    state = self.ports.jobs.limit_state(ask.limit_name)
                    state = replace(state, active=state.active + ask.units)
                    if write.begins is not None:
                        state = replace(state, starts={**state.starts, write.begins: write.now}, rev=state.rev + 1)
                    self._known["limit_state", ask.limit_name] = state
        return plan


class _Over:
    """A table some of whose rows are known, by the read that returns them."""

    def __init__(self, table: Any, known: dict[tuple[Any, ...], Any]) -> None:
        self._table, self._known = table, known

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._table, name)
        return lambda *key, **more: self._known[(name, *key)] if (name, *key) in self._known else read(*key, **more)
