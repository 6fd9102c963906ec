"""When a target is asked again what it has billed for a run that is over (H1).

It is asked along with how the run ended. EMR Serverless may reckon up only later, so a run whose bill is not known is
looked at again by its ``wake_at``: 2 and 15 minutes after its end was taken in, and then never. By then it is known, or
will not be. A bill that is told at once costs no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.calendar import MINUTE, Instant, Millis
from chalicelib.core.rows import Run
from chalicelib.core.targets import bills

AFTER: tuple[Millis, ...] = (2 * MINUTE, 15 * MINUTE)


def next_look(run: Run, now: Instant) -> Instant | None:
    """When the bill of a run is asked for next; None if it is known, if there is none, or after the last look."""
    due = _due(run)
    return None if due is None else max(due, now)


def is_due(run: Run, now: Instant) -> bool:
    """A hint that comes twice, or too early, asks for nothing and uses no look up."""
    due = _due(run)
    return due is not None and due <= now


def looked(run: Run, billed: Sequence[int], now: Instant) -> Run:
    """The run after its target was asked; ``billed`` is empty if it does not know yet, or gave no answer. Looks whose
    time passed unused, in an outage, are not made up for."""
    passed = sum(1 for after in AFTER if _ended(run) + after <= now)
    told = replace(run, billed=tuple(billed) or run.billed, bill_looks=passed, leases=0, rev=run.rev + 1)
    return replace(told, wake_at=next_look(told, now))


def _due(run: Run) -> Instant | None:
    if not states.is_terminal(run.state) or run.target_id is None or run.outcome == "lost":
        return None
    # Nothing at all is what is told before anything is reckoned: EMR bills a minute at least.
    if any(run.billed) or run.bill_looks >= len(AFTER) or not bills(str(run.request.target["type"])):
        return None
    return _ended(run) + AFTER[run.bill_looks]


def _ended(run: Run) -> Instant:
    """When its end was taken in, which is when the target was asked first."""
    return run.moved_at if run.moved_at is not None else run.claimed_at
