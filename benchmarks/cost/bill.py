"""What an installation costs a month, all in: idle, and with so many million jobs a day. PREDICTED: nothing is measured
on AWS. Prices are those of us-east-1 in `prices.py`; counts are those of the template and of `make bench ONLY=cost`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.cost import prices
from benchmarks.cost.prices import MILLION
from benchmarks.cost.tally import LAMBDA_LINES, billed_bytes
from benchmarks.history.capacity import INDEX_ENTRY, INDEXES, KEPT_DAYS, MIX, OVERHEAD
from benchmarks.machine import ROOT
from chalicelib.core.runs.metrics import ALL
from infra import yaml_tags

DAYS, MINUTES = 30, 43_200  # of a month
GB = 1e9
CONTEXT_DAYS = 200  # for which contexts and Spark's logs stay in the control bucket: infra/resources/buckets.yaml
IDLE_METRICS = 1  # OverdueAge, which each tick reports
POLLERS, POLL_S = 5, 20  # of a queue that is idle
# Spark's own logs of a run, in the control bucket: stdout and stderr of a driver and three executors. ASSUMED.
SPARK_LOGS, SPARK_LOG_BYTES = 8, 10_000
LAKE_ROW_MS, LAKE_GB = 1.0, 0.5  # of the Lambda `lake` for a line of the history. ASSUMED.
# X-Ray takes one request a second of each Lambda, and 5% of its others.
# https://docs.aws.amazon.com/xray/latest/devguide/xray-console-sampling.html
TRACED_A_SECOND, TRACED_SHARE = 1, 0.05
PROVISIONED = 5  # pollers, as in `aws_model`

Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill: what, how much of it, and its dollars a month."""

    what: str
    amount: str
    usd: float


