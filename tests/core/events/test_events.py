"""The events that are made of objects and of posts (T8, T9, T11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.events import build, partitions
from chalicelib.core.instants import DAY
from chalicelib.core.jobs import gather
from chalicelib.core.rows.event import Event
from tests.core.builders import NOON, dataset

DAY_ONE = "raw/flights/year=2013/month=1/day=1/"
OVERWRITES = dataset(count_overwrites=True)


def object_event(key: str = DAY_ONE + "a", etag: str = "e1", kind: Any = None, at: int = NOON) -> Event:
    return build.size_event("demo.flights", kind or dataset(), key, etag, 5, at, at)


# -- objects that are counted (T9) ---------------------------------------------------------------------------------


def test_t9_an_object_is_one_event_however_often_it_is_written() -> None:
    assert object_event().id == object_event(at=NOON + DAY).id == object_event(etag="e2").id
    assert object_event().id != object_event(DAY_ONE + "b").id


def test_t9_counted_overwrites_are_events_only_for_new_content() -> None:
    once = object_event(kind=OVERWRITES)
    assert once.id == object_event(kind=OVERWRITES, at=NOON + DAY).id
    assert once.id != object_event(kind=OVERWRITES, etag="e2").id
    assert once.id != object_event().id


def test_t9_an_object_event_has_bytes_path_and_partition() -> None:
    event = object_event()
    assert (event.kind, event.key, event.size) == ("size", "size:demo.flights", 5)
    assert event.path == f"s3://lake/{DAY_ONE}a"
    assert event.partition == {"year": "2013", "month": "1", "day": "1"}


def test_t9_an_object_beside_the_partitions_counts_too() -> None:
    assert object_event("raw/flights/readme.txt").partition is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("part-0", True),
        ("a_b", True),
        ("_day=5/part-0.parquet", True),
        ("_region=eu/_day=5/_hour=07/part-0.parquet", True),
        ("aws-account-id=1/_x=2/part-0", True),
        ("_SUCCESS", False),
        ("_day=5/_SUCCESS", False),
        (".crc", False),
        ("day=05/.part-0.parquet.crc", False),
        ("year=1/_temporary/0/part-0", False),
        ("_temporary/0/_temporary/attempt_2026/day=05/part-0", False),
        (".spark-staging-1/day=05/part-0", False),
        (".hive-staging_hive_2026-03-01/-ext-10000/day=05/part-0", False),
        ("_delta_log/00000000000000000000.json", False),
        ("_spark_metadata/0", False),
        ("day=05/_committed_123", False),
        ("day=05/_started_123", False),
        ("day=05/_tmp/part-0", False),
        ("day=05/hour=00_$folder$", False),
        ("day=05_$folder$", False),
        ("day=05/part-0.csv._COPYING_", False),
        ("day=05/", False),
        ("", False),
    ],
)
def test_t9_bookkeeping_of_spark_and_hive_is_not_data(name: str, data: bool) -> None:
    assert partitions.is_data(name) is data


# -- custom events (T11) -------------------------------------------------------------------------------------------


def test_t11_custom_event_has_identity_by_namespace_type_and_id() -> None:
    def post(namespace: str = "demo", kind: str = "closed", source: object = "1", **payload: Any) -> Event:
        return build.custom_event(namespace, kind, source, payload, NOON, NOON + 5)

    assert post().id == post(total=5).id, "posted twice, it is one event"
    assert len({post().id, post("sales").id, post(kind="opened").id, post(source="2").id}) == 4
    event = post(total=5)
    assert (event.kind, event.key, event.payload) == ("event", "event:demo:closed", {"total": 5})
    assert (event.instant, event.accepted_at) == (NOON, NOON + 5)


@pytest.mark.parametrize(
    ("payload", "correlation"),
    [
        ({"day": "1", "total": 5}, {"day": "1"}),
        ({"day": 1}, {"day": "1"}),
        ({"day": 0}, {"day": "0"}),
        ({}, None),
        ({"day": ""}, None),
        ({"day": None}, None),
        ({"day": True}, None),
        ({"day": 1.5}, None),
        ({"day": ["1"]}, None),
    ],
)
def test_t19_a_custom_event_has_correlation_keys_in_its_payload(payload: Any, correlation: Any) -> None:
    event = build.custom_event("demo", "closed", "1", payload, NOON, NOON)
    assert gather.correlate(("day",), event) == correlation


def test_t19_partition_values_precede_payload_values() -> None:
    event = build.custom_event("demo", "closed", "1", {"day": "2"}, NOON, NOON)
    assert gather.correlate(("day",), replace(event, partition={"day": "1"})) == {"day": "1"}


def test_t8_with_a_manifest_any_object_may_complete_it() -> None:
    listed = dataset(ready={"manifest": "files.json"})
    for name in ("files.json", "part-0", "_SUCCESS"):
        located = partitions.locate(listed, DAY_ONE + name)
        assert located is not None
        assert partitions.makes_ready(listed, located)
