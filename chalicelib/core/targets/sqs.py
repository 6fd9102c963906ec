"""SQS as a target."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.targets.fifo import Group, check_group
from chalicelib.core.targets.target import Delivered


class SqsTarget(Delivered):
    """A message on an SQS queue. On a FIFO queue (its URL ends with ``.fifo``) in the order of a message group, the
    schedule's unless ``group`` names one; the queue drops what it is sent twice within five minutes."""

    batched_by: ClassVar[str | None] = "queue_url"

    type: Literal["sqs"]
    queue_url: str = Field(pattern=r"^https?://", max_length=1024)
    group: Group | None = None

    @model_validator(mode="after")
    def _group_fits(self) -> SqsTarget:
        check_group(self.group, self.queue_url, "queue")
        return self
