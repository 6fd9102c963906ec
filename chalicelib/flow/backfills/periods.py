"""Reads what became of the periods of a schedule, and selects those that a backfill runs (L23).

The jobs are read before the runs: a job that is claimed meanwhile has a run then. The list of runs is read from an
index, which may lack what was claimed a moment ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chalicelib.core import ids
from chalicelib.core.backfills import periods
from chalicelib.core.backfills.periods import MISSING, PeriodStatus, Values
from chalicelib.core.dags.status import WELL, NodeStatus
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.events.periods import period_of
from chalicelib.core.instants import DAY, Instant, iso, parse_instant
from chalicelib.core.rows.backfill import BackfillOnly
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import is_terminal
from chalicelib.core.why import NONE, joined, plain
from chalicelib.flow import dag_states, lookup
from chalicelib.flow.backfills.plan import Entries, Plan
from chalicelib.ports import Ports

MAX_ATTEMPTS = 10_000  # of a schedule that one request reads: 100 calls
MAX_DAG_RUNS = 500  # whose nodes a backfill reads, and
TOGETHER = 25  # at a time: each may have a hundred nodes


@dataclass(frozen=True, slots=True)
class Known:
    """What became of the periods of a schedule. Runs that were claimed before ``complete_from`` were not read."""

    statuses: Mapping[Values, PeriodStatus]
    complete_from: Instant

    def of(self, period: Values | None) -> PeriodStatus:
        return self.statuses.get(period, MISSING) if period is not None else MISSING


def known(ports: Ports, schedule_state: ScheduleState, schedule: Schedule, since: Instant = 0) -> Known:
    """What became of the periods of a schedule, by its newest `MAX_ATTEMPTS` attempts from ``since`` on."""
    name = schedule_state.schedule
    jobs = tuple(lookup.every(partial(ports.jobs.jobs, name, schedule_state.generation)))
    planned = planned_of(ports, name, schedule.keys)
    # Clocks of other Lambdas may be ahead.
    attempts = ports.runs.attempts_between(name, since, ports.clock.now() + DAY, MAX_ATTEMPTS + 1)
    cut = len(attempts) > MAX_ATTEMPTS
    complete_from = attempts[-1].claimed_at + 1 if cut else since
    return Known(periods.statuses(jobs, attempts, planned, schedule.keys), complete_from)


def planned_of(ports: Ports, name: str, by: Values) -> dict[Values, str]:
    """The periods that backfills of a schedule have yet to run, each with a backfill."""
    found: dict[Values, str] = {}
    for row in ports.jobs.backfills(name):
        left = periods.entries_left(row) if row.run is None else []
        entries = Entries(ports, row)
        for number in left:
            period = periods.period_of_entry(entries[number], row.keys, by)
            if period is not None:
                found[period] = row.id
    return found


def of_dag_runs(ports: Ports, statuses: Sequence[PeriodStatus]) -> list[PeriodStatus]:
    """The statuses of the periods of a DAG. Its start succeeds when the DAG run has begun. So the newest DAG run
    decides what became of such a period, also if a backfill waits for its end."""
    begun = [(each.runs[0], each.attempts) for each in statuses if _may_have_begun(each)]
    chunks = (begun[at : at + TOGETHER] for at in range(0, len(begun), TOGETHER))
    states = (each for chunk in chunks for each in dag_states.states_of(ports, ports.runs.several(chunk)))
    found = {run.run_id: (run, _of_dag_run(run, dag, nodes)) for run, dag, _, nodes in states}

    def after(status: PeriodStatus) -> PeriodStatus:
        run, changed = found.get(status.runs[0], (None, {})) if _may_have_begun(status) else (None, {})
        return replace(status, **changed) if run is not None and _is_of(run, status) else status

    return list(map(after, statuses))


def _may_have_begun(status: PeriodStatus) -> bool:
    """Whether the newest run of a period may be one that has begun a DAG run: no job waits beside it. A DAG run that
    failed may have been run again since."""
    over = status.state in ("succeeded", "failed")
    return bool(status.runs) and (over or (status.state == "waiting" and status.job is None))


def _is_of(run: Run, status: PeriodStatus) -> bool:
    """Whether the start of a DAG decides the status of its period: none is planned, or it is that of the backfill."""
    planned = periods.planned_by(run.backfill) if run.backfill is not None else None
    over = status.state in ("succeeded", "failed")
    return is_terminal(run.state) and dag_states.has_begun(run) and (over or status.why == planned)


def _of_dag_run(run: Run, dag: Dag, nodes: Mapping[str, NodeStatus]) -> dict[str, Any]:
    """What the newest DAG run of a period, which ``run`` has begun, says of this period."""
    state = dag_states.state_of(run, dag, nodes)
    if state == "RUNNING":
        return {"state": "running", "at": run.claimed_at}
    lost = [plain(f"{name} is {node.state}: ", node.why) for name, node in nodes.items() if node.state not in WELL]
    failed = {"state": "failed", "why": joined(lost)} if state == "FAILED" else {"state": "succeeded", "why": NONE}
    return {"at": dag_states.ended_at(run, nodes), **failed}


def _by_dag_runs(ports: Ports, now: Mapping[str, PeriodStatus], only: BackfillOnly) -> dict[str, PeriodStatus]:
    """What became of the entries of a plan of a DAG. Raises ``invalid`` for more than `MAX_DAG_RUNS`. A backfill of
    ``all`` needs not know it: then it goes by the starts."""
    begun = {entry: status for entry, status in now.items() if _may_have_begun(status)}
    if len(begun) > MAX_DAG_RUNS:
        if only == "all":
            return dict(now)
        hint = "start several backfills, one after another"
        raise invalid("only", f"a range with at most {MAX_DAG_RUNS} runs of the DAG", len(begun), hint)
    return {**now, **dict(zip(begun, of_dag_runs(ports, list(begun.values())), strict=True))}


def selected(
    ports: Ports, schedule_state: ScheduleState, schedule: Schedule, plan: Plan, only: BackfillOnly
) -> Plan:  # fmt: skip
    """The part of a plan that a backfill runs: the missing, the failed, or all entries, without those in flight.
    Of the periods of a schedule with ``per``, those that lack a partition are left out, unless they were named. One
    with any job is left alone, also with one that waits for partitions, because a period has one job at a time. Raises
    ``invalid`` if the runs of the schedule do not say what became of an entry."""
    if only != "all" and plan.dataset is not None and not schedule.by:
        hint = f"add by: [{', '.join(plan.keys)}] to the schedule, or leave out only"
        raise invalid("only", "a schedule with by, whose runs name their partitions", only, hint)
    begins = _begins(ports, plan)
    since = max(0, min(begins.values()) - DAY) if not plan.keys else 0
    seen = known(ports, schedule_state, schedule, since)
    now = {entry: seen.of(periods.period_of_entry(entry, plan.keys, schedule.keys)) for entry in plan.entries}
    if only != "all":
        _require_complete(now, begins, seen.complete_from)
    if ids.is_dag_graph(schedule.workflow):
        now = _by_dag_runs(ports, now, only)
    alone = {
        entry: None for entry, status in now.items() if status.in_flight or (plan.is_of_periods and status.gathers)
    }
    wanted = [entry for entry, status in now.items() if entry not in alone and periods.chosen(only, status)]
    left_out = {entry: None for entry in wanted if plan.is_of_periods and plan.whole[entry].lacks and not plan.named}
    return replace(
        plan,
        entries=tuple(entry for entry in wanted if entry not in left_out),
        now=now,
        in_flight=tuple(alone),
        incomplete=tuple(left_out),
    )


def _begins(ports: Ports, plan: Plan) -> dict[str, Instant]:
    """When each entry of a plan begins: its instant, or the start of its period. 0 if the partition is no period."""
    if plan.is_of_periods:
        return {entry: whole.begins for entry, whole in plan.whole.items()}
    if plan.dataset is None:
        return {entry: parse_instant(entry) for entry in plan.entries}
    stored = ports.rows.get(Definition, "dataset", plan.dataset)
    dataset = Dataset.model_validate(stored.document) if stored is not None else None
    found: dict[str, Instant] = {}
    for entry in plan.entries:
        values = periods.period_of_entry(entry, plan.keys, ()) or ()
        period = period_of(dataset, dict(zip(plan.keys, values, strict=True))) if dataset is not None else None
        found[entry] = period.start if period is not None else 0
    return found


def _require_complete(now: Mapping[str, PeriodStatus], begins: Mapping[str, Instant], complete_from: Instant) -> None:
    """Raise ``invalid`` if an entry seems missing, but older runs that were not read may be for it."""
    doubtful = [entry for entry, status in now.items() if status == MISSING and begins[entry] < complete_from]
    if complete_from and doubtful:
        expected = f"entries that begin after {iso(complete_from)}, from when on the {MAX_ATTEMPTS} newest runs are"
        raise invalid("only", expected, doubtful[0], "begin the range later, or leave out only")
