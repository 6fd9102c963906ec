"""`Client.register_partition`: a job reports that the partition it has written is ready (T7)."""

from __future__ import annotations

import pytest

from sluice.client import Client
from sluice.errors import ApiRefused, WrongUsage
from tests.cli.played_api import Played, PlayedApi

PARTITIONS = "/v1/namespaces/demo/datasets/flights/partitions"
BUSY = Played(503, {"error": {"code": "unavailable", "message": "busy", "field": None, "hint": None}})


@pytest.fixture
def client(api: PlayedApi) -> Client:
    return Client(api.url, pause=lambda _: None)


def test_t7_a_job_registers_the_partition_that_it_has_written(api: PlayedApi, client: Client) -> None:
    answer = {"dataset": "demo.flights", "partition": {"year": "2013", "month": "1", "day": "5"}}
    api.play("POST", PARTITIONS, Played(201, answer))
    assert client.register_partition("demo.flights", {"year": 2013, "month": 1, "day": "5"}) == answer
    [request] = api.requests
    assert request.body == {"partition": {"year": 2013, "month": 1, "day": "5"}}


def test_t7_a_registration_is_repeated_while_the_api_is_busy(api: PlayedApi, client: Client) -> None:
    api.play("POST", PARTITIONS, BUSY, Played(201, {"dataset": "demo.flights"}))
    assert client.register_partition("demo.flights", {"day": 5}) == {"dataset": "demo.flights"}
    assert len(api.requests) == 2


def test_t7_a_refusal_says_what_is_wrong(api: PlayedApi, client: Client) -> None:
    api.refuse("POST", PARTITIONS, 400, "invalid", "expected an object with exactly the keys year, month, day")
    with pytest.raises(ApiRefused, match="exactly the keys year, month, day"):
        client.register_partition("demo.flights", {"day": 5})


@pytest.mark.parametrize("name", ["flights", "demo.flights.clean", "demo.", ".flights"])
def test_t7_a_dataset_has_a_namespace_and_a_name(api: PlayedApi, client: Client, name: str) -> None:
    with pytest.raises(WrongUsage, match="a dataset as namespace.name"):
        client.register_partition(name, {"day": 5})
    assert api.requests == []
