"""The product's own code in this process, on the tables and queues of a local cloud."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import patch

import boto3

from benchmarks.cloud import Running
from chalicelib import wiring
from chalicelib.ports import Ports
from sluice.client import Client

NAMESPACE, APP = "bench", "load"


def ports_of(cloud: Running) -> Ports:
    """The ports as a Lambda has them. A new set at each call, so that each thread or process has clients of its own."""
    with patch.dict(os.environ, environment(cloud)):
        # The session that boto3 keeps has the credentials of the cloud of an earlier measurement.
        boto3.setup_default_session()
        return wiring.ports.__wrapped__()


def environment(cloud: Running) -> dict[str, str]:
    """What the stack sets for its Lambdas (infra/resources/functions.yaml), and where the cloud is."""
    outputs = cloud.endpoints.outputs
    names = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "LAKE_BUCKET", "CONTROL_BUCKET", "HINTS_QUEUE_URL")
    told = {f"SLUICE_{name}": outputs["".join(part.capitalize() for part in name.split("_"))] for name in names}
    return cloud.endpoints.environment() | told


def deploy(cloud: Running, app: dict[str, Any]) -> Any:
    """Through the API, as users do."""
    with patch.dict(os.environ, cloud.endpoints.environment()):
        client = Client.from_environment()
        client.put(f"/v1/namespaces/{NAMESPACE}", {})
        return client.put(f"/v1/namespaces/{NAMESPACE}/apps/{APP}", app)
