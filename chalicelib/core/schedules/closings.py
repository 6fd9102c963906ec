"""Closings are counted, so that a delivery need not read all its rows again to know that nothing was closed (C13).

An invocation reads fires and their schedule states up to 25 s before it sends them. For example:

    12:00:00.0  the count is 41, and the last closing began at 11:52; read 500 fires
    12:00:20.0  the count is 41: send 50
    12:00:20.1  the count is 42: read the rows of the next 50 again, and those of each later 50

A closing is counted **before** it is committed. So every closing that is acknowledged has been counted, also if a
process dies or a request is repeated. In return, a closing that began shortly before the fires were read may be
committed after that. So a count is relied on only if the last closing began `SETTLED` before the fires were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chalicelib.core.fires import lifetime
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.closings import ClosingCount
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutState, Write

# A closing that was counted is committed within this time, or never: table calls are repeated for 8 s.
SETTLED: Millis = MINUTE

Counts = Mapping[str, int]  # the counts of namespaces that may be relied on


def closed_by(writes: Iterable[Write]) -> dict[str, Instant]:
    """The namespaces in which a plan closes something, each with the instant of the change.

    It does so if it changes a schedule state so that fires which were read before may no longer be sent. What does not:
    a new schedule; marks for other steps (`wake_at`, `uncounted`); and the end of a schedule by itself, whose prepared
    fires are still sent (L10). Two steps count themselves. The one that cancels a job: most jobs are deleted because
    they were sent. And the one that skips an occurrence, of which the state does not have the instant.
    """
    states = [
        write.schedule_state
        for write in writes
        if isinstance(write, PutState) and write.over is not None and _closes(write.schedule_state, write.over)
    ]
    return {state.schedule.partition(".")[0]: state.updated_at for state in states}


def settled(found: Mapping[str, ClosingCount | None], now: Instant) -> Counts:
    """The counts that fires may rely on that are read after ``now``. A namespace in which something was closed lately
    has none."""
    return {
        namespace: row.closings if row is not None else 0
        for namespace, row in found.items()
        if row is None or row.at < now - SETTLED
    }


def _closes(after: ScheduleState, over: ScheduleState) -> bool:
    if after.mode == "completed" or (after.mode == "deleted" and after.by == lifetime.BY):
        return False
    return _relied_on(after) != _relied_on(over)


def _relied_on(state: ScheduleState) -> tuple[object, ...]:
    return state.generation, state.version, state.mode, state.pauses
