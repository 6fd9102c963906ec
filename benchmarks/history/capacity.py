"""A day of a million jobs, computed from measurements: the cost of a run by its path, and the history by size (W11).

Nothing is measured here. Every figure is measured elsewhere, a price, or a constant below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.targets.bills import LIST
from chalicelib.settings import Settings

DAY_S = 86_400
MILLION = 1_000_000
# The mix of the requirement: as many EMR starts as one per second allows, the rest are deliveries. Half of each are of
# the more expensive measured kind, half of the cheaper.
MIX = {"cron_to_emr": 40_000, "partition_to_emr": 40_000, "cron_to_sqs": 460_000, "batch_to_sqs": 460_000}
EMR_STARTS = MIX["cron_to_emr"] + MIX["partition_to_emr"]
ROWS_A_DAY, KEPT_DAYS = MILLION, 180
BURST = 10_000
# https://aws.amazon.com/dynamodb/pricing/ and /s3/pricing/, us-east-1, standard classes, per GB and month
TABLE_GB, LAKE_GB = 0.25, 0.023
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html: overhead per item and
# per index entry, and the size of an entry of one of the three history indexes: its key and the table's.
OVERHEAD, INDEX_ENTRY, INDEXES = 100, 260, 3
GB_A_LAMBDA = 0.5  # .chalice/config.json
MAX_VCPUS = 40  # maximum of a job on the history: 20 executors of 2, `sluice/system_app.yaml`
KEY_WRITES = 1_000  # writes per second that one partition key sustains
# The default number of parts of a history index.
SHARDS = int(str(Settings.__dataclass_fields__["history_shards"].default))

Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the model: the quantity, its value with the unit, and its source."""

    what: str
    figure: str
    how: str


def model(found: Found) -> list[Line]:
    """The lines that can be computed from the results; none without the cost of a run."""
    if "cost" not in found:
        return []
    paths = {one["path"]: one for one in found["cost"]}
    return [*_day(paths, found), *_shown(found), *_keys(paths, found), *_table(paths), *_lake(found)]


def _shown(found: Found) -> list[Line]:
    """The measured lines: the pace of such a day, and its largest burst."""
    lines = []
    if (steady := found.get("steady")) is not None:
        pace, jobs, p99 = steady["offered_per_second"], steady["jobs"], steady["lateness_ms"]["p99"]
        figure = f"p99 {p99:,} ms late, {steady['missed']} missed, {steady['doubled']} doubled"
        what = f"{pace} deliveries a second, {pace * DAY_S / MILLION:.2f} M a day"
        lines.append(Line(what, figure, f"measured on two cores, {jobs:,} of them: `steady`"))
    if (burst := found.get("burst")) is not None and burst["jobs"] == BURST:
        figure = f"all in {burst['seconds']} s, {burst['missed']} missed, {burst['doubled']} doubled"
        lines.append(Line(f"{BURST:,} due at one instant", figure, "measured on two cores: `burst`"))
    return lines


def _day(paths: Found, found: Found) -> list[Line]:
    def total(name: str) -> float:
        return float(sum(count * paths[path][name] for path, count in MIX.items()))

    def calls(service: str) -> float:
        counts = ((count, paths[path]["calls"]) for path, count in MIX.items())
        return float(sum(count * sum(n for name, n in of.items() if name.startswith(service)) for count, of in counts))

    writes, reads, gb_s = total("write_units"), total("read_units"), total("lambda_gb_s")
    idle = found.get("cost_idle_tick", {"usd_per_million": 0.0})["usd_per_million"] * 1_440 / MILLION
    dollars = total("usd_per_million") / MILLION + idle
    mix = ", ".join(f"{count:,} {path}" for path, count in MIX.items())
    return [
        Line("jobs a day", f"{sum(MIX.values()):,}", mix),
        Line("EMR starts", f"{EMR_STARTS / DAY_S:.2f} a second, {EMR_STARTS / DAY_S:.0%} of the quota", "one a second"),
        Line(
            "DynamoDB writes", f"{writes / MILLION:.1f} M units, {writes / DAY_S:,.0f} a second", "units of each path"
        ),
        Line("DynamoDB reads", f"{reads / MILLION:.1f} M units, {reads / DAY_S:,.0f} a second", "the same"),
        Line(
            "Lambda",
            f"{gb_s / 1000:,.0f} k GB-s, {gb_s / GB_A_LAMBDA / DAY_S:.0f} at once on average",
            "512 MB each, as most have",
        ),
        Line("SQS", f"{calls('sqs:') / MILLION:.1f} M requests", "without those of idle pollers"),
        Line("dollars a day", f"${dollars:.2f}", "all of the above, and 1,440 ticks; capacity.md has the whole bill"),
    ]


