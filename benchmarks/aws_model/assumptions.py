"""What the model assumes of AWS: every number that is not counted, in one place, with its origin.

`Assumptions()` has the defaults. `with_changes` replaces some of them by name, and `calibrate` those that a real
account has measured. Durations are in ms; a call's duration is lognormal around its median.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WHOLE_CPU_MB = 1769


@dataclass(frozen=True, slots=True)
class Call:
    """A call to AWS: its median duration, and the CPU of boto3 in the caller; each with a part for every item."""

    ms: float
    ms_per_item: float = 0.0
    cpu_ms: float = 0.9
    cpu_ms_per_item: float = 0.0


# Durations are planning figures, not measurements: single-digit milliseconds are what DynamoDB's pages promise for
# single items; the others are usual values inside a region. The CPU of boto3 was measured on the machine of
# docs/internals/measurements.md ("what one call costs").
CALLS: Mapping[str, Call] = {
    "dynamodb:GetItem": Call(4.5),
    "dynamodb:Query": Call(6.0, 0.01, 1.0, 0.03),
    "dynamodb:BatchGetItem": Call(7.0, 0.05, 1.0, 0.045),
    "dynamodb:PutItem": Call(5.5),
    "dynamodb:UpdateItem": Call(5.5),
    "dynamodb:DeleteItem": Call(5.5),
    "dynamodb:BatchWriteItem": Call(8.0, 0.1, 0.9, 0.08),
    "dynamodb:TransactWriteItems": Call(12.0, 0.35, 1.0, 0.09),
    "sqs:SendMessage": Call(10.0, 0, 1.0),
    "sqs:SendMessageBatch": Call(12.0, 0, 0.9, 0.04),
    "sqs:ChangeMessageVisibilityBatch": Call(12.0, 0, 0.9, 0.04),
    "sqs:GetQueueUrl": Call(10.0),
    "s3:PutObject": Call(40.0, 0, 1.5),
    "s3:GetObject": Call(25.0, 0, 1.5),
    "emr-serverless:StartJobRun": Call(180.0, 0, 1.5),
    "emr-serverless:GetJobRun": Call(80.0, 0, 1.2),
}


def _calls() -> dict[str, Call]:
    return dict(CALLS)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of a run of the model."""

    calls: Mapping[str, Call] = field(default_factory=_calls)
    # All durations of calls are multiplied by this; `calibrate` sets it.
    latency_factor: float = 1.0
    # The width of the lognormal: with 0.35 the 99th percentile is 2.3 medians. A few calls are stragglers.
    sigma: float = 0.35
    straggler_share: float = 0.001
    straggler_factor: float = 8.0
    # A CPU of Lambda equals this many of the machine on which the CPU was recorded.
    cpu_factor: float = 1.0

    # Lambda. https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html and scaling-behavior.html
    account_concurrency: int = 1_000
    environments_per_10_s: int = 1_000
    invoke_ms: float = 8.0  # from the request until the handler runs
    runtime_cpu_ms: float = 3.0  # of the runtime, Chalice, the log and the metrics, for each invocation
    cold_start_ms: float = 150.0  # of an environment and its code; the imports come on top
    import_cpu_ms: float = 400.0  # measured: cold_start of docs/internals/measurements.md
    environment_kept_ms: float = 420_000.0
    throttled_retry_ms: float = 1_000.0  # until a poller tries again that Lambda has throttled

    # The pollers of a queue. https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    pollers_at_first: int = 5  # Lambda keeps fewer at idle queues, but not with a maximum of concurrency
    pollers_per_minute: int = 300  # AWS promises "up to" so many
    pollers_idle_ms: float = 60_000.0  # after such a pause there are as many as at first
    batching_window_ms: float = 0.0
    # A waiting poller answers this long after a first message, with all that have come by then. AWS promises nothing.
    gathered_ms: float = 2.0
    # A message is received this long after its delay, which is counted in whole seconds.
    visible_ms: float = 15.0
    repeat_share: float = 0.001  # messages of a standard queue that are delivered twice

    # DynamoDB. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html and
    # on-demand-capacity-mode.html
    key_writes_per_s: float = 1_000.0
    key_reads_per_s: float = 3_000.0
    table_writes_per_s: float = 4_000.0
    table_reads_per_s: float = 12_000.0
    burst_s: float = (
        1.0  # of unused throughput that a key or table may use later; AWS keeps up to 300 s, without promise
    )
    # Whether the keys of a table share its partitions, as they do until DynamoDB isolates a hot key: each partition
    # takes what a key takes, and a hash places the keys. Otherwise each key has a partition of its own.
    shared_partitions: bool = False

    # EMR Serverless. https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/endpoints-quotas.html
    emr_starts_per_s: float = 1.0
    emr_start_burst: float = 25.0
    emr_running_after_ms: float = 30_000.0
    emr_ended_after_ms: float = 90_000.0

    # Events. AWS promises no times; "seconds" is what the pages of S3 say.
    s3_notification_ms: float = 1_500.0
    s3_notification_sigma: float = 0.6
    event_bus_ms: float = 500.0
    # The rule of the tick runs at a constant part of the minute, a little late, and now and then twice.
    tick_late_ms: float = 400.0
    tick_twice_share: float = 0.01
    api_overhead_ms: float = 20.0
    api_timeout_ms: float = 29_000.0

    def with_changes(self, changes: Mapping[str, Any]) -> Assumptions:
        """Other assumptions; those of single calls as ``{"calls": {"dynamodb:GetItem": {"ms": 6}}}``. Raises ValueError
        for an unknown name."""
        given = dict(changes)
        calls = dict(self.calls)
        for name, parts in given.pop("calls", {}).items():
            if name not in calls:
                raise ValueError(f"expected one of {', '.join(calls)}, got {name!r}")
            calls[name] = replace(calls[name], **parts)
        known = {each.name for each in fields(self)}
        if unknown := sorted(given.keys() - known):
            raise ValueError(f"expected names of {', '.join(sorted(known))}, got {', '.join(unknown)}")
        return replace(self, calls=calls, **given)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


# What remains if AWS does no more than it promises. The pollers of a queue stay as many as at first. An environment is
# gone after a short pause, so the first call after it is cold. Keys share partitions, each with 1,000 write and 3,000
# read units a second, and DynamoDB lends next to nothing of what was not used.
PESSIMISTIC: Mapping[str, Any] = {
    "pollers_per_minute": 0,
    "environment_kept_ms": 10_000.0,
    "shared_partitions": True,
    "burst_s": 0.1,
}


class Draws:
    """Random numbers of one run. Equal seeds give equal runs, because tasks run one at a time."""

    def __init__(self, assumed: Assumptions, seed: int) -> None:
        self._assumed = assumed
        self._random = random.Random(seed)

    def duration(self, median: float, sigma: float | None = None) -> float:
        """A duration around its median."""
        drawn = median * math.exp(self._random.gauss(0.0, self._assumed.sigma if sigma is None else sigma))
        return drawn * (self._assumed.straggler_factor if self.happens(self._assumed.straggler_share) else 1.0)

    def call(self, name: str, items: int) -> float:
        assumed = self._assumed.calls[name]
        return self.duration((assumed.ms + assumed.ms_per_item * items) * self._assumed.latency_factor)

    def happens(self, share: float) -> bool:
        return self._random.random() < share

    def between(self, least: float, most: float) -> float:
        return self._random.uniform(least, most)


def cpu_share(memory: int) -> float:
    """The share of one CPU that one thread of a function with this memory (MB) has."""
    return min(memory / WHOLE_CPU_MB, 1.0)
