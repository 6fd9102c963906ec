"""The product's own code in this process, with the tables and queues of a local cloud."""

from __future__ import annotations

import os
import time
from typing import Any
from unittest.mock import patch

import boto3

from benchmarks.cloud import Running
from chalicelib import wiring
from chalicelib.ports import Ports
from sluice.client import Client

NAMESPACE, APP = "bench", "load"
RECORD_POLL_EVERY_S = 0.5
# More than a minute: the next tick finds what a Lambda that died has not recorded.
RECORD_PATIENCE_S = 90.0


def ports_of(cloud: Running) -> Ports:
    """The ports of a Lambda. Each call returns a new set, so that each thread or process has its own clients."""
    with patch.dict(os.environ, environment(cloud)):
        # boto3's default session may have the credentials of an earlier cloud.
        boto3.setup_default_session()
        return wiring.ports.__wrapped__()


def environment(cloud: Running) -> dict[str, str]:
    """The variables that the stack sets for its Lambdas (infra/resources/functions.yaml), and the cloud's addresses."""
    outputs = cloud.endpoints.outputs
    names = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "LAKE_BUCKET", "CONTROL_BUCKET", "HINTS_QUEUE_URL")
    variables = {f"SLUICE_{name}": outputs["".join(part.capitalize() for part in name.split("_"))] for name in names}
    return cloud.endpoints.environment() | variables


def wait_for_records(cloud: Running, runs: int) -> int:
    """Wait until the cloud has recorded this many runs, or none is added for a while. Returns how many there are.

    The emulator counts a table's items at once; in AWS the count is hours old."""
    client, name = cloud.client("dynamodb"), cloud.endpoints.outputs["RunsTable"]
    count, since = 0, time.monotonic()
    while count < runs and time.monotonic() - since < RECORD_PATIENCE_S:
        now = int(client.describe_table(TableName=name)["Table"]["ItemCount"])
        if now > count:
            count, since = now, time.monotonic()
        if count < runs:
            time.sleep(RECORD_POLL_EVERY_S)
    return count


def deploy(cloud: Running, app: dict[str, Any]) -> Any:
    """Deploy an app through the API, as users do."""
    with patch.dict(os.environ, cloud.endpoints.environment()):
        client = Client.from_environment()
        client.put(f"/v1/namespaces/{NAMESPACE}", {})
        return client.put(f"/v1/namespaces/{NAMESPACE}/apps/{APP}", app)
