"""The page docs/capacity.md: what 1, 10 and 100 million jobs a day take, PREDICTED.

    python -m benchmarks.capacity        # writes the tables of the page

Nothing is measured here. Units, calls, log lines and dollars of a run are those that `make bench ONLY=cost` counts, and
`benchmarks/cost/bill.py` adds what is billed by the month. How fast one emitter is says the model of AWS
(`make bench ONLY=aws_model`). The rest are prices, quotas and constants below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import results
from benchmarks.cost import bill
from benchmarks.history.capacity import DAY_S, KEY_WRITES, MILLION, MIX
from benchmarks.machine import ROOT
from benchmarks.page import markdown, page
from chalicelib.core.system import bursts
from chalicelib.settings import Settings

PAGE = ROOT / "docs" / "capacity.md"
DAYS = (1, 10, 100)  # million jobs a day
PEAK = 10  # the steepest minute of a day, in times of its average
RUN_S, RUN_VCPUS = 120, 16  # an EMR run: its duration, and the vCPUs of one of default size
AT_MOST = 0.8  # how much of a quota is planned for
GB_A_LAMBDA = 0.5
HOLD_S = 8  # how long an invocation holds the message of a burst: its lead, the sends, the records
# Quotas of a new account. https://docs.aws.amazon.com/general/latest/gr/emr-serverless.html, lambda-service.html,
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html and
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
EMR_STARTS, EMR_VCPUS, CONCURRENCY = 1, 16, 1_000
TABLE_UNITS, NEW_TABLE, IN_FLIGHT = 40_000, 4_000, 120_000
TABLES = ("catalog", "jobs", "runs")

Found = Mapping[str, Any]
Row = Iterable[object]


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of jobs a day takes: rates by the second, on average and in the steepest minute."""

    millions: int
    mean: float
    peak: float
    emr_starts: float
    writes: Mapping[str, float]  # units a second of each table and its indexes, at the peak
    reads: float  # the same of all tables
    wake: float  # writes a second of the wake index that takes most
    concurrency: float  # Lambdas at the peak
    sqs: float  # requests a day
    usd: float  # a day, all in
    emitter: float  # timers a second of one emitter

    @property
    def emr_vcpus(self) -> float:
        return self.emr_starts * RUN_S * RUN_VCPUS

    @property
    def wake_shards(self) -> int:
        return max(_default("wake_shards"), math.ceil(self.wake / (AT_MOST * KEY_WRITES)))

    @property
    def history_shards(self) -> int:
        return max(_default("history_shards"), math.ceil(self.peak / (AT_MOST * KEY_WRITES)))

    @property
    def burst_concurrency(self) -> int:
        """BurstConcurrency, if the jobs of the peak are due at whole seconds: for their fires and their messages."""
        at_once = self.peak / self.emitter + self.peak / bursts.LEAST * HOLD_S
        return max(bursts.MESSAGES, math.ceil(at_once / AT_MOST))

    @property
    def warm(self) -> int:
        """WarmWriteUnits: 0 if a new table takes the peak."""
        most = max(self.writes.values()) / AT_MOST
        return 0 if most <= NEW_TABLE else math.ceil(most / 1_000) * 1_000


def load(millions: int, found: Found) -> Load:
    """The load of so many million jobs a day, in the mix of `benchmarks/history/capacity.py`."""
    paths = {one["path"]: one for one in found["cost"]}
    shares = {path: count / MILLION for path, count in MIX.items()}

    def per_job(value: Callable[[Found], float]) -> float:
        return sum(share * value(paths[path]) for path, share in shares.items())

    def of_table(table: str, *names: str) -> Callable[[Found], float]:
        return lambda path: sum(each[name] for each in path["writes"] if each["table"] == table for name in names)

    mean = millions * MILLION / DAY_S
    peak = PEAK * mean
    wakes = (per_job(_wake_writes(table)) for table in TABLES)
    return Load(
        millions,
        mean,
        peak,
        emr_starts=mean * (shares["cron_to_emr"] + shares["partition_to_emr"]),
        writes={table: peak * per_job(of_table(table, "table_units", "index_units")) for table in TABLES},
        reads=peak * per_job(lambda path: path["read_units"]),
        wake=peak * max(wakes),
        concurrency=peak * per_job(lambda path: path["lambda_gb_s"]) / GB_A_LAMBDA,
        sqs=millions * MILLION * per_job(lambda path: _sqs(path["calls"])),
        usd=bill.total(millions, found) / bill.DAYS,
        emitter=found["aws_model"]["emission"][0]["per_second"],
    )


def _wake_writes(table: str) -> Callable[[Found], float]:
    """The writes of a wake index by a job. A run has three entries in other indexes, made by its first write."""
    others = 3 if table == "runs" else 0

    def of(path: Found) -> float:
        writes = [each for each in path["writes"] if each["table"] == table]
        return max(0.0, sum(float(each["index_units"]) for each in writes) - others)

    return of


def _sqs(calls: Mapping[str, float]) -> float:
    return sum(count for name, count in calls.items() if name.startswith("sqs:"))


def _default(name: str) -> int:
    return int(str(Settings.__dataclass_fields__[name].default))


