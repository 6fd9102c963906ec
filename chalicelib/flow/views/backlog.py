"""How many jobs wait in a namespace, counted from keys: no job is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from chalicelib.core.rows.ref import Ref
from chalicelib.flow.views.waiting import EVER, MAX_LIMITS, is_shown, may_hold
from chalicelib.ports import Page, Ports

PAGE = 5_000  # entries of an index in one read, less than 1 MB
MAX_KEYS = 100_000  # entries that one count reads: 1,500 units or so

T = TypeVar("T")
Place = tuple[str, int, str]


def count(ports: Ports, namespace: str, most: int) -> int:
    """The number of jobs that wait in a namespace, at most ``most``. Fires that are prepared ahead count, deliveries of
    messages do not. A count reads `MAX_KEYS` entries, so it is too low if as many jobs of other namespaces wake sooner.
    """
    found: set[Place] = set()
    for place in _places(ports, namespace):
        found.add(place)
        if len(found) >= most:
            break
    return min(len(found), most)


def _places(ports: Ports, namespace: str) -> Iterator[Place]:
    """The schedule, generation and sort key of each waiting job; a job with a ``wake_at`` in a queue comes twice."""
    left, limits = [MAX_KEYS], set()
    for ref in _each(partial(ports.wakes.listed, "waits", namespace, PAGE), left):
        yield from _of_ref(ref, namespace)
    for ref, _ in _each(partial(ports.wakes.waking, "jobs", EVER, PAGE), left):
        if ref.kind == "limit" and may_hold(ref.parts[0], namespace):
            limits.add(ref.parts[0])
        yield from _of_ref(ref, namespace)
    for name in sorted(limits)[:MAX_LIMITS]:
        for waiter in _each(partial(ports.jobs.queue, name, PAGE), left):
            if waiter.run is None and is_shown(waiter.job_schedule, namespace):
                yield waiter.job_schedule, waiter.job_generation, waiter.job_sort_key


def _of_ref(ref: Ref, namespace: str) -> Iterator[Place]:
    if ref.kind == "job" and is_shown(ref.parts[0], namespace):
        yield ref.parts[0], int(ref.parts[1], 36), ref.parts[2]


def _each(read: Callable[[str | None], Page[T]], left: list[int]) -> Iterator[T]:
    """The items of all pages, while any of the budget is left. A page costs its items, and one."""
    cursor: str | None = None
    while left[0] > 0:
        page = read(cursor)
        left[0] -= len(page.items) + 1
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
