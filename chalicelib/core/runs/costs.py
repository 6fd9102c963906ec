"""The bill of a run that has ended: when Sluice checks it again, and its cost at list price (H1).

The poll that reads the end of a run also reads its bill and the reason of a failure. EMR Serverless may compute the
bill later, and uploads the log with the whole error up to a minute later. So Sluice checks what it lacks of both 2 and
15 minutes after it recorded the end, by the ``wake_at`` of the run, and then no more. What is known at once costs no
further write. Prices are settings, because they differ by region, processor and contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core import states
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.bills import Prices, Usage, cost_usd
from chalicelib.core.why import UNCLEAR

AFTER: tuple[Millis, ...] = (2 * MINUTE, 15 * MINUTE)


def next_check(run: Run, now: Instant) -> Instant | None:
    """When Sluice checks a run next for its bill or its error; None if it lacks neither, or after the last check."""
    due = _due(run)
    return None if due is None else max(due, now)


def is_due(run: Run, now: Instant) -> bool:
    """Whether such a check is due. A repeated or early hint finds none due, so the hint uses up no check."""
    due = _due(run)
    return due is not None and due <= now


def checked(run: Run, billed: Sequence[int], now: Instant) -> Run:
    """The run after a check. ``billed`` is empty if the target has not computed the bill yet or gave no
    answer. Checks whose time passed during an outage are left out."""
    passed = sum(1 for after in AFTER if _ended(run) + after <= now)
    after = replace(run, billed=tuple(billed) or run.billed, bill_checks=passed, leases=0, rev=run.rev + 1)
    return replace(after, wake_at=next_check(after, now))


def lacks_bill(run: Run) -> bool:
    """Whether a bill is expected of a run that has ended."""
    # A bill of zeros means that EMR has not computed it yet: EMR bills at least one minute.
    return registry.of_run(run).bills and not any(run.billed)


def lacks_error(run: Run) -> bool:
    """Whether an attempt failed by itself, and its reason names no error or was cut. Its log may have the error."""
    return run.state in ("FAILED", "RETRYING") and run.outcome is None and run.reason.code == UNCLEAR


def _due(run: Run) -> Instant | None:
    if not states.is_terminal(run.state) or run.target_id is None or run.outcome == "lost":
        return None
    if run.bill_checks >= len(AFTER) or not (lacks_bill(run) or lacks_error(run)):
        return None
    return _ended(run) + AFTER[run.bill_checks]


def _ended(run: Run) -> Instant:
    """The instant at which Sluice recorded the end of a run, and so first read its bill."""
    return run.state_at if run.state_at is not None else run.claimed_at


def bill_of(run: Run, stack: Prices) -> tuple[Usage, float] | None:
    """What the target of a run has billed, and its cost in dollars at list price; None if no bill is known. ``stack``
    are the prices of the stack's settings."""
    usage = Usage.of(run.billed)
    return (usage, cost_usd(usage, registry.of_run(run).prices_of(run) or stack)) if usage is not None else None
