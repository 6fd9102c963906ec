"""``sluice datasets register``: a partition that is ready, by its values (T8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PARTITIONS = "/v1/namespaces/demo/datasets/flights/partitions"
READY: dict[str, Any] = {
    "dataset": "demo.flights",
    "partition": {"year": "2013", "month": "1"},
    "ready_at": "2026-11-22T05:00:00.000Z",
}


@pytest.mark.parametrize("values", [("year=2013", "month=1"), ("year=2013/month=1",)])
@pytest.mark.parametrize("name", [("demo.flights",), ("flights", "-n", "demo")])
def test_a_partition_is_registered_by_its_values(
    api: PlayedApi, sluice: Sluice, name: tuple[str, ...], values: tuple[str, ...]
) -> None:
    api.play("POST", PARTITIONS, READY)
    dataset, *options = name
    done = sluice("datasets", "register", dataset, *values, *options)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "demo.flights has partition year=2013/month=1 since 2026-11-22T05:00:00.000Z\n"
    assert [request.body for request in api.requests] == [{"partition": READY["partition"]}]
    assert json.loads(sluice("datasets", "register", dataset, *values, *options, "--json").stdout) == READY


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("demo.flights", "2013"), "expected KEY=VALUE, got '2013'"),
        (("demo.flights", "year="), "expected KEY=VALUE, got 'year='"),
        (("demo.flights", "year=2013", "year=2014"), "expected each key once, got year twice"),
        (("demo.flights",), "expected the argument KEY=VALUE, got nothing"),
        (("flights", "year=2013"), "got 'flights'"),
    ],
)
def test_a_partition_with_wrong_values_is_refused_before_sending(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], words: str
) -> None:
    done = sluice("datasets", "register", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert not api.requests
