"""The leaf ``partition``, or ``snapshot``: new partitions of a dataset (T7, T21)."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from chalicelib.core.documents import Reference
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.triggers.leaf import MOST, DatasetReference, GatheringLeaf, Names, since


def partition_key(dataset: str) -> str:
    return f"partition:{dataset}"


class PartitionTrigger(GatheringLeaf):
    """``count`` new partitions of a dataset, each counted once (T7). Those of a table are its snapshots (T21)."""

    type: Literal["partition", "snapshot"]
    dataset: Reference
    count: int = Field(default=1, ge=1, le=MOST)

    @property
    def needed(self) -> int:
        return self.count

    def event_keys(self) -> tuple[str, ...]:
        return (partition_key(self.dataset),)

    def missing(self, progress: Progress | None) -> str:
        return f"{count_of(self.lacking(progress), self.type)} of {self.dataset}"

    def came(self, progress: Progress) -> str:
        return f"{count_of(progress.count, self.type)} of {self.dataset} came {since(progress)}"

    def noun(self) -> str:
        return f"{self.type} of {self.dataset}"

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"dataset": names.dataset(self.dataset)})

    def datasets(self) -> tuple[DatasetReference, ...]:
        return (DatasetReference(self.dataset, iceberg=self.type == "snapshot"),)
