"""event: from the put of an object to EMR's receipt of StartJobRun, one at a time, on a separate, idle local cloud.

Each repetition puts one object that makes a new partition ready, for a schedule that starts an EMR run per partition.

*Begin* is the wall clock just before `put_object` is called, so it includes signing and sending. *End* is the
emulator's `created_at`, stamped when StartJobRun was parsed and admitted. It is read from the emulator's store, which
has microseconds: GetJobRun returns whole seconds, and a log line is written later. The instants in between are those
that Sluice records on the run, in milliseconds. All clocks are that of the machine.

The repetitions are 1.2 s apart. So the start rate of EMR (1 per second) always has a permit and its burst is not used.
The first few are not counted, because they start the Lambdas; the very first is reported as `cold_s`."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from rich.table import Table

from benchmarks.cloud import Running, own_cloud
from benchmarks.durations import summary
from benchmarks.measurement import Results
from benchmarks.progress import Progress
from chalicelib.aws.tables import items
from chalicelib.core.rows.run import Run
from sluice.client import Client

REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "50"))
WARM_UP = 3
SPACING_S = 1.2
PATIENCE_S = 60.0
PREFIX = "raw/flights/"
APP: dict[str, Any] = {
    "datasets": {"flights": {"bucket": "lake", "prefix": PREFIX, "keys": ["number"]}},
    "workflows": {"clean": {"target": {"type": "emr_serverless", "entry_point": "s3://code/clean.py"}}},
    "schedules": {
        "clean": {
            "workflow": "clean",
            "enabled": True,
            "trigger": {"type": "partition", "dataset": "flights", "by": ["number"]},
        }
    },
}
# The parts, and their descriptions in the table.
PARTS = {
    "put_to_accepted": "S3 notification, queue, Lambda objects, until the partition is read as ready",
    "accepted_to_claimed": "its event applied, hint, queue, until Lambda check reads the clock",
    "claimed_to_requested": "facts read, the claim (one transaction), until the clock is read for the start call",
    "requested_to_received": "context to S3, call on record, schedule state read again, StartJobRun in transit",
}


@dataclass(frozen=True, slots=True)
class Times:
    """The instants of one repetition, in epoch seconds."""

    put: float
    accepted: float
    claimed: float
    requested: float
    received: float

    @property
    def total(self) -> float:
        return self.received - self.put

    def parts(self) -> dict[str, float]:
        return {
            "put_to_accepted": self.accepted - self.put,
            "accepted_to_claimed": self.claimed - self.accepted,
            "claimed_to_requested": self.requested - self.claimed,
            "requested_to_received": self.received - self.requested,
        }


def measure(progress: Progress) -> Results:
    total = WARM_UP + REPETITIONS
    progress("starting a cloud")
    with own_cloud() as cloud:
        _deploy(cloud)
        s3 = cloud.client("s3")
        puts: list[float] = []
        for number in progress.each(range(total), lambda _: "object"):
            puts.append(_put(s3, cloud.endpoints.outputs["LakeBucket"], number))
            _wait_for_runs(cloud, number + 1)
            time.sleep(max(0.0, puts[-1] + SPACING_S - time.time()))
        times = _times(cloud, puts)
    return {"event": figures(times)}


def figures(times: Sequence[Times]) -> dict[str, Any]:
    """The figures of the repetitions after the warm-up."""
    counted = times[WARM_UP:]
    parts = {name: summary([one.parts()[name] for one in counted]) for name in PARTS}
    totals = summary([one.total for one in counted])
    return {"repetitions": len(counted), **totals, "parts": parts, "cold_s": round(times[0].total, 4)}


def tables(results: Results) -> list[Table]:
    result = results["event"]
    title = f"event: S3 put -> StartJobRun received, {result['repetitions']} repetitions, in ms"
    table = Table("part", "p50", "p99", "max", "what it covers", title=title, title_justify="left")
    for name, what in PARTS.items():
        table.add_row(name.replace("_", " "), *_ms(result["parts"][name]), what)
    table.add_row(
        "all", *_ms(result), f"the first one, with Lambdas to start: {result['cold_s'] * 1000:.0f}", style="bold"
    )
    return [table]


def _ms(figures: dict[str, Any]) -> list[str]:
    return [f"{figures[name] * 1000:.1f}" for name in ("p50_s", "p99_s", "max_s")]


def _deploy(cloud: Running) -> None:
    """Deploy through the API, as users do. The name of the lake is in the stack's outputs."""
    with patch.dict(os.environ, cloud.endpoints.environment()):
        client = Client.from_environment()
        client.put("/v1/namespaces/bench", {})
        client.put("/v1/namespaces/bench/apps/event", APP)


def _put(s3: Any, lake: str, number: int) -> float:
    """Put the object of a new partition; return the instant just before."""
    begun = time.time()
    s3.put_object(Bucket=lake, Key=f"{PREFIX}number={number}/part-0.csv", Body=b"one row\n")
    return begun


def _wait_for_runs(cloud: Running, count: int) -> None:
    """Wait until EMR has this number of runs. Polls rarely, so that polling does not disturb the measurement."""
    deadline = time.monotonic() + PATIENCE_S
    while len(_received(cloud)) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected {count} runs at EMR within {PATIENCE_S:.0f} s; see {cloud.layout.aws_log}")
        time.sleep(0.3)


def _received(cloud: Running) -> list[tuple[str, float]]:
    """Name and instant of every StartJobRun that the emulator admitted, in order."""
    store = sqlite3.connect(f"file:{cloud.layout.home / 'emr' / 'emr.sqlite'}?mode=ro", uri=True)
    try:
        rows = store.execute("SELECT json_extract(body, '$.name'), created_at FROM runs ORDER BY seq").fetchall()
    finally:
        store.close()
    return [(str(name), float(at)) for name, at in rows]


def _times(cloud: Running, puts: Sequence[float]) -> list[Times]:
    """Pair each put with the run of its partition, by the number in the run's correlation keys."""
    dynamodb, table = cloud.client("dynamodb"), cloud.endpoints.outputs["RunsTable"]
    by_number: dict[int, Times] = {}
    for name, received in _received(cloud):
        run_id, _, attempt = name.rpartition("-")
        key = {"pk": {"S": f"RUN#{run_id}"}, "sk": {"S": f"A#{int(attempt):03d}"}}
        run = items.from_item(Run, dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"])
        number = int((run.correlation or {})["number"])
        instants = (run.accepted_at or 0, run.claimed_at, run.start_requested_at or 0)
        accepted, claimed, requested = (instant / 1000 for instant in instants)
        by_number[number] = Times(puts[number], accepted, claimed, requested, received)
    if len(by_number) != len(puts):
        raise ValueError(f"expected one run for each of {len(puts)} partitions, got {len(by_number)}")
    return [by_number[number] for number in range(len(puts))]
