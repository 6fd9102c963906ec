"""Targets: where a run goes. One with a lifecycle has runs that can be followed, cancelled and counted."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from chalicelib.core.documents import Document, by_type


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
