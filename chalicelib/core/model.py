"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator, model_validator

from chalicelib.core import triggers
from chalicelib.core.calendar import Millis, duration
from chalicelib.core.constraints import AnyConstraint
from chalicelib.core.documents import (
    Document,
    Duration,
    Name,
    Properties,
    Reference,
    Tags,
    by_type,
    one_of,
)
from chalicelib.core.errors import invalid
from chalicelib.core.triggers import (
    AllTrigger,
    AnyOfTrigger,
    AnyTrigger,
    PartitionTrigger,
    ProgramStatusTrigger,
)

DEFAULT_PRIORITY = 5
MOST_PREFIX = 900  # bytes: an S3 key has 1,024, and the partition and the file want some too


class Described(Document):
    """What everything that has an owner carries (L18); changing it changes nothing else."""

    description: str = Field(default="", max_length=1_000)
    tags: Tags = Field(default_factory=dict)
    owner: str = Field(default="", max_length=200)


class Namespace(Described):
    pass


class EmrServerlessTarget(Document):
    """An EMR Serverless PySpark job. ``spark`` holds Spark properties; application and role default to the stack's."""

    type: Literal["emr_serverless"]
    entry_point: str = Field(pattern=r"^s3://[^/]+/.+", max_length=1024)
    arguments: tuple[str, ...] = Field(default=(), max_length=100)
    py_files: tuple[str, ...] = Field(default=(), max_length=50)
    spark: dict[str, str] = Field(default_factory=dict)
    application_id: str | None = None
    execution_role_arn: str | None = None

    @property
    def has_lifecycle(self) -> bool:
        return True


class SqsTarget(Document):
    """A message on a standard SQS queue: delivered at least once, under the run's id."""

    type: Literal["sqs"]
    queue_url: str = Field(pattern=r"^https?://", max_length=1024)

    @property
    def has_lifecycle(self) -> bool:
        return False


AnyTarget = Annotated[
    Annotated[EmrServerlessTarget, Tag("@emr_serverless")] | Annotated[SqsTarget, Tag("@sqs")],
    by_type(("emr_serverless", "sqs")),
]


class Retries(Document):
    """How often a run is attempted in all, and how long after a failure the next attempt is due."""

    attempts: int = Field(default=1, ge=1, le=20)
    delay: Duration = "30s"


class Workflow(Described):
    """What is run: a target with default properties (runtime arguments), retries and a priority (9 is most urgent)."""

    target: AnyTarget
    properties: Properties = Field(default_factory=dict)
    priority: int = Field(default=DEFAULT_PRIORITY, ge=0, le=9)
    retries: Retries = Retries()


class Readiness(Document):
    """When a partition is ready: at its first object, or when ``done_flag`` appears in it (T8)."""

    done_flag: str | None = Field(default=None, pattern=r"^[^/]+$", max_length=200)


class Dataset(Described):
    """An S3 prefix whose partitions are laid out as ``key=value/`` folders, in the order of ``keys``."""

    bucket: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    prefix: str
    keys: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")], ...] = Field(
        min_length=1, max_length=10
    )
    ready: Readiness = Readiness()

    @field_validator("prefix")
    @classmethod
    def _names_a_folder(cls, prefix: str) -> str:
        if len(prefix.encode()) > MOST_PREFIX:
            raise invalid("", f"a prefix of at most {MOST_PREFIX} bytes", prefix)
        if not prefix.endswith("/") or prefix.startswith("/") or "//" in prefix:
            raise invalid("", "a prefix that ends with '/' and does not begin with one, such as raw/flights/", prefix)
        return prefix

    @field_validator("keys")
    @classmethod
    def _distinct(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(keys)) < len(keys):
            raise invalid("", "distinct partition keys", list(keys))
        return keys


class Timeout(Document):
    """What becomes of a job that has not been launched ``after`` its creation (C10)."""

    after: Duration = "1d"
    then: Literal["abort", "run"] = "abort"

    @property
    def millis(self) -> Millis:
        return duration(self.after)


TimeoutOrNever = Annotated[
    Annotated[Timeout, Tag("@timeout")] | Annotated[Literal["never"], Tag("@never")],
    one_of(
        lambda value: "@never" if value == "never" else "@timeout" if isinstance(value, dict | Timeout) else "@other",
        "an object with after and then, or 'never'",
    ),
]


class Schedule(Described):
    """A workflow, the trigger that starts it, the constraints its launch must meet, and its properties."""

    workflow: Reference
    trigger: AnyTrigger
    by: tuple[str, ...] = Field(default=(), max_length=10)
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    properties: Properties = Field(default_factory=dict)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Timeout()

    @model_validator(mode="before")
    @classmethod
    def _lift_by(cls, data: Any) -> Any:
        """``by`` may be written in the trigger, where it reads best; it speaks of the whole job all the same."""
        if isinstance(data, dict) and isinstance(data.get("trigger"), dict) and "by" in data["trigger"]:
            if data.get("by"):
                raise invalid("by", "the correlation keys once", "them in the schedule and in its trigger")
            trigger = dict(data["trigger"])
            return {**data, "by": trigger.pop("by"), "trigger": trigger}
        return data

    @model_validator(mode="after")
    def _fits_together(self) -> Schedule:
        triggers.check_size(self.trigger)
        if len(set(self.by)) < len(self.by):
            raise invalid("by", "distinct correlation keys", list(self.by))
        if self.by and triggers.time_leaves(self.trigger):
            hint = "a fire time belongs to no partition; use two schedules"
            raise invalid("by", "correlation keys only where every leaf is about partitions (T19)", list(self.by), hint)
        return self

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else self.timeout.millis

    def resolved(self, namespace: str, app: str) -> Schedule:
        """The same schedule with full names throughout."""
        return self.model_copy(
            update={
                "workflow": full_name(self.workflow, namespace, app),
                "trigger": _resolve(self.trigger, namespace, app),
            }
        )


class App(Described):
    """One deployment: an app's workflows and schedules, and datasets of its namespace (L8)."""

    namespace: Name | None = None
    app: Name | None = None
    datasets: dict[Name, Dataset] = Field(default_factory=dict)
    workflows: dict[Name, Workflow] = Field(default_factory=dict)
    schedules: dict[Name, NewSchedule] = Field(default_factory=dict)


class NewSchedule(Schedule):
    """A schedule as it is sent: with the wish that it be enabled at once (L2). None keeps the state it has."""

    enabled: bool | None = None

    def definition(self) -> Schedule:
        return Schedule.model_validate(self.model_dump(exclude={"enabled"}))


App.model_rebuild()


def full_name(reference: str, namespace: str, app: str) -> str:
    """``name``, ``app.name`` or ``namespace.app.name`` as the last of these."""
    parts = reference.split(".")
    return ".".join([namespace, app][: 3 - len(parts)] + parts)


def dataset_name(reference: str, namespace: str) -> str:
    """``name`` or ``namespace.name`` as the latter."""
    return reference if "." in reference else f"{namespace}.{reference}"


def _resolve(trigger: AnyTrigger, namespace: str, app: str) -> AnyTrigger:
    if isinstance(trigger, AllTrigger | AnyOfTrigger):
        children = tuple(_resolve(child, namespace, app) for child in trigger.triggers)
        return trigger.model_copy(update={"triggers": children})
    if isinstance(trigger, PartitionTrigger):
        return trigger.model_copy(update={"dataset": dataset_name(trigger.dataset, namespace)})
    if isinstance(trigger, ProgramStatusTrigger):
        return trigger.model_copy(update={"workflow": full_name(trigger.workflow, namespace, app)})
    return trigger
