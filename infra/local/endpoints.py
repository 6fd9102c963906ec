"""The addresses of the local cloud: as a value, as environment variables, and as a file for shells."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from infra.local.layout import write_private

REGION = "us-east-1"


@dataclass(frozen=True)
class Key:
    """An access key with its secret."""

    access_key: str
    secret_key: str = field(repr=False)


class LocalSession(boto3.Session):  # type: ignore[misc]  # boto3 has no types
    """A session whose clients use the local cloud. It ignores the AWS settings of the environment."""

    def __init__(self, url: str, key: Key) -> None:
        super().__init__(key.access_key, key.secret_key, region_name=REGION)
        self._url = url

    def client(self, service_name: str, *args: Any, **kwargs: Any) -> Any:
        """Like `boto3.Session.client`, with the local endpoint by default."""
        kwargs.setdefault("endpoint_url", self._url)
        # Bucket names in the path: `<bucket>.127.0.0.1` resolves nowhere. Throttled calls are retried.
        retries = {"mode": "standard", "total_max_attempts": 8}
        kwargs.setdefault("config", Config(s3={"addressing_style": "path"}, retries=retries))
        return super().client(service_name, *args, **kwargs)


@dataclass(frozen=True)
class Endpoints:
    """The running local cloud. `outputs` are the stack's outputs by key (`LakeBucket`, `RunsTable`, ...)."""

    aws_url: str
    emr_url: str
    access_key: str
    secret_key: str = field(repr=False)
    outputs: dict[str, str]
    region: str = REGION

    @property
    def api_url(self) -> str:
        """The base URL of the API, to which `/v1/...` is added."""
        return self.outputs["ApiUrl"]

    def environment(self) -> dict[str, str]:
        """The environment variables that AWS's tools and Sluice's client read, and the bucket of the lake."""
        return {
            "AWS_ENDPOINT_URL": self.aws_url,
            "AWS_ENDPOINT_URL_EMR_SERVERLESS": self.emr_url,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "SLUICE_API_URL": self.api_url,
            "SLUICE_LAKE_BUCKET": self.outputs["LakeBucket"],
        }

    def session(self) -> "LocalSession":
        """A boto3 session whose clients use the local AWS with the local user's keys."""
        return LocalSession(self.aws_url, Key(self.access_key, self.secret_key))

    def client(self, service: str) -> Any:
        """A boto3 client for one service of the local cloud, EMR Serverless included."""
        url = self.emr_url if service == "emr-serverless" else self.aws_url
        return self.session().client(service, endpoint_url=url)

    def write(self, path: Path) -> None:
        """Write a file that a shell can `source`, and only its owner may read."""
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.environment().items()]
        write_private(path, "\n".join([*lines, ""]))
