"""``sluice datasets show``: the runs that made a partition and that used it (L22)."""

from __future__ import annotations

import json

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

FLIGHTS = "/v1/namespaces/demo/datasets/flights"
ONE = f"{FLIGHTS}/partition"
RUN = {"schedule": "demo.flights.clean", "state": "SUCCEEDED", "at": "2026-03-02T11:59:00.000Z", "backfill": None}
VIEW = {
    "partition": {"year": "2013", "day": "5"},
    "ready_at": None,
    "made_by": [RUN | {"run_id": "demo.flights.load.1.a"}],
    "runs": [RUN | {"run_id": "demo.flights.clean.1.b", "backfill": "2ce6.0"}],
    "waiting": [{"job_id": "demo.flights.join.1.c", "state": "PENDING_TRIGGER"}],
    "ended": [RUN | {"kind": "DROPPED", "reason": "the partition is late"}],
}


def test_l22_a_partition_is_shown_with_its_runs(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", FLIGHTS, {"keys": ["year", "day"]})
    api.play("GET", ONE, VIEW)
    result = sluice("datasets", "show", "demo.flights", "day=5", "year=2013")
    assert result.exit_code == 0, result.stderr
    assert api.requests[1].query == {"values": "2013/5"}
    head, _, *rows, _, record = result.stdout.splitlines()
    assert "demo.flights.clean  DROPPED" in record and record.endswith("the partition is late")
    assert head == "partition year=2013/day=5  not registered"
    assert [row.split()[:3] for row in rows] == [
        ["made", "by", "demo.flights.load.1.a"],
        ["used", "by", "demo.flights.clean.1.b"],
        ["waiting", "demo.flights.join.1.c", "PENDING_TRIGGER"],
    ]
    assert rows[1].endswith("2ce6.0")
    shown = sluice("datasets", "show", "demo.flights", "day=5", "year=2013", "--json")
    assert json.loads(shown.stdout) == VIEW


def test_l22_a_partition_needs_each_key(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", FLIGHTS, {"keys": ["year", "day"]})
    result = sluice("datasets", "show", "demo.flights", "day=5")
    assert (result.exit_code, "expected a value for each of year, day, got day" in result.stderr) == (2, True)
