"""How deliveries are cut into sub-batches: what one call takes, or the calls that are made side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, TypeVar

from chalicelib.core.instants import Millis
from chalicelib.core.targets import registry

T = TypeVar("T")

# SendMessageBatch, PublishBatch and PutEvents take ten entries: one call.
MAX_ENTRIES = 10
# Targets without batches are called side by side, so many at a time.
MAX_CALLS = 16


def longest_call(target: Mapping[str, Any]) -> Millis:
    """How long one call of a target may take, at the most."""
    return registry.of_type(str(target["type"])).longest_call(target)


def split(things: Iterable[T], target_of: Callable[[T], Mapping[str, Any]]) -> Iterator[list[T]]:
    """Sub-batches, each of one kind of target and, where the target takes batches, of one address. Within an address
    the order is kept."""
    for (kind, _), group in groupby(sorted(things, key=_place(target_of)), key=_place(target_of)):
        size = MAX_ENTRIES if registry.of_type(kind).batched_by is not None else MAX_CALLS
        while part := list(islice(group, size)):
            yield part


def _place(target_of: Callable[[T], Mapping[str, Any]]) -> Callable[[T], tuple[str, str]]:
    def place(thing: T) -> tuple[str, str]:
        target = target_of(thing)
        kind = str(target["type"])
        field = registry.of_type(kind).batched_by
        return kind, str(target[field]) if field is not None else ""

    return place
