"""Targets: where a run goes. One with a lifecycle has runs that can be followed, cancelled and counted; to the others
a run is delivered, at least once and always under the same id (E5, E6)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from chalicelib.core.documents import Document, Duration, Name, by_type
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Millis, duration
from chalicelib.core.targets import urls

LONGEST_CALL: Millis = 30_000
DELIVERED = ("sqs", "sns", "http", "lambda", "event_bus")
BILLING = ("emr_serverless",)
_REGION = r"[a-z]{2}[a-z-]+-\d"
_ARN = r"^arn:aws[a-z-]*:"

FunctionArn = Annotated[
    str,
    Field(pattern=rf"{_ARN}lambda:{_REGION}:\d{{12}}:function:[A-Za-z0-9_-]{{1,64}}(:[A-Za-z0-9$_-]{{1,128}})?$"),
]
Group = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]
SecretName = Annotated[
    str,
    Field(
        pattern=(
            r"^(/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*"
            rf"|arn:aws[a-z-]*:secretsmanager:{_REGION}:\d{{12}}:secret:[A-Za-z0-9/_+=.@-]+)$"
        ),
        max_length=1011,
    ),
]


def _check_span(text: str) -> str:
    if not 1 <= duration(text, "") <= LONGEST_CALL:
        raise invalid("", "a timeout of at most 30s", text, "what takes longer answers at once and works on afterwards")
    return text


CallTimeout = Annotated[Duration, AfterValidator(_check_span)]


def _check_heartbeat(text: str) -> str:
    if not 10 * SECOND <= duration(text, "") <= HOUR:
        raise invalid("", "a heartbeat from 10s to 1h", text, "a worker that dies is noticed after about that time")
    return text


def _check_poll(text: str) -> str:
    if not MINUTE <= duration(text, "") <= DAY:
        raise invalid("", "an interval from 1m to 1d", text, "leave it out: EMR tells what becomes of a run")
    return text


HeartbeatInterval = Annotated[Duration, AfterValidator(_check_heartbeat)]
PollInterval = Annotated[Duration, AfterValidator(_check_poll)]


class EmrServerlessTarget(Document):
    """An EMR Serverless PySpark job. ``spark`` holds Spark properties; application and role default to the stack's.

    EMR tells by events what becomes of a run. With ``poll_every`` it is asked besides, that often (W6).
    """

    type: Literal["emr_serverless"]
    entry_point: str = Field(pattern=r"^s3://[^/]+/.+", max_length=1024)
    arguments: tuple[str, ...] = Field(default=(), max_length=100)
    py_files: tuple[str, ...] = Field(default=(), max_length=50)
    spark: dict[str, str] = Field(default_factory=dict)
    application_id: str | None = None
    execution_role_arn: str | None = None
    poll_every: PollInterval | None = None

    @property
    def has_lifecycle(self) -> bool:
        return True

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A start request is stored with each run, and says nothing of a target that is not polled."""
        told: dict[str, Any] = handler(self)
        return {field: value for field, value in told.items() if field != "poll_every" or value is not None}


class WorkerTarget(Document):
    """A pool of pull workers (W5): they come for the run, and keep it by heartbeats, no more than ``heartbeat`` apart.

    ``arguments`` are handed to the worker's command. The pool is one of the namespace in which the workflow lives.
    """

    type: Literal["worker"]
    pool: Name
    arguments: tuple[Annotated[str, Field(max_length=4_000)], ...] = Field(default=(), max_length=100)
    heartbeat: HeartbeatInterval = "1m"

    @property
    def has_lifecycle(self) -> bool:
        return True


class _Delivered(Document):
    """A target that tells nothing of what becomes of a run: it takes it, or it does not."""

    @property
    def has_lifecycle(self) -> bool:
        return False


class SqsTarget(_Delivered):
    """A message on an SQS queue. On a FIFO queue (its URL ends with ``.fifo``) in the order of a message group, the
    schedule's unless ``group`` names one; the queue drops what it is sent twice within five minutes."""

    type: Literal["sqs"]
    queue_url: str = Field(pattern=r"^https?://", max_length=1024)
    group: Group | None = None

    @model_validator(mode="after")
    def _group_fits(self) -> SqsTarget:
        _check_group(self.group, self.queue_url, "queue")
        return self


class SnsTarget(_Delivered):
    """A message on an SNS topic, standard or FIFO (see `SqsTarget`)."""

    type: Literal["sns"]
    topic_arn: str = Field(pattern=rf"{_ARN}sns:{_REGION}:\d{{12}}:[A-Za-z0-9_-]{{1,256}}(\.fifo)?$")
    subject: str | None = Field(default=None, pattern=r"^[!-~]([ -~]{0,98}[!-~])?$")
    group: Group | None = None

    @model_validator(mode="after")
    def _group_fits(self) -> SnsTarget:
        _check_group(self.group, self.topic_arn, "topic")
        return self


class HttpTarget(_Delivered):
    """A call of a web address. With ``secret``, the name of an SSM parameter or the ARN of a secret in Secrets Manager,
    it is signed (see docs/targets.md)."""

    type: Literal["http"]
    url: urls.Url
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = "POST"
    headers: urls.Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: SecretName | None = None


class LambdaTarget(_Delivered):
    """A call of a Lambda function: handed over to Lambda, which repeats what fails, or with ``wait`` answered for."""

    type: Literal["lambda"]
    function: FunctionArn
    wait: bool = False


class EventBusTarget(_Delivered):
    """An event on an EventBridge bus, which ``source`` and ``detail_type`` tell its rules."""

    type: Literal["event_bus"]
    bus: str = Field(pattern=rf"^([A-Za-z0-9_.-]{{1,256}}|arn:aws[a-z-]*:events:{_REGION}:\d{{12}}:event-bus/.+)$")
    source: str = Field(default="sluice.delivery", pattern=r"^[!-~]{1,256}$")
    detail_type: str = Field(default="Sluice Delivery", min_length=1, max_length=128)

    @field_validator("source")
    @classmethod
    def _is_free(cls, source: str) -> str:
        if source.startswith(("aws.", "sluice/")):
            hint = "aws. is AWS's own; what begins with sluice/ would be taken for a custom event of a namespace"
            raise invalid("", "a source that begins with neither aws. nor sluice/", source, hint)
        return source


class DagStart(Document):
    """No target of a user's: the run that begins that of a DAG has nothing to do but to be over, and to say so (W4)."""

    type: Literal["dag"] = "dag"

    @property
    def has_lifecycle(self) -> bool:
        return True


AnyTarget = Annotated[
    Annotated[EmrServerlessTarget, Tag("@emr_serverless")]
    | Annotated[WorkerTarget, Tag("@worker")]
    | Annotated[SqsTarget, Tag("@sqs")]
    | Annotated[SnsTarget, Tag("@sns")]
    | Annotated[HttpTarget, Tag("@http")]
    | Annotated[LambdaTarget, Tag("@lambda")]
    | Annotated[EventBusTarget, Tag("@event_bus")],
    by_type(("emr_serverless", "sqs", "sns", "http", "lambda", "event_bus", "worker")),
]


def has_lifecycle(kind: str) -> bool:
    """The same by the type of a target, as it is stored with a run."""
    return kind not in DELIVERED


def bills(kind: str) -> bool:
    """Whether a target tells what it has billed for a run (H1)."""
    return kind in BILLING


def _check_group(group: str | None, name: str, what: str) -> None:
    if group is not None and not name.endswith(".fifo"):
        raise invalid("group", f"a group only for a FIFO {what}, whose name ends with .fifo", group, "leave it out")
