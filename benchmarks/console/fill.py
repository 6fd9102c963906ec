"""Store the world of `world.py` in the tables of a local cloud, and its report in the lake."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from benchmarks.cloud import Running
from benchmarks.console.copies import Shards
from benchmarks.console.world import NAMESPACE, Size, Stored, everything
from benchmarks.product import ports_of
from benchmarks.progress import Progress
from chalicelib.core.instants import DAY, iso
from chalicelib.flow.history.reports import LINES_A_FILE, ROOT

BATCH_SIZE = 25  # the most that DynamoDB takes in one call
WRITERS = 3
AHEAD = 60  # batches that wait for a writer
RUN = f"RUN#{NAMESPACE}.a1.fed-00001."


def fill(cloud: Running, size: Size, progress: Progress) -> tuple[str, int]:
    """Store everything. Returns the id of a run that has ended, and the number of items."""
    _stop_tick(cloud)
    _stop_queues(cloud)
    logging.disable(logging.INFO)  # what the product logs while it plays the seed
    settings = ports_of(cloud).settings
    items = everything(time.time_ns() // 1_000_000, size, Shards(settings.wake_shards, settings.history_shards))
    run_id, count = "", 0
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [cloud.client("dynamodb") for _ in range(WRITERS)]
        waiting: list[Future[None]] = []
        while batch := list(islice(items, BATCH_SIZE)):
            count += len(batch)
            run_id = run_id or _run_in(batch)
            waiting.append(pool.submit(_store, writers[count // BATCH_SIZE % WRITERS], cloud, batch))
            if len(waiting) >= AHEAD:
                waiting.pop(0).result()
                progress("storing items", count, size.runs * 2 + size.schedules * 4)
        for each in waiting:
            each.result()
    if not run_id:
        raise RuntimeError(f"expected a run of {RUN}, got none")
    _report(cloud)
    return run_id, count


def _stop_tick(cloud: Running) -> None:
    """Stop the tick: the targets do not know the runs, and what waits must go on waiting."""
    events = cloud.client("events")
    rules = [rule["Name"] for rule in events.list_rules()["Rules"] if rule["Name"].endswith("-tick")]
    if not rules:
        raise RuntimeError("expected a rule of the tick, got none")
    for name in rules:
        events.disable_rule(Name=name)


def _stop_queues(cloud: Running) -> None:
    """Stop what follows a write. The history of the stored runs would be copied to the lake, and each object there
    checks the schedules that compact it."""
    functions = cloud.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


def _run_in(batch: list[Stored]) -> str:
    """The id of the first run of a schedule that partitions start; empty if the batch has none."""
    found = (item["pk"]["S"] for table, item in batch if table == "RunsTable" and item["pk"]["S"].startswith(RUN))
    return next((pk.removeprefix("RUN#") for pk in found), "")


def _store(client: Any, cloud: Running, batch: list[Stored]) -> None:
    pending: dict[str, Any] = {}
    for table, item in _last(batch):
        pending.setdefault(cloud.endpoints.outputs[table], []).append({"PutRequest": {"Item": item}})
    while pending:
        pending = client.batch_write_item(RequestItems=pending)["UnprocessedItems"]


def _last(batch: list[Stored]) -> Iterator[Stored]:
    """The items of a batch, of those with one key the last: a batch may name a key once only."""
    return iter({(table, item["pk"]["S"], item["sk"]["S"]): (table, item) for table, item in batch}.values())


def _report(cloud: Running) -> None:
    """The report of yesterday, in the form in which the job `history_report` writes it."""
    s3, bucket = cloud.client("s3"), cloud.endpoints.outputs["LakeBucket"]
    day = iso(time.time_ns() // 1_000_000 - DAY)[:10]
    root = f"{ROOT}day={day}/as_of=20260303T011500.000Z/"
    lines = [json.dumps(_line(number)) for number in range(LINES_A_FILE)]
    s3.put_object(Bucket=bucket, Key=f"{root}namespace={NAMESPACE}/part-0.c000.json", Body="\n".join(lines).encode())
    s3.put_object(Bucket=bucket, Key=f"{root}_SUCCESS", Body=b"")


def _line(number: int) -> dict[str, Any]:
    runs = Counter(runs=20 + number % 80, failed=number % 3)
    return {
        "workflow": f"{NAMESPACE}.a1.w{number:04d}",
        "runs": runs["runs"],
        "succeeded": runs["runs"] - runs["failed"],
        "failed": runs["failed"],
        "success_rate": round(1 - runs["failed"] / runs["runs"], 4),
        "duration_p50_ms": 60_000 + number,
        "duration_p95_ms": 120_000 + number,
        "cost_usd": round(1.25 + number / 100, 2),
    }
