"""How a run is stored: in attributes that a person can read (H1)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cost.capacity import KB, size
from chalicelib.aws.tables import items
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.run import Run, StartRequest
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says, with_reasons

FIRE = Event("time-1798b38806724c6d2bc7", "time", "time:demo.flights.clean", NOON, NOON)
EMR = {
    "type": "emr_serverless",
    "entry_point": "s3://acme-analytics-prod-code-eu-west-1/jobs/clean_flights/3.14.0/clean_flights.py",
    "arguments": ["--mode", "incremental", "--warehouse", "s3://acme-analytics-prod-lake-eu-west-1/warehouse/flights/"],
    "py_files": ["s3://acme-analytics-prod-code-eu-west-1/jobs/clean_flights/3.14.0/sluice_job.py"],
    "spark": {
        "spark.executor.cores": "4",
        "spark.executor.memory": "16g",
        "spark.driver.cores": "2",
        "spark.driver.memory": "8g",
        "spark.dynamicAllocation.maxExecutors": "40",
        "spark.sql.shuffle.partitions": "400",
        "spark.emr-serverless.executor.disk": "100g",
        "spark.hadoop.fs.s3a.committer.name": "magic",
    },
    "application_id": "00fqk2v8t9abcd09",
    "execution_role_arn": "arn:aws:iam::123456789012:role/analytics-prod-clean-flights",
}
SQS = {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/analytics-prod-notify"}
CAME = (
    "trigger met: analytics.flights.clean_flights reached COMPLETED at 2026-03-02T12:10:07.500Z; "
    "1 partition of analytics.weather came at 2026-03-02T12:08:34.500Z"
)


def full_run(target: dict[str, Any], **reported: Any) -> Run:
    """A run near its end, with every field that a long life sets."""
    run_id = "analytics.flights.clean_daily.mm94n95g.a625ed3b71b36758b8a8"
    uri = f"s3://sluice-prod-control-123456789012-eu-west-1/context/{run_id}.json"
    properties = {"output": "s3://acme-analytics-prod-lake-eu-west-1/clean/flights/", "airports": ["SFO", "JFK"]}
    request = StartRequest(target, properties, uri, "e31fb68972d8d3a6a58aa8cc781e2a76790bce55", f"{run_id}-1")
    keys = {"year": "2013", "month": "1", "day": "31"}
    plain = replace(
        rows.run(run_id), request=request, permits=("workflow:analytics.flights.clean_flights", "emr:00fqk2v8t9abcd09"),
        schedule="analytics.flights.clean_daily", workflow="analytics.flights.clean_flights", fired_by=says(CAME),
        version=12, accepted_at=NOON - 9_123, start_requested_at=NOON + 212, started_at=NOON + 31_207,
        running_seen_at=NOON + 31_950,
        ended_at=NOON + 905_331, state_at=NOON + 906_017, correlation=keys, partition=keys, calls=2, rev=7,
        target_id="00fqk2v8t9abcd09/00fr1k8v5m0q7d0b", announce=("STARTED", "COMPLETED"), expires_at=NOON * 2,
    )  # fmt: skip
    return replace(plain, **with_reasons(reported))


@pytest.mark.parametrize(
    ("run", "kilobytes"),
    [
        (full_run(EMR), 3),
        (full_run(EMR, event=FIRE, nominal_at=NOON, due_at=NOON, fired_by="due", correlation=None, partition=None), 3),
        (full_run(SQS, event=FIRE, nominal_at=NOON, due_at=NOON, permits=(), wake_at=None, announce=()), 2),
    ],
    ids=["gathered", "fire", "delivery"],
)
def test_h1_a_run_with_long_names_has_a_bounded_size(run: Run, kilobytes: int) -> None:
    stored = items.to_item(run, 4, 4)
    assert (kilobytes - 1) * KB < size(stored) <= kilobytes * KB
    assert items.from_item(Run, stored) == run


def test_h1_a_stored_run_can_be_read_without_sluice() -> None:
    run = full_run(EMR, event=FIRE, waited_for="waits for a slot: 2 of 2", billed=(67, 183, 0))
    stored = items.to_item(run, 4, 4)
    assert not [name for name, content in stored.items() if "B" in content]
    assert stored["fired_by"] == {"S": json.dumps(["said", CAME], separators=(",", ":"))}
    assert stored["started_at"] == {"N": str(NOON + 31_207)}
    assert stored["correlation"] == {"M": {"year": {"S": "2013"}, "month": {"S": "1"}, "day": {"S": "31"}}}
    assert stored["billed"] == {"L": [{"N": "67"}, {"N": "183"}, {"N": "0"}]}
    assert json.loads(stored["request"]["S"])["target"] == EMR
    assert json.loads(stored["event"]["S"])["id"] == FIRE.id
    assert "unknown_answer" not in stored and "metrics" not in stored, "what is empty is not stored"


def test_h1_every_field_of_a_run_is_read_back_unchanged() -> None:
    answer = {
        "nominal_at": NOON, "due_at": NOON + 1, "late": True, "lease_until": NOON + 2, "unknown_answer": True,
        "cancel": True, "pause_after": 3, "backfill": "b1", "paced_until": NOON + 3, "queued_in": "policy:demo.slow",
        "rank": "0005#", "reason": "no answer: ü", "cursor": "demo.x", "leases": 4, "event": rows.event(),
        "metrics": {"rows": 0.5, "parts": [1, None]}, "billed": (1, 2, 3), "uses": ("run lake.core.clean",),
        "result": ["a", {"é": 1.5, "deep": [[None]]}], "result_refused": "too large",
    }  # fmt: skip
    run = full_run({**EMR, "spark": {"rate": 0.1}}, **answer)
    assert items.from_item(Run, items.to_item(run, 4, 4)) == run


@pytest.mark.parametrize("result", [{}, [], 0, False, "", "\ud800"])
def test_w18_a_result_that_counts_as_false_is_kept(result: Any) -> None:
    stored = items.to_item(full_run(EMR, result=result), 4, 4)
    assert items.from_item(Run, stored).result == result
    assert "result" not in items.to_item(full_run(EMR), 4, 4)


def test_h1_text_that_dynamodb_refuses_gets_question_marks() -> None:
    stored = items.to_item(full_run(EMR, reason="no answer: \ud800 ü"), 4, 4)
    assert stored["reason"] == {"S": '["said","no answer: ? ü"]'}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=20), json_values, max_size=5), st.text(max_size=300))
def test_l9_properties_and_reasons_of_any_kind_survive(properties: dict[str, Any], reason: str) -> None:
    run = rows.run(request=StartRequest({}, properties, "s3://c", "t", "n"), reason=reason)
    assert items.from_item(Run, items.to_item(run, 4, 4)) == run
