"""Runs that are going when a group or a pool is named for the first time: they count there from then on (C9, W3).

A run takes its permits when it is claimed. A schedule that names a group, or another pool, later has living runs
without a permit of it; so has a workflow that names a pool. Its gate, or its definition, says so (``uncounted``) in the
write that names it. The put gives each of those runs the permit, beyond the limit if need be, before it is answered;
should it die, the next check of a job does. Only then anything else of that schedule is claimed. The permits come back
as any others do, when the runs end.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.ids import holder_of
from chalicelib.core.limits import names
from chalicelib.core.limits.names import pool_of
from chalicelib.core.limits.slots import Slots
from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutDefinition, Write


def is_uncounted(schedule_state: ScheduleState | None, new: Schedule, old: Schedule | None) -> bool:
    """Whether living runs of a schedule may lack a permit of what its new version names. ``gate`` and ``old`` are those
    before; a schedule that was deleted may have runs, and has no old version."""
    return schedule_state is not None and (
        schedule_state.uncounted or bool(_named(new) - (_named(old) if old is not None else set()))
    )


def _named(schedule: Schedule) -> set[tuple[str, str | None]]:
    return {("group", group) for group in groups_of(schedule)} | {("pool", schedule.pool)}


def groups_of(schedule: Schedule) -> list[str]:
    return sorted({group for each in schedule.constraints for group in each.groups()})


def missing_groups(run: Run, schedule: Schedule) -> list[str]:
    """The lines of groups that a schedule names and its run has no permit of."""
    namespace = run.schedule.partition(".")[0]
    named = [names.group_limit(namespace, group) for group in groups_of(schedule)]
    return [limit_name for limit_name in named if limit_name not in run.permits]


def lacks_pool(run: Run, ask: Slots) -> bool:
    """Whether a run holds nothing of the pool that is asked, in whichever part."""
    pool = pool_of(ask.limit_name)
    return not any(names.is_pool(limit_name) and pool_of(limit_name) == pool for limit_name in run.permits)


def with_group(run: Run, state: LimitState) -> tuple[Run, Write]:
    """A run that is counted in a group from now on, whatever its limit, and the write that counts it."""
    after = replace(run, permits=(*run.permits, state.limit_name))
    holder = holder_of(run.run_id, run.attempt)
    return after, AcquirePermit(Slots(state.limit_name, None), run.claimed_at, state, from_queue=False, begins=holder)


def with_pool(run: Run, ask: Slots, row: Definition, share: LimitState) -> tuple[Run, list[Write]]:
    """The same in a pool: in its share while there is room, else in the common part. Who takes of another pool already
    counts here with as many units.

    The part is one that may have more in use than it has, which the pool withholds from all others. Its edition moves
    on, so that nobody who asked before gets what this run has."""
    units = run.units or ask.units
    full = ask.limit is not None and share.active + units > ask.limit
    part = ask.fallback if ask.fallback is not None and full else ask
    taken = Slots(part.limit_name, None, units=units, unit=ask.unit)
    shrunk = replace(row, shrunk=tuple(sorted({*row.shrunk, part.limit_name})), edition=row.edition + 1)
    after = replace(run, permits=(*run.permits, part.limit_name), units=units)
    read = LimitState(part.limit_name)  # of a pool no start is remembered, so nothing that was read is relied on
    permit = AcquirePermit(taken, run.claimed_at, read, from_queue=False)
    return after, [permit, PutDefinition(shrunk, row.version, row.edition)]


def living(state: LimitState, schedule: str | None) -> list[tuple[str, int]]:
    """The runs that a workflow's line remembers as living, with their attempts; of one schedule alone, if it is named.

    A run's id tells whose it is. Of more than `MOST_STARTS` the line does not know all."""
    found: list[tuple[str, int]] = []
    for holder in sorted(state.starts):
        run_id, _, attempt = holder.rpartition("#")
        whose = ids.parse_job_id(run_id)
        if schedule is None or (whose is not None and whose.schedule == schedule):
            found.append((run_id, int(attempt)))
    return found
