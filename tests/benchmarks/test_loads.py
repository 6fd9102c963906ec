"""The benchmarks of load: their requests to Sluice are valid, and their figures follow from the measurements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import burst, emitters, product, registration, steady
from benchmarks.cloud import Running
from benchmarks.cost.paths import BATCH, PATHS
from benchmarks.measurement import ALL, load
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.schedule import NewSchedule
from sluice.errors import Failure, NotReachable


def test_every_measurement_can_be_loaded_and_shown() -> None:
    for name in ALL:
        assert callable(load(name).measure) and callable(load(name).tables)


def test_e9_the_registered_app_is_accepted_by_the_api() -> None:
    app = App.model_validate(registration.app_of(1_000))
    assert len(app.schedules) == 1_000


def test_e2_one_schedule_can_fire_all_the_events_of_a_burst() -> None:
    assert burst.has_spread()
    document = burst.shot("deliver", 120) | {"spread": {"count": burst.JOBS}}
    spread = NewSchedule.model_validate(document).spread
    assert spread is not None and spread.count == 10_000


def test_e9_registrations_are_counted_per_second() -> None:
    answer = registration.figures(1_000, 12.5, 1, 2.0)
    assert (answer["per_second"], answer["requests"], answer["unchanged_seconds"]) == (80.0, 1, 2.0)


def test_e9_an_interrupted_deployment_is_sent_again_until_done() -> None:
    class Flaky:
        def __init__(self, failures: int) -> None:
            self.failures, self.sent = failures, 0

        def put(self, path: str, document: dict[str, Any]) -> None:
            self.sent += 1
            if self.sent <= self.failures:
                raise NotReachable("it took too long", None, None)

    seconds, requests = registration.deployed(Flaky(2), {})
    assert (requests, seconds >= 0) == (3, True)
    with pytest.raises(Failure):
        registration.deployed(Flaky(registration.MAX_REQUESTS), {})


def test_e9_emitters_report_their_speed_and_no_duplicate() -> None:
    answer = emitters.entry(3, registered=2.0, seconds=2.5, counted={"missed": 0, "doubled": 0})
    assert answer["emitters"] == 3
    assert answer["registrations_per_second"] == emitters.REGISTRATIONS / 2.0
    assert answer["fires_per_second"] == emitters.FIRES / 2.5
    assert (answer["missed"], answer["doubled"]) == (0, 0)


def test_a_steady_load_is_a_million_fires_a_day() -> None:
    assert steady.PER_SECOND * 86_400 >= 1_000_000


class RunsTable:
    """A local cloud whose table of runs grows with each look at it."""

    def __init__(self, *counts: int) -> None:
        self._counts = list(counts)
        self.endpoints = SimpleNamespace(outputs={"RunsTable": "runs"})

    def client(self, service: str) -> RunsTable:
        assert service == "dynamodb"
        return self

    def describe_table(self, TableName: str) -> dict[str, Any]:
        assert TableName == "runs"
        return {"Table": {"ItemCount": self._counts.pop(0) if len(self._counts) > 1 else self._counts[0]}}


def test_the_records_of_all_runs_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until no record comes any more."""
    monkeypatch.setattr(product, "RECORD_POLL_EVERY_S", 0.0)
    assert product.wait_for_records(cast(Running, RunsTable(0, 50, 50, 100, 150)), 100) == 100
    monkeypatch.setattr(product, "RECORD_PATIENCE_S", 0.05)
    assert product.wait_for_records(cast(Running, RunsTable(0, 50, 99)), 100) == 99


def test_the_paths_of_cost_are_those_of_the_results() -> None:
    by_name = {path.name: path for path in PATHS}
    assert {"cron_to_sqs", "batch_to_sqs", "cron_to_emr", "partition_to_emr"} <= by_name.keys()
    assert by_name["batch_to_sqs"].each == BATCH >= 100


def test_measured_tables_are_made_of_the_stored_results() -> None:
    late = {"p50": 1, "p99": 2, "max": 3}
    one = {"jobs": 2, "seconds": 1.0, "per_second": 2.0, "lateness_ms": late, "missed": 0, "doubled": 0}
    assert burst.tables({"burst": one})[0].row_count == 1
    assert steady.tables({"steady": {"offered_per_second": 12, **one}})[0].row_count == 1
    assert registration.tables({"registration": registration.figures(10, 1.0, 1, 1.0)})[0].row_count == 1
    entry = emitters.entry(1, 1.0, 1.0, {"missed": 0, "doubled": 0})
    assert emitters.tables({"emitters": [entry]})[0].row_count == 1
