"""The usage by Lambda; all meters write here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.cost.prices import CALL_MS, FIXED_MS

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html: 26 bytes for each event
LINE_OVERHEAD = 26
# What Lambda itself writes for an invocation, in its text format.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-view.html
REQUEST = "00000000-0000-4000-8000-000000000000"
LAMBDA_LINES = (
    f"START RequestId: {REQUEST} Version: $LATEST\nEND RequestId: {REQUEST}\nREPORT RequestId: {REQUEST}\t"
    "Duration: 123.45 ms\tBilled Duration: 124 ms\tMemory Size: 512 MB\tMax Memory Used: 128 MB\t\n"
)


def billed_bytes(text: str) -> int:
    """The bytes of log lines as CloudWatch bills them."""
    return sum(len(line.encode()) + LINE_OVERHEAD for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Written:
    """A kind of write: the Lambda, the table, the kind of row, and the action."""

    handler: str
    table: str
    row: str
    action: str


@dataclass
class Tally:
    """Counts since its creation. `units` are those of the tables, and separately those of their indexes."""

    memory_gb: dict[str, float]
    calls: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    gb_seconds: float = 0.0
    waited_seconds: float = 0.0
    log_bytes: float = 0.0
    stored_bytes: float = 0.0
    times: Counter[Written] = field(default_factory=Counter)
    table_units: Counter[Written] = field(default_factory=Counter)
    index_units: Counter[Written] = field(default_factory=Counter)
    reads: Counter[Written] = field(default_factory=Counter)
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    handler: str = "-"
    _milliseconds: float = 0.0

    @property
    def write_units(self) -> float:
        return float(self.table_units.total() + self.index_units.total())

    def call(self, service: str, operation: str) -> None:
        """Count a call to an AWS service, and its assumed duration."""
        self.calls[f"{service}:{operation}"] += 1
        self._milliseconds += CALL_MS.get(service, 0.0)

    def wait(self, milliseconds: float) -> None:
        """Count the waiting time of a Lambda, which is billed."""
        self._milliseconds += milliseconds
        self.waited_seconds += milliseconds / 1000

    def logged(self, text: str) -> None:
        """Count the lines that a Lambda has written."""
        self.log_bytes += billed_bytes(text)

    def wrote(self, table: str, row: str, action: str, units: int, index_units: int, size: int) -> None:
        written = Written(self.handler, table, row, action)
        self.times[written] += 1
        self.table_units[written] += units
        self.index_units[written] += index_units
        self.sizes[table, row] = max(size, self.sizes.get((table, row), 0))

    def read(self, table: str, row: str, action: str, units: float) -> None:
        self.read_units += units
        # Stored as half units, because the counter holds integers.
        self.reads[Written(self.handler, table, row, action)] += round(units * 2)

    @contextmanager
    def invocation(self, handler: str) -> Iterator[None]:
        """One invocation of a Lambda: all usage inside counts for it."""
        self.handler, self._milliseconds = handler, FIXED_MS
        self.calls[f"lambda:{handler}"] += 1
        try:
            yield
        finally:
            self.gb_seconds += self.memory_gb[handler] * self._milliseconds / 1000
            self.handler, self._milliseconds = "-", 0.0
