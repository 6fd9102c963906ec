"""The product's own code in this process, with the tables and queues of a local cloud."""

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


def deploy(cloud: Running, app: dict[str, Any]) -> Any:
    """Deploy an app through the API, as users do."""
    with patch.dict(os.environ, cloud.endpoints.environment()):
        client = Client.from_environment()
        client.put(f"/v1/namespaces/{NAMESPACE}", {})
        return client.put(f"/v1/namespaces/{NAMESPACE}/apps/{APP}", app)
