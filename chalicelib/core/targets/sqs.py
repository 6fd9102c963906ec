"""SQS as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.access.queue_urls import queue_arn
from chalicelib.core.targets.target import Formatted, Group, check_group


class SqsTarget(Formatted):
    """A message on an SQS queue. A FIFO queue (its URL ends with ``.fifo``) keeps the order within a message group:
    ``group``, by default one for each schedule. It drops a message that is sent again within five minutes."""

    batched_by: ClassVar[str | None] = "queue_url"

    type: Literal["sqs"]
    queue_url: str = Field(pattern=r"^https?://", max_length=1024)
    group: Group | None = None

    @model_validator(mode="after")
    def _group_fits(self) -> SqsTarget:
        check_group(self.group, self.queue_url, "queue")
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        url = str(stored["queue_url"])
        return (Named("queues", queue_arn(url), "queue_url", url),)
