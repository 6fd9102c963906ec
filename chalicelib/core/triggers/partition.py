"""The leaf ``partition``, or ``snapshot``: new partitions of a dataset (T7, T21)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core.documents import Reference, Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, Millis, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.time.periods import Calendar, Period
from chalicelib.core.triggers import parts
from chalicelib.core.triggers.leaf import (
    Count,
    DatasetReference,
    GatheringLeaf,
    Given,
    GivenType,
    LeafState,
    since,
)
from chalicelib.core.triggers.windows import Around, Last, Of


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


class PartitionTrigger(GatheringLeaf, Sparse):
    """``count`` new partitions of a dataset, each counted once (T7). For an Iceberg table: its snapshots (T21).

    With ``of: period``, all partitions that the period of the job has (T25), or those of a window around it (T26)."""

    omitted: ClassVar[Collection[str]] = ("of",)
    spreads: ClassVar[bool] = True

    type: Literal["partition", "snapshot"]
    dataset: Reference
    count: Count = 1
    of: Of | None = None

    given: ClassVar[GivenType | None] = GivenPartition

    @model_validator(mode="after")
    def _counts_or_is_complete(self) -> PartitionTrigger:
        if self.of is not None and (self.count != 1 or self.type == "snapshot"):
            if self.type == "snapshot":
                raise invalid("of", "of only with type: partition", self.of, "a table has no periods; remove of")
            raise invalid("count", "either count or of", self.count, "remove count: of waits for every partition")
        return self

    @property
    def by_period(self) -> bool:
        return self.of is not None

    @property
    def is_whole_period(self) -> bool:
        return self.of == "period"

    @property
    def needs_shorter(self) -> bool:
        return isinstance(self.of, Around)

    def span_of(self, period: Period, calendar: Calendar) -> tuple[Instant, Instant]:
        window = self._window
        return window.span(period, calendar) if window is not None else super().span_of(period, calendar)

    def longest_span(self, per: Millis, each: Millis) -> Millis:
        window = self._window
        return window.longest(per, each) if window is not None else super().longest_span(per, each)

    @property
    def _window(self) -> Last | Around | None:
        return self.of if isinstance(self.of, Last | Around) else None

    def event_keys(self) -> tuple[str, ...]:
        return (partition_key(self.dataset),)

    def evaluate(self, progress: Progress | None, now: Instant) -> LeafState:
        found = progress.parts if progress is not None else None
        if progress is None or found is None:
            return super().evaluate(progress, now)
        met, at = found.is_enough(now), found.enough_at
        arrived = (self.arrived(progress),) if found.count or met else ()
        if met:
            without = (f"without {parts.named(found)} of {found.dataset}",) if found.lacking else ()
            return LeafState(met, (*arrived, *without), (), parts=found)
        starts = f", or until {iso(at)}" if at is not None else ""
        return LeafState(met, arrived, (f"{parts.words(found)}{starts}",), at, found)

    def amounts(self, progress: Progress | None) -> tuple[int, int]:
        found = progress.parts if progress is not None else None
        return (found.count, found.need) if found is not None else super().amounts(progress)

    def missing(self, progress: Progress | None) -> str:
        if self.of is not None:
            window = f", {self._window.text}" if self._window is not None else ""
            return f"every partition of {self.dataset} for a period{window}"
        return f"{count_of(self.lacking(progress), self.type)} of {self.dataset}"

    def arrived(self, progress: Progress) -> str:
        if progress.parts is not None:
            when = since(progress) if progress.parts.count else "in time"
            return f"{progress.parts.count} of {parts.extent(progress.parts)} came {when}"
        return f"{count_of(progress.count, self.type)} of {self.dataset} came {since(progress)}"

    @property
    def nothing(self) -> str:
        return f"no {self.type} has arrived"

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
        return (DatasetReference(self.dataset, iceberg=self.type == "snapshot", by_period=self.by_period),)