@cache
def _resources() -> dict[str, Any]:
    """The resources of the template that `infra/resources/` has."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "infra" / "resources").glob("*.yaml")):
        found |= yaml_tags.load(path.read_text()).get("Resources", {})
    return found


def alarm_metrics() -> int:
    """The metrics that the alarms of the template watch; each is billed. Those of lineage need a receiver of it."""
    found = [one for one in _resources().values() if one.get("Type") == "AWS::CloudWatch::Alarm"]
    alarms = [one["Properties"] for one in found if one.get("Condition") != "LineageIsSentOnAws"]
    return sum(sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in alarms)


def polled_queues() -> int:
    """The queues that invoke Lambdas."""
    events = (one.get("Properties", {}).get("Events", {}) for one in _resources().values())
    return sum(name.endswith("SqsEventSource") for each in events for name in each)


def lines(millions: float, found: Found) -> list[Line]:
    """The bill of a month with so many million jobs a day in the mix of `MIX`; idle for 0."""
    return [
        *_always(bool(millions), found),
        *_logs(millions, found),
        *(_of_jobs(millions, found) if millions else ()),
    ]


def total(millions: float, found: Found) -> float:
    """Dollars a month."""
    return sum(line.usd for line in lines(millions, found))


def _always(busy: bool, found: Found) -> Iterator[Line]:
    tick = found["cost_idle_tick"]["usd_per_million"] / MILLION
    yield Line("ticks", f"{MINUTES:,}", MINUTES * tick)
    if not busy:  # a tick that hints a job pings nothing
        ping = 3 * prices.SQS_REQUEST + prices.LAMBDA_REQUEST + 0.015 * 0.5 * prices.LAMBDA_GB_SECOND
        yield Line("pings that keep `check` warm", f"{MINUTES:,}", MINUTES * ping)
    queues = polled_queues()
    polls = queues * POLLERS * MINUTES * 60 / POLL_S
    receives = f"{queues} queues, {polls / MILLION:.1f} M receives"
    yield Line("polling of queues by Lambda", receives, polls * prices.SQS_REQUEST)
    metrics = sum(max(1, len(measure.reasons)) for measure in ALL) if busy else IDLE_METRICS
    yield Line("alarms", f"{alarm_metrics()} metrics", alarm_metrics() * prices.ALARM_METRIC)
    yield Line("custom metrics", f"{metrics}", metrics * prices.METRIC)
    yield Line("dashboard", "1", prices.DASHBOARD)


def _logs(millions: float, found: Found) -> Iterator[Line]:
    """Logs of Lambda, and the storage of a month, uncompressed."""
    idle = found["cost_idle_tick"]["log_bytes"] + (0 if millions else billed_bytes(LAMBDA_LINES))
    gb = (MINUTES * idle + DAYS * millions * MILLION * _mean(found, "log_bytes")) / GB
    yield Line("logs written", f"{gb:,.2f} GB", gb * prices.LOG_GB)
    yield Line("logs kept for 30 days", f"{gb:,.2f} GB", gb * prices.LOG_GB_MONTH)


def _of_jobs(millions: float, found: Found) -> Iterator[Line]:
    jobs = millions * MILLION
    work = DAYS * jobs * _mean(found, "usd_per_million") / MILLION
    yield Line("work of the jobs: units, Lambda, queues, S3", f"{DAYS * millions:,.0f} M jobs", work)
    rows = jobs * KEPT_DAYS
    row, entries = _row_bytes(found), INDEXES * (INDEX_ENTRY + OVERHEAD)
    stored, recovered = rows * (row + entries) / GB, rows * row / GB
    yield Line("table of runs, after 180 days", f"{stored:,.0f} GB", stored * prices.TABLE_GB)
    without = f"{recovered:,.0f} GB, without global indexes"
    yield Line("its point-in-time recovery", without, recovered * prices.RECOVERY_GB)
    size = found["history"]["sizes"][-1]
    lake = rows * (size["raw_mb"] + size["parquet_mb"]) * 1e6 / size["rows"] / GB
    yield Line("lake, after 180 days", f"{lake:,.0f} GB", lake * prices.S3_GB)
    writing = DAYS * jobs * LAKE_ROW_MS / 1_000 * LAKE_GB * prices.LAMBDA_GB_SECOND
    yield Line("Lambda `lake`", f"{DAYS * millions:,.0f} M lines, assumed {LAKE_ROW_MS:g} ms each", writing)
    contexts = jobs * CONTEXT_DAYS * _mean(found, "stored_bytes") / GB
    yield Line("contexts of runs, after 200 days", f"{contexts:,.0f} GB", contexts * prices.S3_GB)
    runs = jobs * sum(count for path, count in MIX.items() if path.endswith("_emr")) / MILLION
    puts, logs = DAYS * runs * SPARK_LOGS, runs * CONTEXT_DAYS * SPARK_LOGS * SPARK_LOG_BYTES / GB
    amount = f"{puts / MILLION:,.0f} M objects a month, {logs:,.0f} GB, assumed {SPARK_LOGS} of 10 KB a run"
    yield Line("Spark's logs in the control bucket", amount, puts * prices.S3_PUT + logs * prices.S3_GB)


def options(found: Found) -> list[tuple[str, str, float, float]]:
    """What is off by default: the option, its price, and its dollars a month idle and with a million jobs a day."""
    invoked: Counter[str] = Counter()
    for path, count in MIX.items():
        for name, times in _paths(found)[path]["calls"].items():
            if name.startswith("lambda:"):
                invoked[name] += DAYS * count * times
    seconds = DAYS * 86_400 * TRACED_A_SECOND
    traces = sum(min(times, seconds) + TRACED_SHARE * max(0, times - seconds) for times in invoked.values())
    pollers = PROVISIONED * DAYS * 24 * prices.POLLER_HOUR
    return [
        ("`Tracing=Active`", "$5.00 a million traces", MINUTES * prices.TRACE, (MINUTES + traces) * prices.TRACE),
        (f"`BurstMinimumPollers={PROVISIONED}`", f"${prices.POLLER_HOUR} a poller and hour", pollers, pollers),
    ]


def _mean(found: Found, name: str) -> float:
    """A figure of a job, on average over the mix."""
    paths = _paths(found)
    return float(sum(count / MILLION * paths[path][name] for path, count in MIX.items()))


def _row_bytes(found: Found) -> float:
    """The bytes of the rows that a job leaves in the table of runs, with DynamoDB's own for each."""
    paths = _paths(found)

    def left(path: str) -> int:
        sizes = {one["row"]: one["bytes"] for one in paths[path]["writes"] if one["table"] == "runs"}
        return sum(size + OVERHEAD for size in sizes.values())

    return sum(count / MILLION * left(path) for path, count in MIX.items())


def _paths(found: Found) -> dict[str, Any]:
    return {one["path"]: one for one in found["cost"]}
