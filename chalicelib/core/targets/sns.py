"""SNS as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.targets.target import ARN, REGION, Formatted, Group, check_group


class SnsTarget(Formatted):
    """A message on an SNS topic, standard or FIFO (see `SqsTarget`)."""

    batched_by: ClassVar[str | None] = "topic_arn"

    type: Literal["sns"]
    topic_arn: str = Field(pattern=rf"{ARN}sns:{REGION}:\d{{12}}:[A-Za-z0-9_-]{{1,256}}(\.fifo)?$")
    subject: str | None = Field(default=None, pattern=r"^[!-~]([ -~]{0,98}[!-~])?$")
    group: Group | None = None

    @property
    def mails(self) -> bool:
        return True

    @model_validator(mode="after")
    def _group_fits(self) -> SnsTarget:
        check_group(self.group, self.topic_arn, "topic")
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        return (Named("topics", str(stored["topic_arn"]), "topic_arn"),)
