"""What a target bills for a run, and its price (H1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

THOUSANDTHS = 1_000  # of an hour, and of a GB


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for an hour of one vCPU, of one GB of memory, of one GB of storage beyond the free storage of a worker,
    and of one DPU of Glue; and for a GB that a query has scanned.

    The defaults are EMR Serverless's list prices of 2025 in us-east-1 for Linux on x86
    (https://aws.amazon.com/emr/pricing/, "Amazon EMR Serverless").
    """

    vcpu_hour: float = 0.052624
    memory_gb_hour: float = 0.0057785
    storage_gb_hour: float = 0.000111
    dpu_hour: float = 0.0
    scanned_gb: float = 0.0


LIST = Prices()
# https://aws.amazon.com/fargate/pricing/, us-east-1, Linux on x86, 2025.
FARGATE = Prices(vcpu_hour=0.04048, memory_gb_hour=0.004445, storage_gb_hour=0.000111)

# https://aws.amazon.com/glue/pricing/, us-east-1, 2025: the standard execution class, and the flexible one.
GLUE, GLUE_FLEX = Prices(dpu_hour=0.44), Prices(dpu_hour=0.29)


@dataclass(frozen=True, slots=True)
class Usage:
    """A bill: vCPU-hours, GB-hours of memory and of storage, DPU-hours of Glue, and scanned GB."""

    vcpu_hours: float = 0
    memory_gb_hours: float = 0
    storage_gb_hours: float = 0
    dpu_hours: float = 0
    scanned_gb: float = 0

    @classmethod
    def of(cls, billed: Sequence[int]) -> Usage | None:
        """The usage stored in a run's row, in thousandths; None if no bill is known."""
        return cls(*(part / THOUSANDTHS for part in billed)) if billed else None

    def stored(self) -> tuple[int, ...]:
        """The usage as a run's row stores it: whole thousandths, the first three always."""
        parts = (self.vcpu_hours, self.memory_gb_hours, self.storage_gb_hours, self.dpu_hours, self.scanned_gb)
        whole = [round(part * THOUSANDTHS) for part in parts]
        while len(whole) > 3 and not whole[-1]:
            whole.pop()  # the rows of other targets have three
        return tuple(whole)


def cost_usd(usage: Usage, prices: Prices) -> float:
    """Dollars at list price, rounded to a millionth. The hours that EMR reports include its minimum of one minute for
    each worker."""
    parts = (
        usage.vcpu_hours * prices.vcpu_hour,
        usage.memory_gb_hours * prices.memory_gb_hour,
        usage.storage_gb_hours * prices.storage_gb_hour,
        usage.dpu_hours * prices.dpu_hour,
        usage.scanned_gb * prices.scanned_gb,
    )
    return round(sum(parts), 6)
