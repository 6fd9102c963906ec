"""What a stop of a namespace, an app or a tag does to a schedule, and what a start undoes (L24).

A stop is independent of the mode of a schedule. For example:

    clean is enabled, report is paused, old is disabled
    shop is stopped      clean, report and old have the mark of this stop: none of their jobs is launched
    shop is started      clean is enabled, report is paused, old is disabled

So a start brings back exactly what ran before, and what people change meanwhile stays. A schedule has a mark for each
stop that covers it, and runs again when it has none.

A mark is written only together with a condition that the stop is still as it was read (`ExpectStops`). A start first
marks the stop as ``starting``, after which no mark of it is written any more; then it removes the marks, and the stop
last. So no schedule keeps the mark of a stop that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import Mark, Scope, StateOfStop, Stop, StopsRow, Timeouts, still_spans, stops_of
from chalicelib.core.schedules.lifecycle import MAX_PAUSES
from chalicelib.core.states import HOLDING_MODES
from chalicelib.core.writes import Create, ExpectStops, PutState, Replace, Write

COPIES = 16
MAX_STOPS = 20  # of a namespace: each put reads them all
# A request that has begun a stop goes on with it itself. If it dies, the tick goes on after this time.
GOES_ON: Millis = 2 * MINUTE


def copy_of(name: str) -> str:
    """The copy of the row of stops that a write of this schedule expects."""
    return ids.shard(name, COPIES)


def begun(
    row: StopsRow | None, scope: Scope, reason: str, by: str, now: Instant, timeouts: Timeouts = "count"
) -> tuple[Stop, ...]:
    """The stops of a namespace once this one has begun. An equal one stays as it is. One with another reason gets the
    new one, and keeps its beginning. One that changes what becomes of timeouts begins now."""
    found = stops_of(row)
    old = next((stop for stop in found if stop.scope == str(scope) and stop.is_live), None)
    if old is not None and (old.reason, old.timeouts) == (reason, timeouts):
        return found
    new = Stop(str(scope), now if old is None or old.timeouts != timeouts else old.at, by, reason, timeouts=timeouts)
    return (*(stop for stop in found if stop.scope != new.scope), new)


def with_state(row: StopsRow | None, stop: Stop, state: StateOfStop) -> tuple[Stop, ...]:
    """The stops of a namespace with this state for one of them, if it still has the same mark."""
    return tuple(each._replace(state=state) if each.mark == stop.mark else each for each in stops_of(row))


def without(row: StopsRow | None, stop: Stop) -> tuple[Stop, ...]:
    return tuple(each for each in stops_of(row) if each.mark != stop.mark or each.is_live)


def has(row: StopsRow | None, stop: Stop) -> bool:
    """Whether a stop is still as it was read: it is stopped for the same reason, or being started."""
    return any(each.mark == stop.mark and each.is_live == stop.is_live for each in stops_of(row))


def written(row: StopsRow | None, namespace: str, stops: Sequence[Stop], now: Instant) -> list[Write]:
    """The writes of all copies of the row. ``row`` is the first copy as it was read."""
    wake_at = now + GOES_ON if any(stop.state != "stopped" for stop in stops) else None
    plan: list[Write] = []
    for copy in range(COPIES):
        new = StopsRow(namespace, str(copy), tuple(stop.stored for stop in stops), wake_at=None if copy else wake_at)
        if row is None:
            plan.append(Create(new))
        else:
            plan.append(Replace(replace(new, rev=row.rev + 1, unknown=row.unknown), before=None if copy else row))
    return plan


def marked(state: ScheduleState, stop: Stop, now: Instant) -> ScheduleState:
    """The state with the mark of a stop, besides those that it has; the same state if it has it."""
    marks = {mark[0]: mark for mark in state.stops} | {stop.scope: stop.mark}
    return _with_marks(state, tuple(marks.values()), now)


def unmarked(state: ScheduleState, stop: Stop, now: Instant) -> ScheduleState:
    """The state without the mark of a stop that is started; the mark of a later stop of the same scope stays."""
    left = tuple(mark for mark in state.stops if mark[0] != stop.scope or mark[1] > stop.at)
    return _with_marks(state, left, now)


def _with_marks(state: ScheduleState, marks: tuple[Mark, ...], now: Instant) -> ScheduleState:
    """``wake_at`` has all waiting jobs checked: they release their permits, or are launched. A fire that the stop holds
    up is spread again from the start on, as after a pause: ``held_from`` and ``mode_at`` are as for one. The span in
    which a stop that ends has let timeouts stand still is kept as that of a pause."""
    if marks == state.stops:
        return state
    kept = still_spans(marks)
    over = tuple(span for span in still_spans(state.stops, now) if (span[0], None) not in kept)
    # A pause without an end goes on; it is the last, as the rules of pauses have it.
    lasting = tuple(span for span in state.pauses if span[1] is None)
    ended = tuple(span for span in state.pauses if span[1] is not None)
    pauses = (*ended, *over, *lasting)[-MAX_PAUSES:] if over else state.pauses
    after = replace(state, stops=marks, pauses=pauses, wake_at=now)
    if marks and not state.stops and state.mode not in HOLDING_MODES:
        return replace(after, held_from=now)
    if not marks and state.mode == "enabled":
        return replace(after, mode_at=now)
    return after


def put(
    state: ScheduleState,
    plan: Sequence[Write],
    copy: str,
    row: StopsRow | None,
    tags: Mapping[str, str],
    now: Instant,
) -> tuple[ScheduleState, list[Write]]:
    """The plan of a put, and the state after it, with the marks of the stops that cover the schedule now. The plan
    expects the stops as they were read in ``row``, this copy of the row of its namespace."""
    live = tuple(stop.mark for stop in stops_of(row) if stop.is_live and stop.of.covers(state.schedule, tags))
    after = _with_marks(state, live, now)
    over = next((write.over for write in plan if isinstance(write, PutState)), None)
    if over is None or over.generation != state.generation:
        after = replace(after, wake_at=state.wake_at)  # a new generation has no jobs yet
    changed = [replace(write, schedule_state=after) if isinstance(write, PutState) else write for write in plan]
    return after, [*changed, ExpectStops(state.schedule.partition(".")[0], copy, row)]
