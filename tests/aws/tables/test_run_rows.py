"""How a run is stored: in attributes that a person can read; packed rows of earlier code still load (H1, O11)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cost.capacity import KB, size
from chalicelib.aws.tables import items, packing
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
    }  # fmt: skip
    run = full_run({**EMR, "spark": {"rate": 0.1}}, **answer)
    assert items.from_item(Run, items.to_item(run, 4, 4)) == run


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


def test_o11_a_packed_run_can_be_read() -> None:
    """A row of code that packed runs. A change of a word of the packing would make such rows unreadable."""
    assert items.from_item(Run, PACKED) == full_run(SQS, event=FIRE, permits=(), wake_at=None, announce=())


def test_o11_a_stream_with_base64_gives_the_same_row() -> None:
    answer = {**PACKED, "packed": {"S": base64.b64encode(PACKED["packed"]["B"]).decode()}}
    assert items.from_item(Run, answer) == items.from_item(Run, PACKED)


def test_o11_a_run_with_separate_attributes_still_loads() -> None:
    """One attribute per field, documents as JSON text, and without fields that were added later."""
    run = items.from_item(Run, ONE_BY_ONE)
    assert run == Run(
        "demo.flights.clean.mm94n95g.a625ed3b71b36758b8a8", 1, "demo.flights.clean", 1772452820500,
        "demo.flights.clean_flights", "STARTING",
        StartRequest({"type": "emr_serverless", "spark": {}}, {"rate": 0.1}, "s3://c/x.json", "e31f", "n-1"),
        ("workflow:demo.flights.clean_flights", "emr:00f"), says("due"), 1772452980000, 1772452980000, 5, 1, "fire",
        rev=3, nominal_at=1772452980000, event=Event("time-1", "time", "time:demo.flights.clean", 5, 6),
        correlation={"day": "1"}, announce=("STARTED",), wake_at=1772453100000,
    )  # fmt: skip
    assert items.from_item(Run, items.to_item(replace(run, rev=4), 4, 4)) == replace(run, rev=4)


def test_o11_the_next_write_of_a_packed_run_unpacks_it() -> None:
    run = replace(items.from_item(Run, PACKED), rev=8)
    again = items.to_item(run, 4, 4)
    assert packing.ATTRIBUTE not in again
    assert again["fired_by"] == {"S": json.dumps(["unknown", CAME], separators=(",", ":"))}
    assert items.from_item(Run, again) == run
    assert {name: again[name] for name in ("wf_key", "schedule_key", "day_key", "at")} == {
        name: PACKED[name] for name in ("wf_key", "schedule_key", "day_key", "at")
    }, "no index changes"


PACKED_TEXT = (
    "pZbJboMwEIbfhTtlPMZbHiCH9tBDe6rUg8GOFGVraBZVVd+9NhCIw3aAo0f+bTMz3z+/LV9nqERNQsoXfnsynrd2StQTxe5tUROcCIEp"
    "Qwn+Czxg4idFc3Bnz/HV9uCOIE0ZF1IBwaS5QOwaysT7w2m9+okm+kvnjuIPO7d6Y+PmyKR8RlI/wxNWr4uvQ1G10dvy1a08L1+iz9FO"
    "LYV92HV/fH/t+4PqZp6R5AEOWEpWGZdKoJGGaq6Z1FrmuZDEohZcKMhyy1jLixl3eETNiENP1MyIgQONAd8JLggsQDwxgI+Op7fqV1va"
    "eGjyjQTIBU1LiQ7hgmIPYReEhrnXM0e0KMQO70pVlw4pBtF3Oxj99pCCVYgShAcg+gAVwCglIRvrAIcBTN4UFYPhWY7Q3lmOVoXQO1iO"
    "bukZtIhQMqNSAnc3yrnBLBdjw5dxU0BYVOE4FmSvLwdV7K9jE8cNXuRJ6Sw3oBK3UJCNvLAdHIWBrDURDE2EsjRVwHil+g8="
)
PACKED: dict[str, Any] = {
    "pk": {"S": "RUN#analytics.flights.clean_daily.mm94n95g.a625ed3b71b36758b8a8"},
    "sk": {"S": "A#001"},
    "format": {"N": "3"},
    "state": {"S": "STARTING"},
    "rev": {"N": "7"},
    "ttl": {"N": "3544905600"},
    "wf_key": {"S": "analytics.flights.clean_flights#1"},
    "schedule_key": {"S": "analytics.flights.clean_daily#1"},
    "day_key": {"S": "analytics#2026-03-02#1"},
    "at": {"S": "2026-03-02T12:00:00.000Z#analytics.flights.clean_daily.mm94n95g.a625ed3b71b36758b8a8#001"},
    "packed": {"B": base64.b64decode(PACKED_TEXT)},
}
ONE_BY_ONE: dict[str, Any] = {
    "pk": {"S": "RUN#demo.flights.clean.mm94n95g.a625ed3b71b36758b8a8"},
    "sk": {"S": "A#001"},
    "format": {"N": "1"},
    "run_id": {"S": "demo.flights.clean.mm94n95g.a625ed3b71b36758b8a8"},
    "attempt": {"N": "1"},
    "schedule": {"S": "demo.flights.clean"},
    "generation": {"N": "1772452820500"},
    "workflow": {"S": "demo.flights.clean_flights"},
    "state": {"S": "STARTING"},
    "request": {
        "S": '{"target":{"type":"emr_serverless","spark":{}},"properties":{"rate":0.1},'
        '"context_uri":"s3://c/x.json","client_token":"e31f","name":"n-1"}'
    },
    "permits": {"L": [{"S": "workflow:demo.flights.clean_flights"}, {"S": "emr:00f"}]},
    "fired_by": {"S": "due"},
    "claimed_at": {"N": "1772452980000"},
    "created_at": {"N": "1772452980000"},
    "priority": {"N": "5"},
    "attempts": {"N": "1"},
    "kind": {"S": "fire"},
    "rev": {"N": "3"},
    "nominal_at": {"N": "1772452980000"},
    "correlation": {"M": {"day": {"S": "1"}}},
    "event": {"S": '{"id":"time-1","kind":"time","key":"time:demo.flights.clean","instant":5,"accepted_at":6}'},
    "announce": {"L": [{"S": "STARTED"}]},
    "wake_shard": {"S": "2"},
    "wake_at": {"S": "2026-03-02T12:05:00.000Z"},
    "wf_key": {"S": "demo.flights.clean_flights#2"},
    "schedule_key": {"S": "demo.flights.clean"},
    "day_key": {"S": "demo#2026-03-02#2"},
    "at": {"S": "2026-03-02T12:03:00.000Z#demo.flights.clean.mm94n95g.a625ed3b71b36758b8a8#001"},
}
