"""Re-processings over the API: requested, planned, shown, listed, cancelled, refused (L21)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli import recorded
from tests.support.schedules import BY_DAY, after, at
from tests.web.conftest import APP, NS, Api, installation, settle_in

ALL = f"{NS}/reprocess"
DAY = {"year": "2013", "month": "1", "day": "1"}
ONE = {"dataset": "flights", "partition": DAY}
FIRES = {"schedule": "demo.flights.nightly", "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
        made.put(f"{APP}/workflows/clean", {"target": emr})
        made.put(f"{APP}/workflows/join", {"target": emr})
        trigger = {"type": "partition", "dataset": "flights"}
        made.schedule("daily", trigger=trigger, workflow="clean", by=BY_DAY, enabled=True)
        made.put(f"{APP}/schedules/next", after("clean", "join", by=BY_DAY))
        made.put(f"{APP}/schedules/nightly", at("0 2 * * *"))
        yield made


def test_l21_a_reprocessing_is_begun_shown_and_cancelled(api: Api) -> None:
    answer = api.answer(api.send("POST", ALL, ONE), 201)
    assert (answer["state"], answer["dataset"], answer["total"], answer["waiting"]) == ("RUNNING", "demo.flights", 2, 2)
    assert (answer["first"], answer["last"]) == (DAY, DAY)
    assert set(answer) == set(recorded.reprocess())
    assert set(answer["steps"][0]) == set(recorded.reprocess()["steps"][0])
    states = [(step["step"], step["schedule"], step["state"], step["after"]) for step in answer["steps"]]
    assert states == [(0, "demo.flights.daily", "running", []), (1, "demo.flights.next", "waiting", [0])]
    assert answer["steps"][0]["backfill_id"] == f"{answer['reprocess_id']}.0"

    path = f"{ALL}/{answer['reprocess_id']}"
    assert api.get(path) == answer
    backfill = api.get(f"{APP}/schedules/daily/backfills/{answer['reprocess_id']}.0")
    assert (backfill["state"], backfill["first"]) == ("RUNNING", DAY)

    over = api.post(f"{path}/cancel")
    assert (over["state"], over["cancelled"]) == ("CANCELLED", 2)
    assert "was cancelled by" in over["reason"]
    assert api.post(f"{path}/cancel?runs=cancel") == over, "cancelling what is over changes nothing"
    [listed] = [item for item in api.get(ALL)["items"] if item["reprocess_id"] == answer["reprocess_id"]]
    assert listed == over


def test_l21_a_dry_run_lists_the_steps_and_stores_nothing(api: Api) -> None:
    before = api.everything()
    answer = api.answer(api.send("POST", ALL, ONE | {"dry_run": True}), 200)
    assert (answer["total"], answer["partitions"]) == (2, 1)
    assert answer["steps"][1] == {
        "step": 1,
        "schedule": "demo.flights.next",
        "workflow": "demo.flights.join",
        "after": [0],
        "why": "counts COMPLETED of demo.flights.clean, which demo.flights.daily runs",
        "registered": True,
        "total": 1,
        "first": [DAY],
        "last": [],
    }
    assert api.everything() == before


def test_l21_fires_of_a_range_are_planned_and_run_again(api: Api) -> None:
    answer = api.answer(api.send("POST", ALL, {"fires": FIRES, "scope": "only"}), 201)
    assert (answer["dataset"], answer["run"], answer["total"]) == (None, None, 2)
    assert answer["fires"] == {
        "schedule": "demo.flights.nightly",
        "from": "2026-01-01T00:00:00.000Z",
        "to": "2026-01-03T00:00:00.000Z",
    }
    assert (answer["first"], answer["last"]) == ("2026-01-01T02:00:00.000Z", "2026-01-02T02:00:00.000Z")
    api.post(f"{ALL}/{answer['reprocess_id']}/cancel")


def test_l21_one_idempotency_key_is_one_reprocessing(api: Api) -> None:
    first, again = (api.post(ALL, ONE, idempotency_key="k") for _ in range(2))
    assert first == again
    api.post(f"{ALL}/{first['reprocess_id']}/cancel")


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"partition": DAY}, "dataset", "expected one of dataset, run and fires, got 'none'"),
        (ONE | {"run": "demo.flights.daily.1.x"}, "run", "got 'dataset and run'"),
        ({"run": "demo.flights.daily.1.x", "partition": DAY}, "dataset", "a dataset with partition"),
        ({"fires": {"schedule": "demo.flights.daily", "from": "2026-01-01T00:00:00Z"}}, "fires.to", "expected a value"),
        ({"fires": FIRES | {"from": "yesterday"}}, "fires.from", "expected"),
        ({"fires": FIRES | {"to": "2026-01-01T00:00:00Z"}}, "fires.to", "an instant after"),
        ({"fires": FIRES | {"schedule": "demo.flights.daily"}}, "fires.from", "a schedule with a time in its trigger"),
        ({"dataset": "flights"}, "partition", "either a partition or bounds"),
        (ONE | {"from": {"year": 2013}}, "partition", "either a partition or bounds"),
        (ONE | {"scope": "all"}, "scope", "'downstream' or 'only'"),
        (ONE | {"scope": "only", "upto": "demo.flights.join"}, "upto", "upto with scope: downstream"),
        (ONE | {"upto": "demo.flights.none"}, "upto", "demo.flights.clean, demo.flights.join"),
        (ONE | {"concurrency": 101}, "concurrency", "less than or equal to 100"),
        (ONE | {"dataset": "none"}, "dataset", "an existing dataset"),
        (ONE | {"partition": {"day": 1}}, "partition", "exactly the keys year, month, day"),
    ],
)
def test_l21_an_invalid_reprocessing_is_refused_by_field(api: Api, body: Any, field: str, words: str) -> None:
    error = api.refused(400, "POST", ALL, body)
    assert error["field"] == field, error
    assert words in error["message"]


def test_l21_a_missing_reprocessing_is_not_found(api: Api) -> None:
    for method, path in (("GET", "nope"), ("POST", "nope/cancel")):
        error = api.refused(404, method, f"{ALL}/{path}")
        assert (error["code"], error["message"]) == ("not_found", "no re-processing named 'nope'")
    assert api.refused(404, "POST", "/v1/namespaces/none/reprocess", ONE)["code"] == "not_found"
