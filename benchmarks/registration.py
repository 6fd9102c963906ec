"""registration: one app with 1,000 schedules, deployed through the API of a local cloud, and then again unchanged."""

from __future__ import annotations

import os
import time
from typing import Any
from unittest.mock import patch

from rich.table import Table

from benchmarks.cloud import Running, own_cloud
from benchmarks.measurement import Results
from benchmarks.product import APP, NAMESPACE
from benchmarks.progress import Progress
from sluice.client import Client
from sluice.errors import Failure

SCHEDULES = int(os.environ.get("SLUICE_BENCH_SCHEDULES", "1000"))
# A repeat of the request finishes an interrupted deployment (API Gateway answers after at most 29 s).
MAX_REQUESTS = 10
# A namespace may name queues of its own account; ministack's is this one.
QUEUE = {"type": "sqs", "queue_url": "https://sqs.us-east-1.amazonaws.com/000000000000/sluice-target-notify"}
DAILY = {"workflow": "notify", "enabled": True, "trigger": {"type": "time", "expression": "0 5 * * *"}}


def measure(progress: Progress) -> Results:
    progress("starting a cloud")
    with own_cloud() as cloud:
        document = app_of(SCHEDULES)
        with patch.dict(os.environ, cloud.endpoints.environment()):
            client = Client.from_environment()
            client.put(f"/v1/namespaces/{NAMESPACE}", {})
            progress(f"deploying {SCHEDULES:,} schedules")
            seconds, requests = deployed(client, document)
            progress("the same once more")
            again, _ = deployed(client, document)
        stored = count(cloud)
    if stored != SCHEDULES:
        raise RuntimeError(f"expected {SCHEDULES} schedules, got {stored}")
    return {"registration": figures(SCHEDULES, seconds, requests, again)}


def figures(schedules: int, seconds: float, requests: int, again: float) -> dict[str, Any]:
    """The figures of a registration, here and in the model of AWS. ``again`` are the seconds of the unchanged one."""
    return {
        "schedules": schedules,
        "seconds": round(seconds, 2),
        "per_second": round(schedules / seconds, 1),
        "requests": requests,
        "unchanged_seconds": round(again, 2),
    }


def app_of(schedules: int) -> dict[str, Any]:
    return {
        "workflows": {"notify": {"target": QUEUE}},
        "schedules": {f"daily-{number:04d}": DAILY for number in range(schedules)},
    }


def deployed(client: Client, document: dict[str, Any]) -> tuple[float, int]:
    """The seconds and the number of requests of a deployment: one request, unless it was interrupted."""
    begun = time.monotonic()
    for requests in range(1, MAX_REQUESTS + 1):
        try:
            client.put(f"/v1/namespaces/{NAMESPACE}/apps/{APP}", document)
        except Failure:
            if requests == MAX_REQUESTS:
                raise
        else:
            return time.monotonic() - begun, requests
    raise AssertionError("unreachable")


def count(cloud: Running) -> int:
    """The number of schedules that have a schedule state."""
    pages = cloud.client("dynamodb").get_paginator("query")
    values = {":app": {"S": f"APP#{NAMESPACE}.{APP}"}, ":schedule": {"S": "SCHEDULE#"}}
    condition = "pk = :app AND begins_with(sk, :schedule)"
    query = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "Select": "COUNT"}
    return sum(page["Count"] for page in pages.paginate(TableName=cloud.endpoints.outputs["CatalogTable"], **query))


def tables(results: Results) -> list[Table]:
    one = results["registration"]
    title = "registration: one app through the API"
    table = Table("schedules", "seconds", "per second", "requests", "again, unchanged, s", title=title)
    table.title_justify = "left"
    names = ("schedules", "seconds", "per_second", "requests", "unchanged_seconds")
    table.add_row(*(str(one[name]) for name in names))
    return [table]
