"""Backfills over the API: requested, previewed, shown, cancelled, refused (L12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli import recorded
from tests.web.conftest import APP, KEYS, NS, Api, installation, settle_in

NIGHTLY = {"type": "time", "expression": "0 2 * * *"}
ONE = f"{APP}/schedules/nightly"
JANUARY = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}
PARTITION = {"type": "partition", "dataset": "flights"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
        made.put(f"{APP}/workflows/clean", {"target": emr})
        made.schedule("nightly", trigger=NIGHTLY, workflow="clean")
        made.schedule("daily", trigger=PARTITION, workflow="clean")
        yield made


def test_l12_a_backfill_is_begun_shown_listed_and_cancelled(api: Api) -> None:
    answer = api.answer(api.send("POST", f"{ONE}/backfills", JANUARY | {"concurrency": 3, "order": "newest"}), 201)
    assert (answer["state"], answer["total"], answer["waiting"], answer["order"]) == ("RUNNING", 31, 31, "newest")
    assert set(answer) == set(recorded.backfill())
    assert (answer["first"], answer["position"]) == ("2026-01-31T02:00:00.000Z", "2026-01-28T02:00:00.000Z")
    assert [each["entry"][:10] for each in answer["active"]] == ["2026-01-31", "2026-01-30", "2026-01-29"]

    path = f"{ONE}/backfills/{answer['backfill_id']}"
    assert api.get(path) == answer
    jobs = api.get(f"{ONE}/jobs")["items"]
    assert {(job["kind"], job["backfill"]) for job in jobs} == {("backfill", answer["backfill_id"])}

    after = api.post(f"{path}/cancel")
    assert (after["state"], after["cancelled"], after["active"]) == ("CANCELLED", 31, [])
    assert "was cancelled by" in after["reason"]
    assert api.post(f"{path}/cancel?runs=cancel") == after, "cancelling what is over changes nothing"
    [listed] = [item for item in api.get(f"{ONE}/backfills")["items"] if item["backfill_id"] == answer["backfill_id"]]
    assert listed == after


def test_l12_a_dry_run_answers_how_many_and_stores_nothing(api: Api) -> None:
    before = api.everything()
    answer = api.answer(api.send("POST", f"{ONE}/backfills", JANUARY | {"dry_run": True}), 200)
    assert answer == {
        "schedule": "demo.flights.nightly",
        "dataset": None,
        "total": 31,
        "first": [f"2026-01-0{number}T02:00:00.000Z" for number in (1, 2, 3)],
        "last": [f"2026-01-{number}T02:00:00.000Z" for number in (29, 30, 31)],
        "now": {"missing": 31, "waiting": 0, "running": 0, "succeeded": 0, "failed": 0},
        "entries": [
            {
                "entry": f"2026-01-{number:02d}T02:00:00.000Z",
                "state": "missing",
                "runs": True,
                **dict.fromkeys(("why", "code", "run_id")),
            }
            for number in range(1, 32)
        ],
    }
    assert api.everything() == before


def test_l12_one_idempotency_key_is_one_backfill(api: Api) -> None:
    first, again = (api.post(f"{ONE}/backfills", JANUARY, idempotency_key="k") for _ in range(2))
    assert first == again
    api.post(f"{ONE}/backfills/{first['backfill_id']}/cancel")


def test_l12_partitions_have_their_keys_newest_backfill_first(api: Api) -> None:
    for number in (9, 10, 11):
        api.post(f"{NS}/datasets/flights/partitions", {"partition": {"year": 2013, "month": 1, "day": number}})
    body = {"partitions": {"from": {"year": 2013}, "to": {"year": 2013, "month": 1, "day": 10}}}
    answer = api.post(f"{APP}/schedules/daily/backfills", body)
    assert (answer["dataset"], answer["total"]) == ("demo.flights", 2)
    assert (answer["first"], answer["last"]) == ({**dict.fromkeys(KEYS, "1"), "year": "2013", "day": "9"},
                                             {**dict.fromkeys(KEYS, "1"), "year": "2013", "day": "10"})  # fmt: skip
    newest = api.post(f"{APP}/schedules/daily/backfills", {"partitions": {}})
    page = api.get(f"{APP}/schedules/daily/backfills?limit=1")
    assert [item["backfill_id"] for item in page["items"]] == [newest["backfill_id"]]
    rest = api.get(f"{APP}/schedules/daily/backfills?limit=1&cursor={page['next_cursor']}")
    assert [item["backfill_id"] for item in rest["items"]] == [answer["backfill_id"]]
    assert rest["next_cursor"] is None


def test_l12_backfills_of_a_deleted_schedule_can_still_be_read(api: Api) -> None:
    api.schedule("gone", trigger=NIGHTLY, workflow="clean")
    answer = api.post(f"{APP}/schedules/gone/backfills", JANUARY)
    api.delete(f"{APP}/schedules/gone")
    seen = api.get(f"{APP}/schedules/gone/backfills/{answer['backfill_id']}")
    assert (seen["state"], seen["reason"], seen["cancelled"]) == ("ENDED", "the schedule was deleted", 31)
    assert api.refused(404, "POST", f"{APP}/schedules/gone/backfills", JANUARY)["code"] == "not_found"


def test_a_backfill_without_bounds_says_what_to_give(api: Api) -> None:
    api.schedule("nightly", trigger=NIGHTLY, workflow="clean")
    error = api.refused(400, "POST", f"{APP}/schedules/nightly/backfills", {})
    assert error["hint"] == "a schedule with a time trigger takes from and to, one that waits for data takes partitions"


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "from", "either an interval"),
        ({"from": "2026-01-01T00:00:00Z"}, "to", "both ends"),
        (JANUARY | {"partitions": {}}, "from", "either an interval"),
        (JANUARY | {"from": "yesterday"}, "from", "an RFC 3339 instant"),
        (JANUARY | {"concurrency": 0}, "concurrency", "greater than or equal to 1"),
        (JANUARY | {"concurrency": 101}, "concurrency", "less than or equal to 100"),
        (JANUARY | {"order": "random"}, "order", "'oldest' or 'newest'"),
        (JANUARY | {"from_": "2026-01-01T00:00:00Z"}, "from_", "unknown field"),
        (JANUARY | {"to": "2999-01-01T00:00:00Z"}, "to", "an instant in the past"),
        ({"partitions": {"from": {"day": "a/b"}}}, "partitions.from.day", "without '/'"),
        ({"partitions": {"from": {"day": True}}}, "partitions.from.day", "text or a whole number"),
        ({"partitions": {"values": []}}, "partitions.values", "at least 1 item"),
        ({"partitions": {"values": [{"day": "1"}], "to": {"day": "1"}}}, "partitions.values", "either a range"),
    ],
)
def test_l12_an_invalid_backfill_request_is_refused_by_field(api: Api, body: Any, field: str, words: str) -> None:
    error = api.refused(400, "POST", f"{ONE}/backfills", body)
    assert error["field"] == field, error
    assert words in error["message"]


def test_l12_a_missing_schedule_or_backfill_is_not_found(api: Api) -> None:
    assert api.refused(404, "POST", f"{APP}/schedules/none/backfills", JANUARY)["code"] == "not_found"
    assert api.refused(404, "GET", f"{APP}/schedules/none/backfills")["code"] == "not_found"
    for method, path in (("GET", "nope"), ("POST", "nope/cancel")):
        error = api.refused(404, method, f"{ONE}/backfills/{path}")
        assert (error["code"], error["message"]) == ("not_found", "no backfill named 'nope'")
    answer = api.post(f"{ONE}/backfills", JANUARY)
    error = api.refused(400, "POST", f"{ONE}/backfills/{answer['backfill_id']}/cancel?runs=all")
    assert error["field"] == "runs"


def test_l12_the_body_of_a_backfill_is_described(api: Api) -> None:
    document = api.get("/v1/openapi.json")
    schema = document["components"]["schemas"]["Backfill"]
    assert {"from", "to", "partitions", "only", "concurrency", "order", "properties", "dry_run"} == set(
        schema["properties"]
    )
    assert "backfill_id" in json.dumps(document["paths"])


def test_l23_a_backfill_of_days_counts_their_partitions(api: Api) -> None:
    period = {"each": "day", "format": "day=%Y-%m-%d"}
    api.put(f"{NS}/datasets/days", {"bucket": "lake", "prefix": "raw/days/", "keys": ["day"], "period": period})
    api.schedule("whole", trigger={"type": "partition", "dataset": "days", "of": "period"}, workflow="clean", per="day")
    api.post(f"{NS}/datasets/days/partitions", {"partition": {"day": "2026-01-02"}})
    asked = {"partitions": {"from": {"day": "2026-01-01"}, "to": {"day": "2026-01-02"}}}
    path = f"{APP}/schedules/whole/backfills"
    plan = api.answer(api.send("POST", path, asked | {"dry_run": True}), 200)
    found = [(each["entry"]["day"], each["have"], each["need"], each["runs"]) for each in plan["entries"]]
    assert found == [("2026-01-01", 0, 1, False), ("2026-01-02", 1, 1, True)]
    assert plan["entries"][0]["why"] == "lacks 1 of 1 day of 2026-01-01 UTC in demo.days: 2026-01-01"
    begun = api.answer(api.send("POST", path, asked), 201)
    assert (begun["total"], begun["left_out"], begun["incomplete"]) == (1, 1, [{"day": "2026-01-01"}])
    assert begun["active"][0]["entry"] == {"day": "2026-01-02"}
