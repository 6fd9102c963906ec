"""Clients for the S3 and Lambda of the local cloud. Only this module uses boto3."""

from __future__ import annotations

import json
import os
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from .events import Undelivered
from .settings import BadSetting, Settings

# All exceptions of a call: of the service, of the connection, of a transfer.
FAILURES: tuple[type[Exception], ...] = (ClientError, BotoCoreError, Boto3Error, OSError)

_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def credentials() -> dict[str, str]:
    """The credentials of the environment; profiles and instance roles are never queried. Raises BadSetting."""
    found = {name: os.environ.get(name, "") for name in _NAMES}
    if not all(found.values()):
        raise BadSetting(
            f"expected {' and '.join(_NAMES)}, with which clients sign and the emulator calls the local cloud: source "
            ".local/endpoints.env, or choose values of your own"
        )
    return found


def client(service: str, settings: Settings, **config: Any) -> Any:
    """A client at `settings.endpoint_url`. Raises ValueError without one: the emulator never calls AWS itself."""
    if not settings.endpoint_url:
        raise ValueError(
            f"expected the local cloud's address to reach {service}, got none: start the emulator with "
            "--endpoint-url or AWS_ENDPOINT_URL"
        )
    given = credentials()
    return boto3.client(
        service,
        endpoint_url=settings.endpoint_url,
        region_name=settings.region,
        aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        config=Config(**config),
    )


class LambdaInvoker:
    """Invokes a function with an event asynchronously, as an EventBridge rule would. Called from one thread."""

    def __init__(self, settings: Settings) -> None:
        # Short timeouts and one attempt: delivery of events is best effort, and later events wait.
        self._client = client("lambda", settings, connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1})
        self._function = settings.run_state_function

    def __call__(self, event: dict[str, Any]) -> None:
        """Deliver an event. Raises Undelivered if the function cannot be invoked."""
        payload = json.dumps(event).encode()
        try:
            self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=payload)
        except FAILURES as error:
            raise Undelivered(f"function {self._function}: {error}") from error
