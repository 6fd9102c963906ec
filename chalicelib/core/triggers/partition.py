"""The leaf ``partition``, or ``snapshot``: new partitions of a dataset (T7, T21)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from chalicelib.core.documents import Reference
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.triggers.leaf import Count, DatasetReference, GatheringLeaf, Given, GivenType, since


def partition_key(dataset: str) -> str:
    return f"partition:{dataset}"


class GivenPartition(Given):
    type: Literal["partition", "snapshot"]
    dataset: Reference
    partition: dict[str, str] = Field(default_factory=dict)

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        return Event(event_id, "partition", partition_key(names.in_namespace(self.dataset)), at, at, self.partition)

    def describe(self) -> str:
        values = "/".join(f"{key}={value}" for key, value in self.partition.items())
        return f"{self.type} {values} of {self.dataset}" if values else f"{self.type} of {self.dataset}"


class PartitionTrigger(GatheringLeaf):
    """``count`` new partitions of a dataset, each counted once (T7). For an Iceberg table: its snapshots (T21)."""

    type: Literal["partition", "snapshot"]
    dataset: Reference
    count: Count = 1

    given: ClassVar[GivenType | None] = GivenPartition

    def event_keys(self) -> tuple[str, ...]:
        return (partition_key(self.dataset),)

    def missing(self, progress: Progress | None) -> str:
        return f"{count_of(self.lacking(progress), self.type)} of {self.dataset}"

    def arrived(self, progress: Progress) -> str:
        return f"{count_of(progress.count, self.type)} of {self.dataset} came {since(progress)}"

    def noun(self) -> str:
        return f"{self.type} of {self.dataset}"

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "dataset": event.dataset,
            "path": event.path,
            "partition": dict(event.partition or {}),
        }
        return fields if event.payload is None else fields | {"snapshot": dict(event.payload)}

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"dataset": names.in_namespace(self.dataset)})

    def datasets(self) -> tuple[DatasetReference, ...]:
        return (DatasetReference(self.dataset, iceberg=self.type == "snapshot"),)
