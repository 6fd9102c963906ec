"""Closings are counted, so that a delivery need not read all its rows again to know that nothing was closed (C13).

An invocation reads fires and their schedule states up to 25 s before it sends them. For example:

    12:00:00.0  the count is 41, and the last closing was counted at 11:52; read 500 fires
    12:00:20.0  the count is 41: send 50
    12:00:20.1  the count is 42: read the rows of the next 50 again, and those of each later 50

A closing is counted **before** it is committed. So every closing that is acknowledged has been counted, also if a
process dies or a request is repeated. In return, a closing that was counted shortly before the fires were read may be
committed after that. So a count is relied on only if the last closing was counted `SETTLED` before the fires were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chalicelib.core import states
from chalicelib.core.changes import replace
from chalicelib.core.fires import lifetime
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.delivery_lease import ClosingCount
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutState, TrackStarts, Write

# A closing that was counted is committed within this time, or never. The API, which makes most of them, ends after
# 29 s; another Lambda commits at once, and repeats a table call for 8 s.
SETTLED: Millis = MINUTE

Counts = Mapping[str, int]  # the counts of namespaces that may be relied on


def closed_by(writes: Iterable[Write]) -> frozenset[str]:
    """The namespaces in which a plan closes something.

    It does so if it changes a schedule state, and fires that were read before may no longer be sent. Nothing is closed
    by: a new schedule, or one whose fires could not be sent before; marks for other steps (`wake_at`, `uncounted`); the
    end of a schedule by itself, whose prepared fires are still sent (L10). The steps that cancel or refuse a job, or
    skip an occurrence, count that themselves.

    A plan after which a workflow's starts are counted closes something, too: fires that needed no permit need one now.
    """
    closed = (_closed_by(write) for write in writes)
    return frozenset(name.partition(".")[0] for name in closed if name is not None)


def _closed_by(write: Write) -> str | None:
    """The schedule or workflow that a write closes."""
    match write:
        case PutState(schedule_state=state, over=over) if over is not None and _closes(state, over):
            return state.schedule
        case TrackStarts(workflow=workflow):
            return workflow
    return None


def settled(found: Mapping[str, ClosingCount | None], now: Instant) -> Counts:
    """The counts that fires may rely on that are read after ``now``. A namespace in which something was closed lately
    has none."""
    return {
        namespace: row.closings if row is not None else 0
        for namespace, row in found.items()
        if row is None or row.at < now - SETTLED
    }


def _closes(after: ScheduleState, over: ScheduleState) -> bool:
    if over.mode not in states.CLAIMABLE["fire"] or (after.mode == "deleted" and after.by == lifetime.BY):
        return False
    completes = after.mode == "completed"
    return _relied_on(after) != _relied_on(replace(over, mode="completed") if completes else over)


def _relied_on(state: ScheduleState) -> tuple[object, ...]:
    return state.generation, state.version, state.mode, state.pauses, state.stops
