"""The aims of scale, and whether the figures of `results.json` meet them. Nothing is measured here.

`docs/performance.md` shows them. A test fails if a figure misses its aim without a reason in `MISSED`, or meets one
that has a reason. It also fails if a figure is older than the recorded CPU or the assumptions of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Found = Mapping[str, Any]
# Aims for the dollars of a million runs. All but that of batches are those of the first design, which reckoned without
# the leases and transactions of deliveries, and without readable rows of runs.
DOLLARS = {"cron_to_sqs": 10, "batch_to_sqs": 1, "cron_to_emr": 30, "partition_to_emr": 37}
WHY_DEARER = "missed: [each write that it takes, and why it stays](../decisions/0092-writes-that-a-run-keeps.md)"
# Why an aim is missed, by its name. Empty if all are met.
DEARER = ("cron_to_sqs", "cron_to_emr", "partition_to_emr")
MISSED: Mapping[str, str] = {f"a million runs of {path}": WHY_DEARER for path in DEARER}
# Scenarios that are not in the results yet, by what is assumed, group and what they are about, with what was found out
# so far. The next `make bench ONLY=aws_model` plays them, and a test then demands that they leave this list.
NOT_PLAYED: Mapping[tuple[str, str, str], str] = {}


@dataclass(frozen=True, slots=True)
class Aim:
    """``figure`` must be below ``limit``, or at least it with ``at_least``. ``kind``: how the figure came about."""

    what: str
    figure: Callable[[Found], float]
    limit: float
    unit: str = ""
    at_least: bool = False
    kind: str = "predicted"

    def value(self, found: Found) -> float | None:
        """The figure; None if its scenario is not in the results."""
        try:
            return self.figure(found)
        except (KeyError, StopIteration):
            return None

    def meets(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value < self.limit


def _of(group: str, about: str, *names: str) -> Callable[[Found], float]:
    """A figure of the model's entry about this."""

    def figure(found: Found) -> float:
        value: Any = next(one for one in found["aws_model"][group] if one["about"] == about)
        for name in names:
            value = value[name]
        return float(value)

    return figure


def _share(emitters: int) -> Callable[[Found], float]:
    def figure(found: Found) -> float:
        entries = [one for one in found["aws_model"]["emission"] if one["timers"] == 10_000]
        rates = {one["emitters"]: one["per_second"] for one in entries}
        return float(rates[emitters] / (emitters * rates[1]))

    return figure


def _dollars(path: str) -> Callable[[Found], float]:
    return lambda found: float(next(one for one in found["cost"] if one["path"] == path)["usd_per_million"])


WIDE = "warm, 16 shards"
AIMS = (
    Aim("10,000 jobs at one instant are out", _of("burst", "10,000 schedules", "seconds"), 1.5, "s"),
    Aim(
        "100,000 jobs at one instant are out, `BurstConcurrency=150`",
        _of("burst", f"100,000, {WIDE}", "seconds"),
        10,
        "s",
    ),
    Aim(
        "100,000 fires within a minute: p99",
        _of("steady", f"1,667 a second, {WIDE}", "lateness_ms", "p99"),
        2_000,
        "ms",
    ),
    Aim("12 fires a second: p99", _of("steady", "12 a second", "lateness_ms", "p99"), 1_000, "ms"),
    Aim("three emitters, share of linear", _share(3), 0.8, at_least=True),
    Aim("five emitters, share of linear", _share(5), 0.8, at_least=True),
    Aim("10,000 overdue jobs are found: ticks", _of("overdue", "overdue alone", "ticks"), 3),
    Aim("the same beside 10,000 timers: ticks", _of("overdue", "beside as many timers", "ticks"), 3),
    Aim("a tick with both", _of("overdue", "beside as many timers", "longest_tick_s"), 60, "s"),
    *(
        Aim(f"a {cause} wakes {jobs} jobs: Lambdas out of time", _of("waking", f"{cause} of {jobs}", "died"), 1)
        for cause in ("resume", "success")
        for jobs in ("1,000", "10,000")
    ),
    *(
        Aim(f"a policy of {about}: share in a backlog", _of("policies", about, "share_in_backlog"), 0.95, at_least=True)
        for about in ("1 in 5 s", "10 in 1 s", "100 in 1 s", "200 in 1 s", "500 in 1 s, warm")
    ),
    Aim("1,000 schedules in one PUT", _of("registration", "1,000 in one PUT", "seconds"), 6, "s"),
    Aim("10,000 schedules by upload: Lambdas that ran out of time", _of("upload", "10,000 uploaded", "died"), 1),
    Aim("single PUTs a second of 10 clients", _of("puts", "10 clients", "per_second"), 100, at_least=True),
    Aim(
        "queries of an idle tick",
        lambda found: float(found["cost_idle_tick"]["calls"]["dynamodb:Query"]),
        21,
        kind="counted",
    ),
    Aim(
        "units of a tick among a million schedules, by those among a thousand",
        lambda found: float(found["tick"]["growth"]["read_units"]),
        1.1,
        kind="counted",
    ),
    *(
        Aim(f"a million runs of {path}", _dollars(path), most, "dollars", kind="counted")
        for path, most in DOLLARS.items()
    ),
)


def rows(found: Found) -> Iterator[tuple[str, str, str, str, str, str]]:
    """What, the aim, the figure, the pessimistic one, how they came about, and whether the first meets the aim or why
    not."""
    promised = {"aws_model": found.get("aws_model_pessimistic", {})}
    for aim in AIMS:
        unit = f" {aim.unit}" if aim.unit else ""
        limit = f"{'at least' if aim.at_least else 'below'} {aim.limit:,g}{unit}"
        value, late = aim.value(found), aim.value(promised)
        shown = "" if late is None else _figure(late, unit)
        if value is None:
            yield aim.what, limit, "", shown, aim.kind, MISSED.get(aim.what, "not known yet")
            continue
        said = "met" if aim.meets(value) else MISSED.get(aim.what, "missed")
        yield aim.what, limit, _figure(value, unit), shown, aim.kind, said


def _figure(value: float, unit: str) -> str:
    """Four digits, or all digits before the point."""
    return f"{value:,.0f}{unit}" if abs(value) >= 1_000 else f"{value:,.4g}{unit}"
