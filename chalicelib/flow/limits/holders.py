"""Poll the runs that hold the slots for which jobs wait, because the event of their end may be lost (W7)."""

from __future__ import annotations

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.limits import names as limit_names
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow
from chalicelib.core.system import sweep
from chalicelib.ports import Ports

MAX_POLLED = 50  # runs of one limit that are polled at a time, least recently polled first
MAX_READ = 500  # unfinished runs that are read to find the holders of a limit that does not name all of them
# The next poll of any unfinished run comes within this time, so the wake index up to then has all of them.
ALL_POLLED_WITHIN: Millis = 30 * MINUTE


def poll_holders(ports: Ports, state: LimitState, now: Instant) -> int:
    """Hint the silent runs that hold slots of this limit, so that each is polled. Returns how many were hinted."""
    held = sorted(
        (run for run in _holders(ports, state, now) if follow.may_have_ended(run, now)),
        key=lambda run: run.wake_at or now,
    )
    refs = [run_ref(run.run_id, run.attempt) for run in held[:MAX_POLLED]]
    if refs:
        ports.hints.send_all(sweep.in_slices(refs, now), now)
    return len(refs)


def _holders(ports: Ports, state: LimitState, now: Instant) -> list[Run]:
    """The unfinished runs with a permit of this limit, or of any share of its pool."""
    names = [ids.attempt_of(holder) for holder in state.starts]
    if state.active > len(names):
        # A pool names no holders, and other limits name only some of very many. All unfinished runs have a `wake_at`.
        refs = ports.wakes.overdue("runs", now + ALL_POLLED_WITHIN, MAX_READ)
        names += [(ref.parts[0], int(ref.parts[1])) for ref in refs if ref.kind == "run"]
    found = ports.runs.several(list(dict.fromkeys(names)))
    return [run for run in found if any(_is_of(permit, state.limit_name) for permit in run.permits)]


def _is_of(permit: str, limit_name: str) -> bool:
    if limit_names.is_pool(permit) and limit_names.is_pool(limit_name):
        return limit_names.pool_of(permit) == limit_names.pool_of(limit_name)
    return permit == limit_name
