"""How deliveries are split into calls, and how many of these make a sub-batch, whose rows one read covers.

Calls to a target without batches are made in parallel, and count as one call here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, TypeVar

from chalicelib.core.instants import Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry

T = TypeVar("T")

# SendMessageBatch, PublishBatch and PutEvents take ten entries in one call.
MAX_ENTRIES = 10
# Calls of one sub-batch: one BatchGetItem reads the 100 rows of 50 deliveries, a job and a schedule state of each.
MAX_BATCHES = 5
# The number of parallel calls to targets that take no batches.
MAX_CALLS = 16


def longest_call(target: Mapping[str, Any]) -> Millis:
    """The longest time in ms that one call of a target may take."""
    return registry.of_type(str(target["type"])).longest_call(target)


def split(deliveries: Iterable[T], run_of: Callable[[T], Run]) -> Iterator[list[T]]:
    """The deliveries of each call: to one type of target, with one role and, if the target takes batches, to one
    address. The deliveries to an address with a role keep their order."""
    for (kind, *_), group in groupby(sorted(deliveries, key=_address(run_of)), key=_address(run_of)):
        size = MAX_ENTRIES if registry.of_type(kind).batched_by is not None else MAX_CALLS
        while part := list(islice(group, size)):
            yield part


def calls_of(target: Mapping[str, Any]) -> int:
    """The number of calls in a sub-batch. A target without batches has one, because its calls often take long."""
    return MAX_BATCHES if registry.of_type(str(target["type"])).batched_by is not None else 1


def _address(run_of: Callable[[T], Run]) -> Callable[[T], tuple[str, str, str, str]]:
    """What the deliveries of a call have in common. A role has a session for each namespace."""

    def address(delivery: T) -> tuple[str, str, str, str]:
        run = run_of(delivery)
        field = registry.of_run(run).batched_by
        place = str(run.request.target[field]) if field is not None else ""
        role = run.target_role or ""
        return run.target_kind, role, run.workflow.partition(".")[0] if role else "", place

    return address
