"""How deliveries are split into calls, and how many of these make a sub-batch, whose rows one read covers.

Calls to a target without batches are made in parallel, and count as one call here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

from chalicelib.core.instants import Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry

T = TypeVar("T")

# SendMessageBatch, PublishBatch and PutEvents take ten entries in one call.
MAX_ENTRIES = 10
# Calls of one sub-batch: one BatchGetItem reads the 100 rows of 50 deliveries, a job and a schedule state of each.
MAX_BATCHES = 5
MAX_SIZE = MAX_BATCHES * MAX_ENTRIES
# The number of parallel calls to targets that take no batches.
MAX_CALLS = 16


def longest_call(target: Mapping[str, Any]) -> Millis:
    """The longest time in ms that one call of a target may take."""
    return registry.of_type(str(target["type"])).longest_call(target)


def first_call(deliveries: Iterable[T], run_of: Callable[[T], Run]) -> list[T]:
    """The deliveries of the call that has the first one: as many as the target takes, in their order."""
    left = iter(deliveries)
    first = next(left)
    place = address(run_of(first))
    alike = (each for each in left if address(run_of(each)) == place)
    return [first, *islice(alike, _most(place[0]) - 1)]


def _most(kind: str) -> int:
    """The number of deliveries in one call. Calls to a target without batches are made in parallel."""
    return MAX_ENTRIES if registry.of_type(kind).batched_by is not None else MAX_CALLS


def size_of(target: Mapping[str, Any]) -> int:
    """The number of deliveries in a sub-batch. A target without batches has one call, because its calls often take
    long."""
    return MAX_SIZE if registry.of_type(str(target["type"])).batched_by is not None else MAX_CALLS


def address(run: Run) -> tuple[str, str, str, str]:
    """What the deliveries of a call have in common: one type of target, one role and, if the target takes batches, one
    address. A role has a session for each namespace."""
    field = registry.of_run(run).batched_by
    place = str(run.request.target[field]) if field is not None else ""
    role = run.target_role or ""
    return run.target_kind, role, run.workflow.partition(".")[0] if role else "", place
