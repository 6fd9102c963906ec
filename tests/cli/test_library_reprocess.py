"""`Client.reprocess`: what it sends, what it returns, and how it waits (L21)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sluice import Client, WrongUsage
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import reprocess

ALL = "/v1/namespaces/demo/reprocess"
RUN = "demo.flights.clean.m3k2j9x1.b90c17e4d2a35f8871e0"
DAY = {"year": "2013", "day": 1}
JANUARY = (datetime(2026, 1, 1, tzinfo=UTC), "2026-02-01T00:00:00Z")


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"dataset": "demo.flights", "partition": DAY}, {"dataset": "demo.flights", "partition": DAY}),
        ({"dataset": "demo.flights", "since": {"year": 2013}}, {"dataset": "demo.flights", "from": {"year": 2013}}),
        ({"run": RUN, "only": True}, {"run": RUN, "scope": "only"}),
        ({"schedule": "demo.flights.nightly", "since": JANUARY[0], "until": JANUARY[1]},
         {"fires": {"schedule": "demo.flights.nightly", "from": "2026-01-01T00:00:00+00:00", "to": JANUARY[1]}}),
        ({"run": RUN, "upto": "demo.flights.join", "concurrency": 3, "properties": {"mode": "deep"}},
         {"run": RUN, "upto": "demo.flights.join", "concurrency": 3, "properties": {"mode": "deep"}}),
    ],
)  # fmt: skip
def test_l21_programs_begin_a_reprocessing_of_each_kind(api: PlayedApi, asked: Any, sent: Any) -> None:
    api.play("POST", ALL, Played(503), Played(201, reprocess()))
    begun = Client(pause=lambda _: None).reprocess(**asked)
    assert (begun.id, begun.namespace, begun.state) == ("326ca05653517d0b", "demo", "RUNNING")
    assert (begun.total, begun.done, begun.ended, begun.succeeded) == (3, 1, False, False)
    first, repeated = api.requests
    assert repeated.body == {"scope": "downstream", "concurrency": 1, "properties": {}} | sent
    assert first.headers["idempotency-key"] == repeated.headers["idempotency-key"] != ""


@pytest.mark.parametrize(("end", "succeeded"), [("DONE", True), ("FAILED", False), ("CANCELLED", False)])
def test_l21_programs_wait_for_the_end_of_a_reprocessing(api: PlayedApi, end: str, succeeded: bool) -> None:
    api.play("POST", ALL, Played(201, reprocess()))
    api.play("GET", f"{ALL}/326ca05653517d0b", reprocess(), reprocess(end))
    pauses: list[float] = []
    last = Client(pause=pauses.append).reprocess("demo.flights", DAY, wait=True)
    assert (last.state, last.ended, last.succeeded) == (end, True, succeeded)
    assert len(pauses) == 1
    with pytest.raises(TimeoutError, match="the end of re-processing 326ca05653517d0b"):
        api.play("GET", f"{ALL}/326ca05653517d0b", reprocess())
        Client(pause=pauses.append).reprocess("demo.flights", DAY, wait=True, timeout=2)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "one of dataset, run and schedule, got none"),
        ({"run": RUN, "schedule": "demo.flights.nightly"}, "one of dataset, run and schedule, got run and schedule"),
        ({"schedule": "demo.flights.nightly", "since": JANUARY[0]}, "since and until of a schedule as instants"),
        ({"schedule": "demo.flights.nightly", "since": {"day": 1}, "until": {"day": 2}}, "as instants"),
        ({"dataset": "demo.flights", "since": JANUARY[1]}, "since and until of a dataset as partitions"),
        ({"run": RUN, "since": JANUARY[1]}, "since and until of a dataset or a schedule"),
    ],
)
def test_l21_programs_get_wrong_starts_refused_unsent(api: PlayedApi, asked: Any, words: str) -> None:
    with pytest.raises(WrongUsage, match=words):
        Client().reprocess(**asked)
    assert api.requests == []
