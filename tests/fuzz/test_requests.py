"""Random requests to each operation of the API are answered or refused: never 500, and never with much CPU time.

Each request goes to the app in this process, on tables in memory. The numbers of answers are printed (`pytest -s`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from chalicelib.web import quotas
from tests.fuzz.requests import OPERATIONS, Asked, Operation, large_requests, requests
from tests.fuzz.values import bounded, documents
from tests.support.schedules import at, partitions
from tests.support.world import World, day, flights
from tests.web.many_schedules import Counting

Make = Callable[[Operation], SearchStrategy[Asked]]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """An app with schedules, jobs and runs. Requests change it as they go."""
    made = World()
    waiting = partitions(3, "notify", timeout="never")
    made.deploy(flights({"each": partitions(1, "clean"), "timed": at("0 5 * * *", "notify"), "held": waiting}))
    made.upload(day(1))
    made.settle()
    with pytest.MonkeyPatch.context() as patch:
        Counting(made, patch)
        yield made


def play(world: World, make: Make, operations: Sequence[Operation], examples: int, derandomize: bool) -> Counter[str]:
    """Send so many requests to each operation. Returns the number of answers by status."""
    counts: Counter[str] = Counter()

    def send(asked: Asked) -> None:
        quotas.memory.cache_clear()  # the clock of the world stands still, so the rate of requests never recovers
        try:
            carried = documents(json.loads(asked.body or "null"))
        except (ValueError, RecursionError):
            carried = 0
        with bounded(carried):
            status, content = asked.send()
        assert status < 500, f"{asked.method} {asked.path}: {status} {content}"
        assert status < 400 or {"code", "message"} <= content["error"].keys(), content
        counts[f"{status // 100}xx"] += 1

    for operation in operations:
        random = settings(
            max_examples=examples, derandomize=derandomize, database=None, deadline=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        random(given(make(operation))(send))()
    print(f"{len(operations)} operations: {dict(counts)}")
    return counts


WITH_BODY = [operation for operation in OPERATIONS if "requestBody" in operation[2]]


def test_no_request_fails_or_costs_much_time(world: World) -> None:
    counts = play(world, requests, OPERATIONS, 4, derandomize=True)
    assert counts["2xx"] >= 20 and counts["4xx"] >= 20, dict(counts)


def test_no_large_request_costs_more_than_its_documents(world: World) -> None:
    play(world, large_requests, WITH_BODY, 4, derandomize=True)


@pytest.mark.long
def test_none_of_many_requests_fails_or_costs_much_time(world: World) -> None:
    play(world, requests, OPERATIONS, 200, derandomize=False)


@pytest.mark.long
def test_none_of_many_large_requests_costs_more(world: World) -> None:
    play(world, large_requests, WITH_BODY, 40, derandomize=False)