def _needs(found: Found) -> str:
    loads = [load(millions, found) for millions in DAYS]

    def row(what: str, shown: Callable[[Load], object]) -> Row:
        return (what, *(shown(each) for each in loads))

    rows = [
        row("jobs a second, on average", lambda one: f"{one.mean:,.0f}"),
        row(f"in the steepest minute ({PEAK} times that)", lambda one: f"{one.peak:,.0f}"),
        row("StartJobRun a second", lambda one: f"{one.emr_starts:,.2f}"),
        row("EMR runs at a time", lambda one: f"{one.emr_starts * RUN_S:,.0f}"),
        *(row(f"write units a second of `{table}`, at the peak", partial(_writes, table)) for table in TABLES),
        row("read units a second, at the peak", lambda one: f"{one.reads:,.0f}"),
        row("Lambdas at once, at the peak", lambda one: f"{one.concurrency:,.0f}"),
        row("SQS requests a day", lambda one: f"{one.sqs / MILLION:,.1f} M"),
        row("`WakeShards`", lambda one: one.wake_shards),
        row("`HistoryShards`, if one namespace has all", lambda one: one.history_shards),
        row("`WarmWriteUnits`", lambda one: f"{one.warm:,}"),
        row("`BurstConcurrency`", lambda one: f"{one.burst_concurrency:,}"),
        row("**dollars a day**, all in, without EMR's bill", lambda one: f"**{one.usd:,.0f}**"),
    ]
    return markdown(("a day of", *(f"{millions} M jobs" for millions in DAYS)), rows)


def _writes(table: str, one: Load) -> str:
    return f"{one.writes[table]:,.0f}"


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota of a new account, or a parameter: how much of it a million jobs a day use."""

    what: str
    quota: float
    of_a_million: float
    ask: str

    @property
    def millions(self) -> float:
        """The jobs a day, in millions, from which on it has to be raised."""
        return AT_MOST * self.quota / self.of_a_million


def limits(found: Found) -> list[Limit]:
    """The limits in the order in which a growing load meets them."""
    one = load(1, found)
    shards = _default("wake_shards"), _default("history_shards")
    most = max(one.writes, key=lambda table: one.writes[table])
    made = [
        Limit("EMR Serverless: vCPUs of the account", EMR_VCPUS, one.emr_vcpus, "Service Quotas, EMR Serverless"),
        Limit(
            "EMR Serverless: StartJobRun a second", EMR_STARTS, one.emr_starts, "Service Quotas; `EmrStartsPerSecond`"
        ),
        Limit("Lambda: concurrent executions", CONCURRENCY, one.concurrency, "Service Quotas, AWS Lambda"),
        Limit(f"DynamoDB: a new table (`{most}`)", NEW_TABLE, one.writes[most], "`WarmWriteUnits`"),
        Limit("DynamoDB: write units of a table", TABLE_UNITS, one.writes[most], "Service Quotas, DynamoDB"),
        Limit("the parts of the wake indexes", shards[0] * KEY_WRITES, one.wake, "`WakeShards`"),
        Limit("the parts of the indexes of runs", shards[1] * KEY_WRITES, one.peak, "`HistoryShards`"),
        Limit("SQS: messages in flight of a queue", IN_FLIGHT, 10 * one.concurrency, "AWS Support"),
    ]
    return sorted(made, key=lambda limit: limit.millions)


def _first_limits(found: Found) -> str:
    rows = [(each.what, f"{each.quota:,.0f}", _jobs(each.millions), each.ask) for each in limits(found)]
    return markdown(("limit", "of a new account", "reached at jobs a day", "raise it by"), rows)


def _jobs(millions: float) -> str:
    return f"{millions:,.1f} M" if millions >= 1 else f"{millions * MILLION:,.0f}"


def _quotas(found: Found) -> str:
    """What to ask for, for each number of jobs: only what exceeds the quota of a new account."""
    rows = []
    for millions in DAYS:
        for each in limits(found):
            needed = each.of_a_million * millions / AT_MOST
            if needed > each.quota and "parts of" not in each.what and "new table" not in each.what:
                rows.append((f"{millions} M", each.what, f"{each.quota:,.0f}", f"{math.ceil(needed):,}"))
    return markdown(("jobs a day", "quota", "of a new account", "ask for"), rows)


def _bill(found: Found) -> str:
    """Each line of the bill, idle and with a million jobs a day."""
    idle, busy = ({line.what: line for line in bill.lines(millions, found)} for millions in (0, 1))
    rows = []
    for what in dict.fromkeys([*idle, *busy]):
        each = ((line.amount, f"{line.usd:,.2f}") if line else ("", "") for line in (idle.get(what), busy.get(what)))
        rows.append((what, *(cell for cells in each for cell in cells)))
    totals = [bill.total(millions, found) for millions in (0, 1)]
    rows.append(("**a month**", *(cell for total in totals for cell in ("", f"**{total:,.2f}**"))))
    rows.append(("**a day**", *(cell for total in totals for cell in ("", f"**{total / bill.DAYS:,.2f}**"))))
    return markdown(("what", "idle", "$ a month", "a million jobs a day", "$ a month"), rows)


def _bill_options(found: Found) -> str:
    rows = [(what, price, f"{idle:,.2f}", f"{busy:,.2f}") for what, price, idle, busy in bill.options(found)]
    return markdown(("off by default", "price", "idle, $ a month", "a million jobs a day, $ a month"), rows)


CAPACITY: Mapping[str, Callable[[Found], str]] = {
    "needs": _needs,
    "bill": _bill,
    "bill_options": _bill_options,
    "first_limits": _first_limits,
    "quotas": _quotas,
}


def main() -> None:
    """Rewrite the tables of the page."""
    PAGE.write_text(page(PAGE.read_text(), results.read(), CAPACITY))


if __name__ == "__main__":
    main()
