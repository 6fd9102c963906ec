"""Build the ports out of AWS clients, once per process. Each client is made when it is first needed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from chalicelib.core.instants import Instant
from chalicelib.core.runs.costs import Prices
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.ports import Ports, TargetAdapter
from chalicelib.settings import Settings

if TYPE_CHECKING:
    from chalicelib.aws.failures import FailedMessages
    from chalicelib.aws.metrics import EmfMetrics
    from chalicelib.aws.s3.history import S3HistoryLake
    from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
    from chalicelib.aws.targets.http import HttpTarget
    from chalicelib.aws.targets.lambda_function import LambdaTarget
    from chalicelib.aws.targets.meters import Meters


KINDS = ("emr_serverless", "sqs", "sns", "http", "lambda", "event_bus", "worker", "dag")


# What a delivery waits for at the most follows from these (`core/targets/sub_batches.py`). More tries are made by the
# delivery policy.
DELIVERY: dict[str, Any] = {"read_timeout": 10, "retries": {"mode": "standard", "total_max_attempts": 2}}


# A start call answers within a second. One that does not is not waited for long: the next call has the same token.
EMR: dict[str, Any] = {"connect_timeout": 2, "read_timeout": 6, "retries": {"total_max_attempts": 1}}


class SystemClock:
    def now(self) -> Instant:
        return time.time_ns() // 1_000_000

    def wait_until(self, instant: Instant) -> None:
        while (left := instant - self.now()) > 0:  # once more if the clock was set back: nothing may begin too early
            time.sleep(left / 1000)


class AwsTargets:
    """Targets by the type of a workflow's target; a Lambda that starts no EMR run never makes its client."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of(self, kind: str) -> TargetAdapter:
        made: TargetAdapter | None = getattr(self, f"_{kind}", None) if kind in KINDS else None
        if made is None:
            raise ValueError(f"expected a target of type {', '.join(KINDS)}, got {kind!r}")
        return made

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        if target["type"] == "lambda":
            return self._lambda.probe(str(target["function"]), question)
        return self._http.probe(target, question)

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        return self._meters.measure(source)

    def run_name(self, application_id: str, job_run_id: str) -> str | None:
        return self._emr_serverless.run_name(application_id, job_run_id)

    @cached_property
    def _emr_serverless(self) -> EmrServerlessTarget:
        from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget

        settings = self._settings
        # The target repeats a call that was not answered, and the flow does so later: the token makes it one run.
        emr = client("emr-serverless", **EMR)
        return EmrServerlessTarget(emr, settings.emr_application_id, settings.emr_job_role_arn, settings.control_bucket)

    @cached_property
    def _worker(self) -> TargetAdapter:
        from chalicelib.aws.targets.worker import WorkerTarget

        return WorkerTarget(SystemClock().now)

    @cached_property
    def _dag(self) -> TargetAdapter:
        from chalicelib.flow.dags.start_target import DagStarts

        return DagStarts()

    @cached_property
    def _meters(self) -> Meters:
        from chalicelib.aws.targets.meters import Meters

        return Meters(cache(client), SystemClock().now)

    @cached_property
    def _sqs(self) -> TargetAdapter:
        from chalicelib.aws.targets.sqs import SqsTarget

        return SqsTarget(client("sqs", **DELIVERY))

    @cached_property
    def _sns(self) -> TargetAdapter:
        from chalicelib.aws.targets.sns import SnsTarget

        return SnsTarget(client("sns", **DELIVERY))

    @cached_property
    def _event_bus(self) -> TargetAdapter:
        from chalicelib.aws.targets.event_bus import EventBusTarget

        return EventBusTarget(client("events", **DELIVERY))

    @cached_property
    def _lambda(self) -> LambdaTarget:
        from chalicelib.aws.targets.lambda_function import LambdaTarget

        # Whether a function is called again is decided by the schedule's policy: here one attempt is one answer.
        return LambdaTarget(client("lambda", retries={"total_max_attempts": 1}, read_timeout=30))

    @cached_property
    def _http(self) -> HttpTarget:
        from chalicelib.aws.targets.http import HttpTarget
        from chalicelib.aws.targets.safe_http import SafeHttp
        from chalicelib.aws.targets.secrets import Secrets

        now = SystemClock().now
        secrets = Secrets(lambda: client("ssm"), lambda: client("secretsmanager"), now)
        return HttpTarget(SafeHttp(self._settings.http_allow_private), secrets, now)


def client(service: str, **options: Any) -> Any:
    import boto3
    from botocore.config import Config

    defaults: dict[str, Any] = {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"mode": "standard"},
        # What is sent is made here and tested; a look at each value of a batch of rows is a tenth of a Lambda's time.
        "parameter_validation": False,
    }
    return boto3.client(service, config=Config(**defaults | options))


def is_down(error: Exception) -> bool:
    """Whether something failed because a service of AWS does not answer at the moment."""
    from chalicelib.aws.tables import tries

    return tries.is_down(error)


@cache
def ports() -> Ports:
    """The ports of this process, from its environment."""
    from chalicelib.aws.hints import SqsHints
    from chalicelib.aws.s3.lake import S3Lake
    from chalicelib.aws.s3.payloads import S3Payloads
    from chalicelib.aws.tables.catalog import DynamoCatalog
    from chalicelib.aws.tables.dynamo import Dynamo
    from chalicelib.aws.tables.jobs import DynamoJobs
    from chalicelib.aws.tables.prefetch import DynamoPrefetch
    from chalicelib.aws.tables.runs import DynamoRuns, DynamoWakes

    settings, clock = Settings.from_environment(), SystemClock()
    # `aws/tables/tries.py` repeats table calls: it must know of each lost answer. Rows come within milliseconds.
    tables = client("dynamodb", retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=6)
    dynamo = Dynamo(tables, settings, metrics=metrics())
    return Ports(
        clock=clock,
        ledger=dynamo,
        catalog=DynamoCatalog(dynamo),
        jobs=DynamoJobs(dynamo),
        runs=DynamoRuns(dynamo),
        wakes=DynamoWakes(dynamo),
        hints=SqsHints(client("sqs"), settings.hints_queue_url, clock),
        targets=AwsTargets(settings),
        payloads=S3Payloads(client("s3"), settings.control_bucket),
        lake=S3Lake(client("s3"), cache(lambda: client("glue"))),
        settings=settings,
        ahead=DynamoPrefetch(dynamo),
        metrics=metrics(),
    )


@cache
def metrics() -> EmfMetrics:
    """What this process measures. The middleware of all Lambdas flushes it at the end of an invocation."""
    from chalicelib.aws.metrics import EmfMetrics

    return EmfMetrics(os.environ.get("SLUICE_STAGE", "dev"))


@cache
def failed_messages(queue_arn: str) -> FailedMessages:
    """Of the queue that has invoked this Lambda."""
    from chalicelib.aws.failures import FailedMessages

    return FailedMessages(client("sqs"), queue_arn)


@cache
def history_lake() -> tuple[S3HistoryLake, Prices]:
    """What the Lambda `lake` works with: the lake and the prices. It reads no table."""
    from chalicelib.aws.s3.history import S3HistoryLake

    settings = Settings.from_environment()
    return S3HistoryLake(client("s3"), settings.lake_bucket), settings.prices
