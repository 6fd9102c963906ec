"""Which period of its schedule each job and run is for, and what became of each period (L23).

A period of a schedule is what one of its jobs is for. With ``per`` or ``by`` it is the values of the keys of their
correlation, such as ``("2026-03-01", "07")``. Of a time trigger it is the nominal instant of a fire,
``("2026-03-01T02:00:00.000Z",)``. Of a backfill of partitions without ``by`` it is the values of the partition. A job
that gathers without ``per`` and ``by`` is for no period: nothing says which of its partitions it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from chalicelib.core import states
from chalicelib.core.backfills.backfill import values_of
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.period import PeriodRule
from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.why import NONE, Why

PeriodState = Literal["missing", "waiting", "running", "succeeded", "failed"]
Values = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PeriodStatus:
    """What became of a period. ``why`` says what a waiting one waits for, and why a failed one failed. ``job`` is the
    id of the job that waits. ``runs`` are the ids of its runs, newest first, without those that were aborted before
    their start call. ``attempts`` counts those of the newest run. ``at`` is since when it waits or runs, or when it
    ended. ``gathers``: its job still waits for events."""

    state: PeriodState
    why: Why = NONE
    job: str | None = None
    runs: Values = ()
    attempts: int = 0
    at: Instant | None = None
    gathers: bool = False

    @property
    def in_flight(self) -> bool:
        """Whether it runs, or will run. A job that waits for events may never run."""
        return self.state in ("waiting", "running") and not self.gathers

    @property
    def revision(self) -> int:
        """How many runs the period has had; a repeated run of a period is its next revision."""
        return len(self.runs)


MISSING = PeriodStatus("missing")


def period_of(work: Job | Run, by: Values) -> Values | None:
    """The period that a job or a run is for. None if it names none."""
    if by:
        values = work.correlation or {}
        return tuple(values[key] for key in by) if all(key in values for key in by) else None
    if work.event is not None and work.event.partition:
        return tuple(work.event.partition.values())
    at = _nominal(work)
    return (iso(at),) if at is not None else None


def _nominal(work: Job | Run) -> Instant | None:
    if work.event is not None:
        return work.event.instant if work.event.kind == "time" else None
    if not work.traits.timed:
        return None
    return work.nominal_at if work.nominal_at is not None else work.due_at


def period_of_entry(entry: str, keys: Values, by: Values) -> Values | None:
    """The period of an entry of a plan, whose dataset has these keys; None if the entry lacks a key of ``by``."""
    values = values_of(entry) if keys else (entry,)
    if not by:
        return values
    named = dict(zip(keys, values, strict=True))
    return tuple(named[key] for key in by) if all(key in named for key in by) else None


def entries_left(row: Backfill) -> list[int]:
    """The numbers of the entries of a backfill that are active or still to come."""
    ahead = range(row.next, row.total) if row.state == "RUNNING" else range(0)
    return sorted({*map(int, row.live), *ahead})


@dataclass(slots=True)
class _Work:
    """The work for one period. ``attempts`` has the newest attempt of each run, newest run first."""

    attempts: dict[str, Run] = field(default_factory=dict)
    job: Job | None = None
    backfill: str | None = None


def statuses(
    jobs: Iterable[Job], attempts: Iterable[Run], planned: Mapping[Values, str], by: Values
) -> dict[Values, PeriodStatus]:
    """What became of each period for which there is work. ``jobs`` are those that wait, ``attempts`` those of runs,
    newest first. ``planned`` has the backfill that will run a period, or has a job for it.

    A period with an active run is running, another with a job or in a plan is waiting. Otherwise its newest run
    decides. Of a fire with several events, the newest run of each event counts, and one failure is that of all."""
    found = {period: _Work(runs) for period, runs in by_period(attempts, by).items()}
    for job in jobs:
        period = period_of(job, by)
        if period is not None and not job.closed:
            work = found.setdefault(period, _Work())
            work.job = work.job or job
    for period, backfill in planned.items():
        found.setdefault(period, _Work()).backfill = backfill
    return {period: _status(work) for period, work in found.items()}


def by_period(attempts: Iterable[Run], by: Values) -> dict[Values, dict[str, Run]]:
    """The newest attempt of each run, by period, newest run first. ``attempts`` are in this order, too. Attempts that
    were aborted are left out; if such a one was to repeat another, that one has failed."""
    found: dict[Values, dict[str, Run]] = {}
    aborted: set[str] = set()
    for run in attempts:
        period = period_of(run, by)
        if run.state == "ABORTED":
            aborted.add(run.run_id)
        elif period is not None:
            last = run.state == "RETRYING" and run.run_id in aborted
            found.setdefault(period, {}).setdefault(run.run_id, replace(run, state="FAILED") if last else run)
    return found


def is_active(run: Run) -> bool:
    """Whether an attempt runs, or another one will follow it."""
    return run.state == "RETRYING" or not states.is_terminal(run.state)


def of_events(newest: Iterable[Run]) -> list[Run]:
    """Of the runs of a period, newest first, those that decide: of a fire with several events, the newest of each."""
    found: dict[int, Run] = {}
    for run in newest:
        found.setdefault(event_of(run), run)
    return list(found.values())


def event_of(run: Run) -> int:
    """The number of the event of its fire that a run is for; 0 if the fire has one event."""
    return run.spread[0] if run.spread else 0


def planned_by(backfill: str) -> Why:
    """What a period waits for that a backfill has yet to run."""
    return Why.of("backfill", f"backfill {backfill}")


def _status(work: _Work) -> PeriodStatus:
    newest = list(work.attempts.values())
    known = PeriodStatus("missing", runs=tuple(work.attempts), attempts=newest[0].attempt if newest else 0)
    active = [run for run in newest if is_active(run)]
    if active:
        return _with(known, "running", active[0].reason, active[0].claimed_at)
    if work.job is not None:
        waiting = _with(known, "waiting", work.job.reason, work.job.created_at, work.job.job_id)
        return replace(waiting, gathers=work.job.state == "PENDING_TRIGGER" and work.backfill is None)
    if work.backfill is not None:
        return _with(known, "waiting", planned_by(work.backfill), None)
    if not newest:
        return known
    worst = next((run for run in of_events(newest) if run.state != "SUCCEEDED"), newest[0])
    ended = worst.ended_at if worst.ended_at is not None else worst.state_at
    return _with(known, "succeeded" if worst.state == "SUCCEEDED" else "failed", worst.reason, ended)


def _with(
    known: PeriodStatus, state: PeriodState, why: Why, at: Instant | None, job: str | None = None
) -> PeriodStatus:
    return PeriodStatus(state, why, job, known.runs, known.attempts, at)


def rule_of(dataset: Dataset, by: Values) -> PeriodRule | None:
    """The periods of a dataset, if each job with these ``by`` is for one of them; None otherwise."""
    names = dataset.period.names if dataset.period is not None else None
    return dataset.period if names is not None and by and set(names.keys) <= set(by) else None


def counted(found: Iterable[PeriodStatus]) -> dict[PeriodState, int]:
    """How many periods are in each state."""
    totals: dict[PeriodState, int] = dict.fromkeys(("missing", "waiting", "running", "succeeded", "failed"), 0)
    for each in found:
        totals[each.state] += 1
    return totals


def chosen(only: str, status: PeriodStatus) -> bool:
    """Whether a backfill of ``all``, ``missing`` or ``failed`` periods runs one. None runs a period in flight. One of
    ``all`` also runs a period whose job waits for events, such as a join whose other input does not come."""
    if status.in_flight:
        return False
    return only == "all" or status.state == only
