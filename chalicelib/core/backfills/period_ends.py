"""How the runs of a schedule's periods have ended, in one row, so that a view need not read the runs again (L23).

The row counts the attempts that were claimed before an instant, `PeriodEnds.complete_to`. A view adds those that were
claimed since, and gets the states that `periods.statuses` computes from all attempts.

The order in which rows are written does not matter: each one says what it counts, and an older one only leaves more to
read. A final attempt never changes, so what is counted stays true. A period with an active attempt is not counted: its
attempts are named in the row, and are read again, until all of them have ended.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.core.backfills import periods
from chalicelib.core.backfills.periods import PeriodState, Values
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, Instant, Millis
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Run
from chalicelib.core.triggers import tree

# A Lambda lives for 15 minutes at most, so an attempt that was claimed an hour ago is stored, and its indexes list it.
SETTLED: Millis = HOUR
# A row is written again after so long: a view then reads the attempts of a week.
AGAIN: Millis = 7 * DAY
# A row of a schedule that does not run any more expires when no view can show its periods.
KEPT: Millis = 400 * DAY
MAX_TEXT = 300_000  # characters; DynamoDB takes rows of 400 KB
MAX_ACTIVE = 1_000  # attempts that a row names


@dataclass(frozen=True, slots=True)
class Ends:
    """The periods whose newest runs have ``succeeded``, and those that have ``failed``, each with the numbers of the
    events of its fire whose newest run has not succeeded (0 if the fire has one event)."""

    succeeded: frozenset[Values] = frozenset()
    failed: Mapping[Values, frozenset[int]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text in which a row keeps them: about 2 KB for the days of a year."""
        failed = sorted((period, sorted(events)) for period, events in self.failed.items())
        plain = json.dumps([sorted(self.succeeded), failed], separators=(",", ":"))
        return b85encode(zlib.compress(plain.encode(), 9)).decode()

    @classmethod
    def of_text(cls, text: str) -> Ends:
        succeeded, failed = json.loads(zlib.decompress(b85decode(text)))
        return cls(frozenset(map(tuple, succeeded)), {tuple(period): frozenset(events) for period, events in failed})


Active = Mapping[Values, tuple[Run, ...]]


def after(ends: Ends, attempts: Iterable[Run], by: Values) -> tuple[Ends, Active]:
    """The ends with further attempts, newest first, all of which were claimed later than what the ends count. Also the
    attempts of each period that is running: of these the ends stay as they are."""
    succeeded, failed, every = set(ends.succeeded), dict(ends.failed), list(attempts)
    active: dict[Values, tuple[Run, ...]] = {}
    for period, runs in periods.by_period(every, by).items():
        if any(map(periods.is_active, runs.values())):
            active[period] = tuple(run for run in every if periods.period_of(run, by) == period)
            continue
        deciding = periods.of_events(runs.values())
        well = {periods.event_of(run) for run in deciding if run.state == "SUCCEEDED"}
        badly = (failed.pop(period, frozenset()) | {*map(periods.event_of, deciding)}) - well
        succeeded.discard(period)
        if badly:
            failed[period] = badly
        else:
            succeeded.add(period)
    return Ends(frozenset(succeeded), failed), active


def states(ends: Ends, active: Iterable[Values], waiting: Iterable[Values]) -> dict[Values, PeriodState]:
    """The state of each period for which there is or was work, as `periods.statuses` has it. ``waiting`` are those with
    a job, and those that a backfill has yet to run."""
    found: dict[Values, PeriodState] = dict.fromkeys(ends.succeeded, "succeeded")
    found |= dict.fromkeys(ends.failed, "failed")
    found |= dict.fromkeys(waiting, "waiting")
    found |= dict.fromkeys(active, "running")
    return found


def has_periods(schedule: Schedule) -> bool:
    """Whether the jobs of a schedule may be for periods."""
    return bool(schedule.keys) or bool(tree.recurrences(schedule.trigger))


def newest_first(attempts: Iterable[Run]) -> list[Run]:
    """Attempts in the order of the history."""
    return sorted(attempts, key=lambda run: (run.claimed_at, run.run_id, run.attempt), reverse=True)


def is_due(row: PeriodEnds | None, by: Values, now: Instant) -> bool:
    """Whether a row is to be written: there is none, it is a week old, or the schedule has other keys now."""
    return row is None or row.by != by or row.complete_to + SETTLED + AGAIN <= now


def counted(
    row: PeriodEnds | None, schedule: str, by: Values, attempts: Sequence[Run], complete_from: Instant, until: Instant
) -> PeriodEnds:
    """The next row. ``attempts``, newest first, are those that ``row`` names as active, and all that were claimed from
    its ``complete_to`` to before ``until``. Without a row they are all from ``complete_from`` on. A row that would be
    too large counts nothing: views then read the attempts from ``until`` on alone."""
    before = row if row is not None else PeriodEnds(schedule, by, Ends().text, complete_from, until, rev=0)
    ends, active = after(Ends.of_text(before.ends), attempts, by)
    text, names = ends.text, tuple((run.run_id, run.attempt) for runs in active.values() for run in runs)
    if len(text) > MAX_TEXT or len(names) > MAX_ACTIVE:
        before, text, names = replace(before, complete_from=until), Ends().text, ()
    return replace(
        before,
        by=by,
        ends=text,
        complete_to=until,
        active=names,
        rev=before.rev + 1,
        expires_at=until + KEPT,
    )
