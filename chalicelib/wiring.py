"""Build the ports from AWS clients, once per process. AWS modules are imported on first use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from chalicelib.core.audit.author import Author
from chalicelib.core.instants import Instant
from chalicelib.core.targets.bills import Prices
from chalicelib.ports import Ports
from chalicelib.settings import Settings

if TYPE_CHECKING:
    from chalicelib.aws.failures import FailedMessages
    from chalicelib.aws.metrics import EmfMetrics
    from chalicelib.aws.s3.history import S3AuditLog, S3HistoryLake
    from chalicelib.aws.targets.registry import AwsTargets
    from chalicelib.flow.openlineage.report import Outlet, Reporter


VERSION = "0.1.0"  # that of pyproject.toml, which is no part of the code of a Lambda
# The author of the request in progress. The API sets it; every transaction of the request then has an audit record.
AUTHOR: ContextVar[Author | None] = ContextVar("author", default=None)


@contextmanager
def acting(author: Author) -> Iterator[None]:
    """Every transaction in the block has an audit record in the name of this author."""
    token = AUTHOR.set(author)
    try:
        yield
    finally:
        AUTHOR.reset(token)


class SystemClock:
    def now(self) -> Instant:
        return time.time_ns() // 1_000_000

    def wait_until(self, instant: Instant) -> None:
        while (left := instant - self.now()) > 0:  # repeats if the clock was set back: nothing may begin too early
            time.sleep(left / 1000)


def client(service: str, **options: Any) -> Any:
    """A boto3 client with Sluice's timeouts; ``options`` override the configuration."""
    import boto3

    return boto3.client(service, config=_config(options))


def signing_s3() -> Any:
    """A client of S3 whose pre-signed URLs name the host of the region.

    By default botocore signs them for S3's global host in every region of AWS, which redirects a PUT to another region,
    or refuses it; only with addresses by bucket it signs for the region's host. A custom endpoint, such as that of the
    local cloud, has no address for each bucket."""
    custom = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return client("s3", signature_version="s3v4", s3={"addressing_style": "path" if custom else "virtual"})


def client_as(credentials: Any, service: str, **options: Any) -> Any:
    """A client of botocore alone that signs with these credentials."""
    import botocore.session
    from botocore.credentials import CredentialResolver

    from chalicelib.aws import models

    session = botocore.session.Session()
    session.register_component("credential_provider", CredentialResolver([_Given(credentials)]))
    session.register_component("data_loader", models.loader(service))  # a model is read once for all roles
    return session.create_client(service, config=_config(options))


class _Given:
    """A provider of the credentials that it is given, in the form that botocore expects."""

    METHOD = "assumed"

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def load(self) -> Any:
        return self._credentials


def _config(options: dict[str, Any]) -> Any:
    from botocore.config import Config

    defaults: dict[str, Any] = {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard"},
        # Tests cover all requests that Sluice builds. Validation of each value in a batch of rows would take a tenth of
        # the time of a Lambda.
        "parameter_validation": False,
        # Without a name, botocore puts one together from a dozen parts, twice for each request.
        "user_agent": f"sluice/{VERSION}",
    }
    return Config(**defaults | options)


def is_down(error: Exception) -> bool:
    """Whether an error means that an AWS service does not answer at present."""
    from chalicelib.aws.tables import tries

    return tries.is_down(error)


def targets(settings: Settings) -> AwsTargets:
    """The target adapters of one stack."""
    from chalicelib.aws.targets.clients import Clients
    from chalicelib.aws.targets.registry import AwsTargets

    return AwsTargets(Clients(client, SystemClock().now, client_as, place()[1] or "dev"), settings)


