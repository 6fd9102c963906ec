"""A dataset on a bucket that does not send its events to Sluice is refused, with instructions (T20)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from chalice.test import Client

from app import app
from chalicelib.settings import Settings
from chalicelib.wiring import ports
from tests.support import s3_notifications as reported
from tests.web.conftest import APP, NS, Api
from tests.web.test_handlers import failed, sqs

LANDING, OTHER, CLOSED = "acme-landing", "acme.drop-2", "acme-closed"
DATASET = {"bucket": LANDING, "prefix": "in/", "keys": ["_day"]}
HINT = (
    "turn on EventBridge notifications on the bucket, add the bucket to the stack parameter WatchedBuckets, "
    "and run `make deploy`"
)


@pytest.fixture
def watching(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """The installation after `make deploy` with two buckets in the parameter."""
    watch(monkeypatch, f"{LANDING},{OTHER}")
    yield api
    ports.cache_clear()


def watch(monkeypatch: pytest.MonkeyPatch, buckets: str) -> None:
    monkeypatch.setenv("SLUICE_WATCHED_BUCKETS", buckets)
    ports.cache_clear()


def objects(*bodies: str) -> list[str]:
    return failed(Client(app).lambda_.invoke("objects", sqs(*bodies)).payload)


def found(api: Api) -> set[str]:
    return {item["partition"]["_day"] for item in api.get(f"{NS}/datasets/orders/partitions")["items"]}


@pytest.mark.parametrize("bucket", [LANDING, OTHER, "lake", "lake-bucket"])
def test_t20_a_dataset_on_a_watched_bucket_is_accepted(watching: Api, bucket: str) -> None:
    assert watching.put(f"{NS}/datasets/orders", DATASET | {"bucket": bucket})["did"] == "created"


@pytest.mark.parametrize("bucket", [CLOSED, "control", "acme-landing-2"])
def test_t20_dataset_on_any_other_bucket_is_refused_with_advice(watching: Api, bucket: str) -> None:
    before = watching.everything()
    expected = f"expected a bucket that this installation watches (lake-bucket, {LANDING}, {OTHER}), got '{bucket}'"
    assert watching.refused(400, "PUT", f"{NS}/datasets/orders", DATASET | {"bucket": bucket}) == {
        "code": "invalid",
        "message": expected,
        "field": "bucket",
        "hint": HINT,
    }
    assert watching.everything() == before


def test_t20_without_the_parameter_only_the_lake_is_accepted(api: Api) -> None:
    error = api.refused(400, "PUT", f"{NS}/datasets/orders", DATASET)
    assert error["message"] == f"expected a bucket that this installation watches (lake-bucket), got '{LANDING}'"


@pytest.mark.parametrize("dry_run", ["", "?dry_run=true"])
def test_t20_an_app_with_an_unwatched_dataset_stores_nothing(watching: Api, dry_run: str) -> None:
    before = watching.everything()
    document = {"datasets": {"good": DATASET, "bad": DATASET | {"bucket": CLOSED, "prefix": "other/"}}}
    error = watching.refused(400, "PUT", f"{NS}/apps/intake{dry_run}", document)
    assert (error["code"], error["field"], error["hint"]) == ("invalid", "datasets.bad.bucket", HINT)
    assert watching.everything() == before


def test_t20_a_dataset_no_longer_watched_stays_but_cannot_change(
    watching: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"datasets": {"orders": DATASET}}
    watching.put(f"{NS}/apps/intake", document)
    watch(monkeypatch, OTHER)

    assert watching.get(f"{NS}/datasets/orders")["bucket"] == LANDING
    assert watching.put(f"{NS}/datasets/orders", DATASET)["did"] == "unchanged"
    assert watching.put(f"{NS}/apps/intake", document)["kept"] == ["app demo.intake", "dataset demo.orders"]
    watching.post(f"{NS}/datasets/orders/partitions", {"partition": {"_day": "1"}})
    assert found(watching) == {"1"}
    error = watching.refused(400, "PUT", f"{NS}/datasets/orders", DATASET | {"description": "new"})
    assert error["field"] == "bucket"
    watching.put(f"{NS}/datasets/orders", DATASET | {"bucket": OTHER})


def test_t20_the_lambda_counts_both_formats_and_refuses_others(watching: Api) -> None:
    watching.put(f"{NS}/datasets/orders", DATASET)
    broken = reported.event(LANDING, "in/_day=9/x")
    del broken["detail"]["object"]["key"]
    bodies = (
        reported.by_event_bridge(LANDING, "in/_day=1/x"),
        json.dumps(broken),
        reported.by_s3(reported.record(LANDING, "in/_day=1/x"), reported.record(LANDING, "in/_day=2 + 3/x")),
        reported.by_event_bridge(LANDING, "in/_day=2 + 3/x"),
        reported.by_event_bridge(LANDING, "in/_day=100%/x"),
    )
    assert objects(*bodies) == ["m1"]
    assert found(watching) == {"1", "2 + 3", "100%"}


@pytest.mark.parametrize(
    ("text", "buckets"),
    [("", ()), ("a-b", ("a-b",)), ("a-b,c.d", ("a-b", "c.d")), (" a-b , c.d ,", ("a-b", "c.d")), (",", ())],
)
def test_t20_the_bucket_list_is_read_as_cloudformation_writes_it(text: str, buckets: tuple[str, ...]) -> None:
    names = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET")
    environment = {f"SLUICE_{name}": "x" for name in names}
    assert Settings.from_environment({**environment, "SLUICE_WATCHED_BUCKETS": text}).watched_buckets == buckets


def why(api: Api, schedule: str) -> str:
    return str(api.get(f"{APP}/schedules/{schedule}/why")["why"])


def test_t20_why_says_that_the_bucket_of_dataset_is_not_watched(watching: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    watching.put(f"{NS}/datasets/orders", DATASET)
    trigger: dict[str, Any] = {"type": "partition", "dataset": "orders", "count": 2}
    watching.schedule("daily", enabled=True, trigger=trigger)
    assert "watch" not in why(watching, "daily")

    watch(monkeypatch, "")
    missing = f"dataset demo.orders: new objects are not noticed, because bucket {LANDING} is not watched; {HINT}"
    assert why(watching, "daily") == f"no partition has arrived yet; trigger: 2 partitions of demo.orders; {missing}"
    watching.post(f"{NS}/datasets/orders/partitions", {"partition": {"_day": "1"}})
    assert why(watching, "daily").endswith(missing)

    watching.post(f"{APP}/schedules/daily/disable")
    assert "watch" not in why(watching, "daily")
