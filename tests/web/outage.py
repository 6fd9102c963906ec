"""Services of AWS that are down for the clients of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from chalicelib.wiring import ports


class Raw:
    """The body of a response, as urllib3 hands it out."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b""


def answers_503(**_: Any) -> AWSResponse:
    return AWSResponse("https://aws.example", 503, {}, Raw())


def is_unreachable(**_: Any) -> None:
    raise EndpointConnectionError(endpoint_url="https://aws.example")


@contextmanager
def down(client: Any, how: Callable[..., Any]) -> Iterator[None]:
    """Every call of a client fails with this error before it leaves the process, and botocore does not retry."""
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-send.{service}", how, "outage")
    client.meta.events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")
    try:
        yield
    finally:
        client.meta.events.unregister(f"before-send.{service}", how, "outage")


@contextmanager
def tables_down(how: Callable[..., Any] = answers_503) -> Iterator[None]:
    """The tables fail each call, and waiting for them takes no time."""
    tables: Any = ports().ledger._ledger  # that of DynamoDB, which the audited one wraps
    passed = iter(range(1_000_000))
    patient = tables._patience
    tables._patience = replace(patient, seconds=2, now=lambda: next(passed), sleep=lambda _: None)
    client, tables._client = tables._client, boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
    with down(tables._client, how):
        yield
    tables._client, tables._patience = client, patient
