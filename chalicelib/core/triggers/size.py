"""The leaf ``size``: new objects of a dataset with a minimum of bytes in total (T9)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from chalicelib.core import sizes
from chalicelib.core.documents import Reference
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.text import count_of
from chalicelib.core.triggers.leaf import DatasetReference, GatheringLeaf, Given, GivenType, since

Bytes = Annotated[int, BeforeValidator(lambda given: sizes.parse_bytes(given, ""), json_schema_input_type=int | str)]


def size_key(dataset: str) -> str:
    return f"size:{dataset}"


class GivenSize(Given):
    type: Literal["size"]
    dataset: Reference
    bytes: Bytes
    partition: dict[str, str] = Field(default_factory=dict)

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        key = size_key(names.in_namespace(self.dataset))
        return Event(event_id, "size", key, at, at, self.partition, size=self.bytes)

    def describe(self) -> str:
        return f"{sizes.format_bytes(self.bytes)} of {self.dataset}"


class SizeTrigger(GatheringLeaf):
    """At least ``bytes`` of new objects in a dataset (``100GB``, or a number); an object counts once (T9)."""

    type: Literal["size"]
    dataset: Reference
    bytes: Bytes

    given: ClassVar[GivenType | None] = GivenSize

    @property
    def wants_one(self) -> bool:
        return False

    def event_keys(self) -> tuple[str, ...]:
        return (size_key(self.dataset),)

    def is_enough(self, progress: Progress) -> bool:
        return progress.amount >= self.bytes

    def amounts(self, progress: Progress | None) -> tuple[int, int]:
        return (progress.amount if progress else 0, self.bytes)

    def missing(self, progress: Progress | None) -> str:
        lacking = self.bytes - (progress.amount if progress else 0)
        return f"{sizes.format_bytes(max(lacking, 1))} of {self.dataset}"

    def arrived(self, progress: Progress) -> str:
        objects = count_of(progress.count, "object")
        return f"{sizes.format_bytes(progress.amount)} in {objects} of {self.dataset} came {since(progress)}"

    @property
    def nothing(self) -> str:
        return "no object has arrived"

    def noun(self) -> str:
        return f"object of {self.dataset}"

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        partition = dict(event.partition) if event.partition else None
        fields: dict[str, Any] = {
            "dataset": event.dataset,
            "path": event.path,
            "partition": partition,
            "bytes": event.size,
        }
        return fields if event.payload is None else fields | {"snapshot": dict(event.payload)}

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"dataset": names.in_namespace(self.dataset)})

    def datasets(self) -> tuple[DatasetReference, ...]:
        return (DatasetReference(self.dataset),)
