"""The bodies that routes take, by the names that `routing.Takes` uses."""

from __future__ import annotations

from pydantic import Field, field_validator

from chalicelib.core.documents import Document, Properties
from chalicelib.core.errors import invalid
from chalicelib.core.model import App, Dataset, Namespace, NewSchedule, Workflow

__all__ = ["App", "Dataset", "Namespace", "NewPartition", "NewSchedule", "RunNow", "Workflow"]

MOST_VALUE = 200  # characters of a partition key's value


class RunNow(Document):
    """A run past the trigger. ``properties`` win over those of the schedule and the workflow."""

    properties: Properties = Field(default_factory=dict)


class NewPartition(Document):
    """A partition that is ready: one value per partition key of the dataset."""

    partition: dict[str, str]

    @field_validator("partition", mode="before")
    @classmethod
    def _texts(cls, given: object) -> object:
        """Values are text, as in the folders of S3; a whole number is taken for its digits."""
        if not isinstance(given, dict):
            raise invalid("", "an object of partition keys and values", given)
        for key, value in given.items():
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise invalid(str(key), "text or a whole number", value)
            if not 0 < len(str(value)) <= MOST_VALUE or "/" in str(value) or not str(value).isprintable():
                raise invalid(str(key), f"1 to {MOST_VALUE} printable characters without '/'", value)
        return {key: str(value) for key, value in given.items()}
