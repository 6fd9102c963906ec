"""Metrics in the format that CloudWatch reads from a Lambda's log, and how DynamoDB's refusals are counted (O2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib import handlers, wiring
from chalicelib.aws.metrics import EmfMetrics
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.runs import metrics as run_metrics
from chalicelib.core.runs.metrics import ALL, REASONS
from chalicelib.core.writes import Create, Put
from sluice.testing.memory import MemoryMetrics
from tests.support import rows
from tests.support.world import settings

NAMES = {"catalog_table": "catalog", "jobs_table": "jobs", "runs_table": "runs"}


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_o2_invocation_writes_one_record_and_one_for_each_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = EmfMetrics("prod")
    metrics.add(run_metrics.FIRE_LATENESS, 3_000)
    metrics.add(run_metrics.FIRE_LATENESS, 12)
    metrics.add(run_metrics.WRITE_CONFLICTS, 1)
    metrics.add(run_metrics.WAITS_BEGUN, 1, "slots")
    assert written(capsys) == []

    metrics.flush()

    plain, slots = written(capsys)
    [directive] = plain["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Sluice", [["stage"]])
    assert directive["Metrics"] == [
        {"Name": "FireLateness", "Unit": "Milliseconds"},
        {"Name": "WriteConflicts", "Unit": "Count"},
    ]
    assert (plain["stage"], plain["FireLateness"], plain["WriteConflicts"]) == ("prod", [3_000, 12], [1])
    [directive] = slots["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["stage", "reason"]]
    assert (slots["stage"], slots["reason"], slots["WaitsBegun"]) == ("prod", "slots", [1])
    metrics.flush()
    assert written(capsys) == [], "nothing is written twice, and nothing for nothing"


def test_o2_the_powertools_service_is_not_a_dimension(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sluice")
    metrics = EmfMetrics("prod")
    metrics.add(run_metrics.WRITE_CONFLICTS, 1)
    metrics.flush()
    [line] = written(capsys)
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["stage"]]


def test_o2_many_values_are_measured_a_hundred_to_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics("prod")
    for late in range(250):
        metrics.add(run_metrics.FIRE_LATENESS, late)
    metrics.flush()
    lines = written(capsys)
    assert [len(line["FireLateness"]) for line in lines] == [100, 100, 50]
    assert [value for line in lines for value in line["FireLateness"]] == list(range(250))


def test_o2_cloudwatch_accepts_each_name_and_unit(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics("prod")
    for measure in ALL:
        for reason in measure.reasons or ("",):
            metrics.add(measure, 0.5, reason)
    metrics.flush()
    answer = {each["Name"] for line in written(capsys) for each in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert answer == {measure.name for measure in ALL}
    assert sum(len(measure.reasons) or 1 for measure in ALL) == 23, "docs/operations.md says what they cost"
    assert {reason for measure in ALL for reason in measure.reasons} == set(REASONS)


def test_o2_a_failed_measurement_fails_no_invocation(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics("prod")
    metrics.add(run_metrics.RUN_COST, "much")
    metrics.add(run_metrics.WAITS_BEGUN, 1, "pool")
    metrics.flush()
    [line] = written(capsys)
    assert line["WaitsBegun"] == [1]


def test_o2_a_failing_invocation_writes_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(event: object) -> None:
        wiring.metrics().add(run_metrics.WRITE_CONFLICTS, 1)
        raise RuntimeError("it lost too many")

    with pytest.raises(RuntimeError, match="it lost too many"):
        handlers.measured({}, fails)

    assert [line["WriteConflicts"] for line in written(capsys)] == [[1]]


def refusal(code: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}, **more}, "TransactWriteItems")


class Refuses:
    """A client that refuses its first calls with this error, and accepts the rest."""

    def __init__(self, *refusals: ClientError) -> None:
        self._refusals = list(refusals)

    def put_item(self, **arguments: Any) -> None:
        if self._refusals:
            raise self._refusals.pop(0)

    def transact_write_items(self, **arguments: Any) -> None:
        if self._refusals:
            raise self._refusals.pop(0)

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        return {"UnprocessedItems": RequestItems} if self._refusals and self._refusals.pop() else {}


CANCELLED = "TransactionCanceledException"


@pytest.mark.parametrize(
    ("refused", "counted"),
    [
        (refusal("ProvisionedThroughputExceededException"), [1]),
        (refusal(CANCELLED, CancellationReasons=[{"Code": "None"}, {"Code": "ThrottlingError"}]), [1]),
        (refusal(CANCELLED, CancellationReasons=[{"Code": "None"}, {"Code": "TransactionConflict"}]), []),
    ],
    ids=["a single write", "a transaction", "a conflict is no throttle"],
)
def test_o2_throttled_dynamodb_calls_are_counted(refused: ClientError, counted: list[int]) -> None:
    metrics = MemoryMetrics()
    dynamo = Dynamo(Refuses(refused), settings(NAMES), Patience(sleep=lambda _: None), metrics)

    assert dynamo.commit([Create(rows.job()), Create(rows.run())]) is None

    assert metrics.of(run_metrics.THROTTLED_CALLS) == counted


def test_o2_a_partly_accepted_batch_counts_as_throttled() -> None:
    metrics = MemoryMetrics()
    client = Refuses(refusal("any"))
    Dynamo(client, settings(NAMES), Patience(sleep=lambda _: None), metrics).put_all([Put(rows.job())])
    assert metrics.of(run_metrics.THROTTLED_CALLS) == [1]
