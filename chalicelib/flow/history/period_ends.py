"""Keep how the runs of a schedule's periods have ended, when the stream of the runs table shows that it has run (L23).

The stream only says which schedules have run. What a row counts is read from the runs, so a change that comes twice,
late or never makes no row wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.backfills import period_ends
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import HOUR, Instant, Millis
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.writes import Create, Replace
from chalicelib.flow import many
from chalicelib.flow.backfills.periods import MAX_ATTEMPTS
from chalicelib.log import logger
from chalicelib.ports import Ports

MAX_READ = 20_000  # attempts that one invocation reads; the rows of the other schedules are written later
LOOKED_AT: Millis = HOUR  # a process looks so seldom whether the row of a schedule is due
MAX_KNOWN = 100_000  # schedules of which a process knows when it has looked

_looked: dict[str, Instant] = {}


def keep(ports: Ports, names: Iterable[str], looked: dict[str, Instant] = _looked) -> int:
    """Write the rows that are due of these schedules, which have run. Returns how many were written. ``looked`` says
    when this process has looked at a schedule."""
    now = ports.clock.now()
    wanted = [name for name in dict.fromkeys(names) if now - looked.get(name, 0) >= LOOKED_AT and _may_count(name)]
    if not wanted:
        return 0
    rows = {row.schedule: row for row in many.rows(ports, PeriodEnds, [(name,) for name in wanted])}
    old = [name for name in wanted if (row := rows.get(name)) is None or period_ends.is_due(row, row.by, now)]
    found = many.schedules(ports, old)
    if len(looked) > MAX_KNOWN:
        looked.clear()
    looked.update(dict.fromkeys(set(wanted) - set(old), now))
    written, left = 0, MAX_READ
    for name in old:
        if left <= 0:
            break
        looked[name] = now
        if name in found and period_ends.has_periods(schedule := found[name][1]):
            made, read = _counted(ports, rows.get(name), name, schedule, now)
            left -= read
            written += _written(ports, made)
    return written


def _may_count(name: str) -> bool:
    return not ids.is_of_message(name) and not ids.is_of_dag(name)


def _counted(
    ports: Ports, stored: PeriodEnds | None, name: str, schedule: Schedule, now: Instant
) -> tuple[PeriodEnds, int]:
    """The next row of a schedule, and how many attempts were read for it."""
    row = stored if stored is not None and stored.by == schedule.keys else None
    until = now - period_ends.SETTLED
    since = row.complete_to if row is not None else 0
    found = ports.runs.attempts_between(name, since, until, MAX_ATTEMPTS + 1)
    complete_from = since
    if len(found) > MAX_ATTEMPTS:  # what is older is not known, so the ends before it are none, either
        row, complete_from = None, found[-1].claimed_at + 1
        found = found[:-1]
    again = ports.runs.several(row.active) if row is not None else ()
    attempts = period_ends.newest_first([*found, *again])
    made = period_ends.counted(row, name, schedule.keys, attempts, complete_from, until)
    return replace(made, rev=stored.rev + 1 if stored is not None else 1), len(attempts)


def _written(ports: Ports, row: PeriodEnds) -> bool:
    """Store a row over the one that was read. Another invocation may have done so meanwhile; then that one stays."""
    conflict = ports.ledger.commit([Replace(row) if row.rev > 1 else Create(row)])
    if conflict is not None:
        logger.info("ends of periods are written elsewhere", extra={"schedule": row.schedule})
    return conflict is None
