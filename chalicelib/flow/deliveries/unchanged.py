"""Read again what a delivery relies on, before its call: its schedule state, its job, and what no count covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key, Stamp, stamp_of
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.flow.deliveries.ends import Ready
from chalicelib.ports import Ports


def rows_of(ready: Iterable[Ready]) -> list[Job]:
    """The stored rows of deliveries, each once."""
    return list({each.row_ref: each.row for each in ready}.values())


def as_read(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries whose schedule state and job are still those of the decision.

    Equal stamps prove that in most cases. Rows whose stamp has changed are read in full, since a sweep's lease changes
    the stamp but not the decision.
    """
    stamps = ports.prefetch.stamps(_wanted(part))
    stamped = {each.ref for each in part if _is_as_stamped(stamps, each)}
    others = [each for each in part if each.ref not in stamped]
    seen = ports.prefetch.read(ports, _wanted(others)) if others else ports
    found = [each if each.ref in stamped else _still(seen, each) for each in part]
    return [each for each in found if each is not None]


def uncounted(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries of workflows whose starts are still not counted. The others need permits now."""
    names = {each.run.workflow for each in part if not each.facts.counted}
    counted = {
        name for name in names if (row := ports.rows.get(Definition, "workflow", name)) is not None and row.counted
    }
    return [each for each in part if each.facts.counted or each.run.workflow not in counted]


def relied_on(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
    """The deliveries whose grants and workflow are those of the decision, and whose backfill goes on. Few deliveries
    have any of these; no count covers them. Each row is read once."""
    workflow = cache(lambda name: ports.rows.get(Definition, "workflow", name))
    grants = cache(lambda owner: ports.rows.get(GrantsRow, owner))
    goes_on = cache(lambda schedule, backfill: lookup.goes_on(ports, schedule, backfill))

    def holds(each: Ready) -> bool:
        row, granted, backfill = each.facts.relied_on, each.facts.granted.rows, each.job.backfill
        if row is not None and workflow(row.name) != row:
            return False
        same = all(grants(owner) == read for owner, read in granted.items())
        return same and (backfill is None or goes_on(each.job.schedule, backfill))

    return [each for each in part if holds(each)]


def _wanted(part: Sequence[Ready]) -> list[Key]:
    wanted: list[Key] = [kinds.key(ScheduleState, name) for name in dict.fromkeys(each.job.schedule for each in part)]
    return wanted + [kinds.key_of(row) for row in rows_of(part)]


def _is_as_stamped(stamps: Mapping[Key, Stamp], each: Ready) -> bool:
    schedule_state = each.facts.schedule_state
    if schedule_state is None or stamps.get(kinds.key_of(schedule_state)) != stamp_of(schedule_state):
        return False
    return stamps.get(kinds.key_of(each.row)) == stamp_of(each.row)


def _still(seen: Ports, each: Ready) -> Ready | None:
    """The delivery with the present revision of its job; None if the job or its schedule state has changed.

    A lease by the sweep raises the revision but changes nothing that the decision depends on.
    """
    job = seen.rows.get(Job, each.row.schedule, each.row.generation, each.row.sort_key)
    if job is None or job.closed or seen.rows.get(ScheduleState, each.job.schedule) != each.facts.schedule_state:
        return None
    if _identity(job) != _identity(each.row):
        return None
    if each.bundle is not None:
        return replace(each, bundle=job) if bundles.has(job, each.job) else None
    return each if job.rev == each.job.rev else replace(each, job=replace(each.job, rev=job.rev))


def _identity(job: Job) -> tuple[object, ...]:
    return job.job_id, job.attempt, job.tries, job.queued_in, job.held, job.units, job.plan
