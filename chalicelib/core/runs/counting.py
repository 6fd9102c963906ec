"""Permits for active runs of a definition that names a group or a pool for the first time (C9, W3).

A run acquires its permits when it is claimed. If its schedule later names a group or another pool, or its workflow
names a pool, the run has no permit of that limit. The write that names the group or pool sets ``uncounted`` in the
schedule state, or in the definition. Before the put is answered, it gives each such run the permit, beyond the limit if
necessary. If the put crashes, the next check of a job does so. Until then, no job of that schedule is claimed. The
permits are released like all others, when the runs end.
"""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.ids import holder_of
from chalicelib.core.limits import names, returns
from chalicelib.core.limits.names import pool_of
from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutDefinition, Write

# Permits that a run gets at most by being counted: the transaction that ends the run releases all of them. Only a
# schedule that names other groups several times during one run reaches it.
MAX_PERMITS = 60


def is_uncounted(schedule_state: ScheduleState | None, new: Schedule, old: Schedule | None) -> bool:
    """Whether active runs of a schedule may lack a permit of a group or pool that its new version names.

    ``schedule_state`` and ``old`` are those before the put. A deleted schedule may have runs, but no old version."""
    return schedule_state is not None and (
        schedule_state.uncounted or bool(_named(new) - (_named(old) if old is not None else set()))
    )


def _named(schedule: Schedule) -> set[tuple[str, str | None]]:
    return {("group", group) for group in groups_of(schedule)} | {("pool", schedule.pool)}


def groups_of(schedule: Schedule) -> list[str]:
    return sorted({group for constraint in schedule.constraints for group in constraint.groups()})


def missing_groups(run: Run, schedule: Schedule) -> list[str]:
    """The limits of the groups that a schedule names and of which its run has no permit."""
    namespace = run.schedule.partition(".")[0]
    named = [names.group_limit(namespace, group) for group in groups_of(schedule)]
    missing = [limit_name for limit_name in named if limit_name not in run.permits]
    return missing[: max(0, MAX_PERMITS - len(run.permits))]


def lacks_pool(run: Run, ask: Slots) -> bool:
    """Whether a run holds no permit of the pool of ``ask``, neither of a share nor of the common part."""
    pool = pool_of(ask.limit_name)
    holds = any(names.is_pool(limit_name) and pool_of(limit_name) == pool for limit_name in run.permits)
    return not holds and len(run.permits) <= MAX_PERMITS


def with_permit(run: Run, state: LimitState, pool: Definition | None = None) -> tuple[Run, list[Write]]:
    """The run with a permit of a limit, even beyond the limit, and the writes that acquire the permit. ``pool`` is the
    definition of the pool to which the limit belongs, if there is one.

    The part of the pool may then have more units in use than its size; ``shrunk`` names it, so that the pool withholds
    the surplus from all other parts. The edition rises, so that a claim that read the pool before cannot acquire the
    same units. The last start of a workflow stays the last: the write expects the starts that were read."""
    name = state.limit_name
    after = replace(run, permits=(*run.permits, name))
    gap = 0 if names.is_of_workflow(name) else None
    ask = Slots(name, None, gap, units=returns.units_at(name, run.units))
    begins = holder_of(run.run_id, run.attempt) if names.names_starts(name) else None
    plan: list[Write] = [AcquirePermit(ask, run.claimed_at, state, from_queue=False, begins=begins)]
    if pool is not None:
        shrunk = replace(pool, shrunk=tuple(sorted({*pool.shrunk, name})), edition=pool.edition + 1)
        plan.append(PutDefinition(shrunk, pool.version, pool.edition))
    return after, plan


def with_pool(run: Run, ask: Slots, row: Definition, share: LimitState) -> tuple[Run, list[Write]]:
    """The run with a permit of a pool, and its writes: of its share while that has free units, else of the common part.
    A run that holds units of another pool counts here with as many."""
    units = run.units or ask.units
    full = ask.limit is not None and share.active + units > ask.limit
    part = ask.fallback if ask.fallback is not None and full else ask
    # A pool remembers no starts, so the write depends on no state that was read.
    return with_permit(replace(run, units=units), LimitState(part.limit_name), row)


def living(state: LimitState, schedule: str | None) -> list[tuple[str, int]]:
    """The active runs, with their attempts, that the limit of a workflow remembers; of ``schedule`` alone if given.

    The id of a run contains its schedule. The limit remembers at most `MAX_STARTS` runs."""
    found: list[tuple[str, int]] = []
    for holder in sorted(state.starts):
        run_id, attempt = ids.attempt_of(holder)
        parsed = ids.parse_job_id(run_id)
        if schedule is None or (parsed is not None and parsed.schedule == schedule):
            found.append((run_id, attempt))
    return found
