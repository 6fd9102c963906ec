"""When a target is asked again what it has billed for a run that is over (H1).

It is asked along with how the run ended. EMR Serverless may reckon up only later, so a run whose bill is not known is
looked at again by its ``wake_at``: 2 and 15 minutes after its end was taken in, and then never. By then it is known, or
will not be. A bill that is told at once costs no write.

What a run costs at list price (H1). Prices are settings: they differ by region, processor and contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chalicelib.core import states
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry

AFTER: tuple[Millis, ...] = (2 * MINUTE, 15 * MINUTE)


def next_check(run: Run, now: Instant) -> Instant | None:
    """When the bill of a run is asked for next; None if it is known, if there is none, or after the last look."""
    due = _due(run)
    return None if due is None else max(due, now)


def is_due(run: Run, now: Instant) -> bool:
    """A hint that comes twice, or too early, asks for nothing and uses no look up."""
    due = _due(run)
    return due is not None and due <= now


def checked(run: Run, billed: Sequence[int], now: Instant) -> Run:
    """The run after its target was asked; ``billed`` is empty if it does not know yet, or gave no answer. Looks whose
    time passed unused, in an outage, are not made up for."""
    passed = sum(1 for after in AFTER if _ended(run) + after <= now)
    told = replace(run, billed=tuple(billed) or run.billed, bill_checks=passed, leases=0, rev=run.rev + 1)
    return replace(told, wake_at=next_check(told, now))


def _due(run: Run) -> Instant | None:
    if not states.is_terminal(run.state) or run.target_id is None or run.outcome == "lost":
        return None
    # Nothing at all is what is told before anything is reckoned: EMR bills a minute at least.
    if any(run.billed) or run.bill_checks >= len(AFTER) or not registry.of_run(run).bills:
        return None
    return _ended(run) + AFTER[run.bill_checks]


def _ended(run: Run) -> Instant:
    """When its end was taken in, which is when the target was asked first."""
    return run.state_at if run.state_at is not None else run.claimed_at


THOUSANDTHS = 1_000  # EMR Serverless tells resource hours with three decimals


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for an hour of one vCPU, of one GB of memory, and of one GB of storage beyond what a worker has free.

    The defaults are EMR Serverless's list prices of 2025 in us-east-1 for Linux on x86
    (https://aws.amazon.com/emr/pricing/, "Amazon EMR Serverless").
    """

    vcpu_hour: float = 0.052624
    memory_gb_hour: float = 0.0057785
    storage_gb_hour: float = 0.000111


LIST = Prices()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a target has billed for a run, in hours of one vCPU, one GB of memory, one GB of storage."""

    vcpu_hours: float
    memory_gb_hours: float
    storage_gb_hours: float

    @classmethod
    def of(cls, billed: Sequence[int]) -> Usage | None:
        """Out of a run's row, where it stands in thousandths of an hour; None if nothing was billed, or is known."""
        if not billed:
            return None
        vcpu, memory, storage = (part / THOUSANDTHS for part in billed)
        return cls(vcpu, memory, storage)

    def stored(self) -> tuple[int, int, int]:
        """As it stands in a run's row: whole thousandths of an hour."""
        parts = (self.vcpu_hours, self.memory_gb_hours, self.storage_gb_hours)
        vcpu, memory, storage = (round(part * THOUSANDTHS) for part in parts)
        return vcpu, memory, storage


def cost_usd(usage: Usage, prices: Prices) -> float:
    """Dollars at list price, to a millionth. What EMR bills starts at a minute a worker, and it tells hours so."""
    parts = (
        usage.vcpu_hours * prices.vcpu_hour,
        usage.memory_gb_hours * prices.memory_gb_hour,
        usage.storage_gb_hours * prices.storage_gb_hour,
    )
    return round(sum(parts), 6)