def _keys(paths: Found, found: Found) -> list[Line]:
    """The keys that all work uses, in writes per second, against the thousand that one key sustains."""
    lines = [
        Line(
            "hottest key, EMR", "2 units a second", "the pace of an application: one transaction a start, one a second"
        ),
        Line(
            "hottest key, a day's history of one namespace",
            f"{MILLION / DAY_S / SHARDS:.1f} a second of {KEY_WRITES:,}",
            f"a million runs of one namespace over {SHARDS} parts of its index",
        ),
    ]
    burst = found.get("burst")
    if burst is not None:
        pace = burst["per_second"]
        figure = f"{pace / SHARDS:.0f} a second of {KEY_WRITES:,}; {BURST / pace:.0f} s for {BURST:,}"
        lines.append(Line("the same in a burst", figure, f"{pace} deliveries a second, as measured on two cores"))
    return lines


def _table(paths: Found) -> list[Line]:
    size = max(write["bytes"] for write in paths["cron_to_sqs"]["writes"] if write["row"] == "RUN")
    rows = ROWS_A_DAY * KEPT_DAYS
    entries = INDEXES * (INDEX_ENTRY + OVERHEAD)
    gb = rows * (size + OVERHEAD + entries) / 1e9
    how = f"{size} bytes a run, {INDEXES} index entries of {INDEX_ENTRY}, {OVERHEAD} bytes beside each"
    return [
        Line("rows kept", f"{rows / MILLION:.0f} M", f"{KEPT_DAYS} days"),
        Line("runs table", f"{gb:,.0f} GB, ${gb * TABLE_GB:,.0f} a month", how),
    ]


def _lake(found: Found) -> list[Line]:
    if "history" not in found:
        return []
    sizes = found["history"]["sizes"]
    last, rows = sizes[-1], ROWS_A_DAY * KEPT_DAYS
    raw, parquet = (last[name] * 1e6 / last["rows"] for name in ("raw_mb", "parquet_mb"))
    gb = rows * (raw + parquet) / 1e9
    lines = [
        Line(
            "lake",
            f"{gb:,.0f} GB, ${gb * LAKE_GB:,.2f} a month",
            f"{raw:.0f} + {parquet:.0f} bytes a row, raw and Parquet",
        )
    ]
    for step in ("compact", "report"):
        cpu = _cpu_per_row(sizes, step)
        # A vCPU of EMR is a hardware thread, as a core of this machine is; 4 GB go with each here.
        hours = rows * cpu / 3600
        dollars = hours * (LIST.vcpu_hour + 4 * LIST.memory_gb_hour)
        day = ROWS_A_DAY * cpu / 60
        lines.append(
            Line(
                f"{step}, {rows / MILLION:.0f} M rows",
                f"{hours:.1f} vCPU-hours, ${dollars:.2f}; a day {day:.1f} vCPU-minutes",
                f"{cpu * 1e6:.0f} CPU s a million rows, growth alone, 4 GB a vCPU",
            )
        )
        lines.append(
            Line(
                f"{step}, at once",
                f"{hours * 60 / MAX_VCPUS:.0f} min on {MAX_VCPUS} vCPUs with {4 * MAX_VCPUS} GB",
                _memory(sizes, step),
            )
        )
    return lines


def _memory(sizes: list[Any], step: str) -> str:
    """The growth of memory with the rows: whether more rows need larger workers, or only more workers."""
    first, last = sizes[0], sizes[-1]
    grown, times = last[step]["peak_mb"] / first[step]["peak_mb"], last["rows"] / first["rows"]
    peak = f"{last[step]['peak_mb']:,} MB at most for {last['rows']:,} rows"
    return f"{peak}; {grown:.1f} times that of {times:.0f} times fewer rows"


def _cpu_per_row(sizes: list[Any], step: str) -> float:
    """The CPU seconds per row: the difference of two sizes, because both include the start of Spark; all of a single
    size."""
    first, last = sizes[0], sizes[-1]
    if len(sizes) == 1:
        return float(last[step]["cpu_seconds"] / last["rows"])
    return float((last[step]["cpu_seconds"] - first[step]["cpu_seconds"]) / (last["rows"] - first["rows"]))
