"""What a run costs at list price (H1). Prices are settings: they differ by region, processor and contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