@cache
def ports() -> Ports:
    """The ports of this process, from its environment."""
    from chalicelib.aws.hints import SqsHints
    from chalicelib.aws.s3.lake import S3Lake
    from chalicelib.aws.s3.payloads import S3Payloads
    from chalicelib.aws.tables.audited import AuditedLedger
    from chalicelib.aws.tables.dynamo import Dynamo
    from chalicelib.aws.tables.table_ports import table_ports
    from chalicelib.aws.tables.wire_format import as_it_is

    settings, clock = Settings.from_environment(), SystemClock()
    # `aws/tables/tries.py` retries table calls, because it must see each lost answer. Rows are read within
    # milliseconds, so short timeouts are enough.
    tables = client("dynamodb", retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=6)
    dynamo = Dynamo(as_it_is(tables), settings, metrics=metrics())
    return Ports(
        clock=clock,
        ledger=AuditedLedger(dynamo, AUTHOR.get, clock, settings.audit_days),
        **table_ports(dynamo),
        hints=SqsHints(client("sqs"), settings.hints_queue_url, clock, settings.burst_hints_queue_url),
        targets=targets(settings),
        payloads=S3Payloads(signing_s3(), settings.control_bucket),
        lake=S3Lake(client("s3"), cache(lambda: client("glue"))),
        settings=settings,
        metrics=metrics(),
        author=AUTHOR.get,
        acting=acting,
    )


def place() -> tuple[str | None, str | None]:
    """The region and the stage of this installation."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return region, os.environ.get("SLUICE_STAGE")


@cache
def metrics() -> EmfMetrics:
    """The metrics of this process. The middleware of all Lambdas flushes them at the end of each invocation."""
    from chalicelib.aws.metrics import EmfMetrics

    return EmfMetrics(os.environ.get("SLUICE_STAGE", "dev"))


@cache
def failed_messages(queue_arn: str) -> FailedMessages:
    """The failed messages of the queue that has invoked this Lambda."""
    from chalicelib.aws.failures import FailedMessages

    return FailedMessages(client("sqs"), queue_arn)


@cache
def history_lake() -> tuple[S3HistoryLake, Prices]:
    """The lake and the prices for the Lambda `lake`."""
    from chalicelib.aws.s3.history import S3HistoryLake

    settings = Settings.from_environment()
    return S3HistoryLake(client("s3"), settings.lake_bucket), settings.prices


@cache
def audit_log() -> S3AuditLog | None:
    """The bucket of exported audit records for the Lambda `lake`; None if the installation exports none."""
    from chalicelib.aws.s3.history import S3AuditLog

    bucket = Settings.from_environment().audit_bucket
    return S3AuditLog(client("s3"), bucket) if bucket else None


class Until:
    """When the present invocation ends; None outside of Lambda."""

    at: Instant | None = None

    def left(self) -> int:
        """The ms that are left; a minute outside of Lambda."""
        return 60_000 if self.at is None else self.at - SystemClock().now()


@cache
def lineage_reporter() -> tuple[Reporter, Until]:
    """What the Lambda `lineage` does with changes of the runs table. Raises RuntimeError unless the events are sent to
    one place."""
    from chalicelib.aws.openlineage.outlets import DeadLetters
    from chalicelib.core.openlineage.datasets import Place
    from chalicelib.flow.openlineage.reader import Reader
    from chalicelib.flow.openlineage.report import Reporter

    settings, until = ports().settings, Until()
    reader = Reader(ports(), Place(settings.partition, place()[0] or "", settings.account))
    letters = DeadLetters(client("sqs"), settings.lineage_letters_url, SystemClock().now)
    return Reporter(reader, _outlet(settings, until), letters, settings.lineage, settings.lineage_namespaces), until


def _outlet(settings: Settings, until: Until) -> Outlet:
    from chalicelib.aws.openlineage import outlets
    from chalicelib.aws.targets.safe_http import SafeHttp
    from chalicelib.aws.targets.secrets import Secrets

    if settings.lineage_endpoint:
        secrets = Secrets(lambda: client("ssm"), lambda: client("secretsmanager"), SystemClock().now)
        http = SafeHttp(settings.http_allow_private)
        return outlets.HttpOutlet(http, secrets, settings.lineage_endpoint, settings.lineage_secret, until.left)
    if settings.lineage_queue_arn:
        region = settings.lineage_queue_arn.split(":")[3]  # a queue answers in its own region only
        return outlets.QueueOutlet(client("sqs", region_name=region), settings.lineage_queue_arn)
    return outlets.FolderOutlet(client("s3"), settings.lineage_folder)
