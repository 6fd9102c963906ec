"""Count active runs in groups and pools that a definition names after their start (`core/runs/counting.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from chalicelib.core import states
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.jobs.facts import Plan
from chalicelib.core.limits import names
from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import counting
from chalicelib.core.writes import PutDefinition, PutState, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.limits import pools
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts


def of_schedule(ports: Ports, name: str) -> None:
    """Count all unfinished runs of a schedule whose definition names a group or another pool than before.

    Only a run of an older version can lack a permit, and no more jobs of that version are claimed, so no run is missed.
    """
    settle(ports, lambda: _of_schedule(_After(ports), ports.rows.get(ScheduleState, name)))


def of_workflow(ports: Ports, name: str) -> None:
    """Count all unfinished runs of a workflow whose definition names another pool than before."""
    settle(ports, lambda: _of_workflow(_After(ports), ports.rows.get(Definition, "workflow", name)))


def missing(
    ports: Ports, schedule_state: ScheduleState | None, row: Definition | None
) -> tuple[tuple[Plan, ...], Ports]:  # fmt: skip
    """The transactions that a put has left, because it died before it had counted all runs. Each is based on those
    before it. Also the ports by which the rows are read as these transactions will leave them."""
    if not any(each is not None and each.uncounted for each in (schedule_state, row)):
        return (), ports
    after = _After(ports)
    return (*_of_schedule(after, schedule_state), *_of_workflow(after, row)), after.ports


def settle(ports: Ports, left: Callable[[], Sequence[Plan]]) -> None:
    """Commit what is left to repair, in order; after a conflict what is left then.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    conflicts = 0
    while conflicts < MAX_CONFLICTS:
        for number, plan in enumerate(left()):
            if ports.ledger.commit(plan) is not None:
                conflicts = 1 if number else conflicts + 1
                break
        else:
            return
    raise too_many_conflicts("a repair of limits", "the next check of a job of the schedule repairs the rest")


def _of_schedule(after: _After, schedule_state: ScheduleState | None) -> list[Plan]:
    if schedule_state is None or not schedule_state.uncounted:
        return []
    schedule = lookup.definition_of(after.ports, schedule_state)
    workflow = lookup.workflow_of(after.ports, schedule.workflow) if schedule is not None else None
    if schedule is None or workflow is None:
        return []
    plans = _missing(after, schedule.workflow, schedule_state.schedule, workflow, lambda _: schedule)
    counted = replace(schedule_state, uncounted=False, rev=schedule_state.rev + 1)
    return [*plans, [PutState(counted, schedule_state)]]


def _of_workflow(after: _After, row: Definition | None) -> list[Plan]:
    if row is None or not row.uncounted:
        return []

    @cache
    def schedule_of(name: str) -> Schedule | None:
        """The definition of a schedule; of a deleted one, the last definition."""
        return lookup.definition_of(after.ports, after.ports.rows.get(ScheduleState, name))

    plans = _missing(after, row.name, None, Workflow.model_validate(row.document), schedule_of)
    return [*plans, [PutDefinition(replace(row, uncounted=False), row.version)]]


def _missing(
    after: _After, name: str, only: str | None, workflow: Workflow, schedule_of: Callable[[str], Schedule | None]
) -> list[Plan]:
    """For each unfinished run of a workflow, or of one schedule ``only``, that lacks permits: the transaction that adds
    them to the run and to their limits."""
    if not workflow.target.has_lifecycle:
        return []
    found, ports = list[Plan](), after.ports
    for run_id, attempt in counting.living(ports.jobs.limit_state(names.workflow_limit(name)), only):
        run = ports.rows.get(Run, run_id, attempt)
        schedule = None if run is None or states.is_terminal(run.state) else schedule_of(run.schedule)
        if run is None or schedule is None:
            continue
        later, plan = run, list[Write]()
        for limit_name in counting.missing_groups(run, schedule):
            later, taken = counting.with_permit(later, ports.jobs.limit_state(limit_name))
            plan += taken
        pooled = pools.ask_of(ports, workflow, schedule)
        if pooled is not None and counting.lacks_pool(run, pooled[0]):
            later, taken = counting.with_pool(later, *pooled, ports.jobs.limit_state(pooled[0].limit_name))
            plan += taken
        if plan:
            found.append(after.made([Replace(replace(later, rev=run.rev + 1)), *plan]))
    return found


class _After:
    """The tables as some transactions will leave their runs, limits and definitions."""

    def __init__(self, ports: Ports) -> None:
        self._known: dict[tuple[Any, ...], Any] = {}
        over: Any = [_Over(table, self._known) for table in (ports.rows, ports.jobs)]
        self.ports = replace(ports, rows=over[0], jobs=over[1])

    def made(self, plan: Plan) -> Plan:
        """The plan. From now on its writes are read."""
        for write in plan:
            match write:
                case Replace(row=Run() as run):
                    self._known["get", Run, run.run_id, run.attempt] = run
                case PutDefinition(definition=row):
                    self._known["get", Definition, row.kind, row.name] = row
                case AcquirePermit():
                    name = write.ask.limit_name
                    self._known["limit_state", name] = write.slot_taken(self.ports.jobs.limit_state(name))
        return plan


class _Over:
    """A table some of whose rows are known, by the read that returns them."""

    def __init__(self, table: Any, known: dict[tuple[Any, ...], Any]) -> None:
        self._table, self._known = table, known

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._table, name)
        return lambda *key, **more: self._known[(name, *key)] if (name, *key) in self._known else read(*key, **more)
