"""Events as whole values, and sort keys of jobs at the largest size of a key (T7-T11, T19)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.events import build, partitions
from chalicelib.core.events.partitions import Located
from chalicelib.core.jobs import gather
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.triggers.event import custom_key
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.core.triggers.size import size_key
from tests.core.builders import NAME, NOON, dataset, partition_event, run

SECOND_LATER = NOON + 1_000
KEY = "raw/flights/year=2013/month=1/day=2/part-0.parquet"
VALUES = {"year": "2013", "month": "1", "day": "2"}


def test_t7_a_partition_event_has_dataset_and_key_values() -> None:
    made = build.partition_event("demo.flights", dataset(), ("2013", "1", "2"), NOON, SECOND_LATER)
    assert made == Event(
        id=ids.event_id("partition", "demo.flights", "2013", "1", "2"),
        kind="partition",
        key=partition_key("demo.flights"),
        instant=NOON,
        accepted_at=SECOND_LATER,
        partition=VALUES,
        dataset="demo.flights",
        path="s3://lake/raw/flights/year=2013/month=1/day=2/",
    )
    with pytest.raises(ValueError, match="shorter"):
        build.partition_event("demo.flights", dataset(), ("2013",), NOON, SECOND_LATER)


@pytest.mark.parametrize(("overwrites", "content"), [(False, ""), (True, "etag-1")])
def test_t9_an_object_event_counts_by_key_or_by_content(overwrites: bool, content: str) -> None:
    of = dataset(count_overwrites=overwrites)
    made = build.size_event("demo.flights", of, KEY, "etag-1", 77, NOON, SECOND_LATER)
    assert made == Event(
        id=ids.event_id("size", "demo.flights", KEY, content),
        kind="size",
        key=size_key("demo.flights"),
        instant=NOON,
        accepted_at=SECOND_LATER,
        partition=VALUES,
        dataset="demo.flights",
        path=f"s3://lake/{KEY}",
        size=77,
    )
    outside = build.size_event("demo.flights", of, "raw/flights/loose.csv", "e", 1, NOON, NOON)
    assert (outside.partition, outside.path) == (None, "s3://lake/raw/flights/loose.csv")


def test_t11_a_custom_event_is_identified_by_id_of_its_poster() -> None:
    made = build.custom_event("demo", "orders.closed", "n1", {"shop": 7}, NOON, SECOND_LATER)
    assert made == Event(
        id=ids.event_id("event", "demo", "orders.closed", "n1"),
        kind="event",
        key=custom_key("demo", "orders.closed"),
        instant=NOON,
        accepted_at=SECOND_LATER,
        payload={"shop": 7},
    )


@pytest.mark.parametrize(
    ("status", "fields", "instant", "accepted"),
    [
        ("STARTED", {"started_at": 5, "running_seen_at": 6, "ended_at": 8, "state_at": 9}, 5, 6),
        ("STARTED", {"started_at": 5, "state_at": 9}, 5, 5),
        ("STARTED", {"ended_at": 8, "state_at": 9}, NOON, NOON),
        ("COMPLETED", {"started_at": 5, "running_seen_at": 6, "ended_at": 8, "state_at": 9}, 8, 9),
        ("FAILED", {"ended_at": 8}, 8, 8),
        ("KILLED", {}, NOON, NOON),
    ],
)
def test_t10_a_status_is_dated_by_target_and_accepted_by_sluice(
    status: str, fields: dict[str, int], instant: int, accepted: int
) -> None:
    of = run("SUCCEEDED", partition={"day": "1"}, **fields)
    assert build.status_event(of, status) == Event(
        id=ids.event_id("program_status", of.run_id, status),
        kind="program_status",
        key=status_key(NAME, status),
        instant=instant,
        accepted_at=accepted,
        partition={"day": "1"},
        workflow=NAME,
        run_id=of.run_id,
        status=status,
        schedule=NAME,
    )


def test_t10_a_status_has_the_version_of_the_workflow_that_ran() -> None:
    answer = build.status_event(run("SUCCEEDED", workflow_version=3), "COMPLETED")
    assert answer.payload == {"workflow_version": 3}


@pytest.mark.parametrize(
    ("state", "statuses"),
    [
        ("STARTING", ("FAILED",)),
        ("RUNNING", ("FAILED", "STARTED")),
        ("SUCCEEDED", ("FAILED", "COMPLETED")),
        ("CANCELLED", ("FAILED", "KILLED")),
        ("RETRYING", ("FAILED",)),
    ],
)
def test_t10_pending_announcements_come_before_the_new_status(state: str, statuses: tuple[str, ...]) -> None:
    assert build.announced(run(state, announce=("FAILED",))) == statuses


def test_t8_an_object_is_in_partition_only_if_every_folder_fits() -> None:
    folder = "raw/flights/year=2013/month=1/day=2/"
    assert partitions.locate(dataset(), KEY) == Located(("2013", "1", "2"), folder, "part-0.parquet")
    assert partitions.locate(dataset(), f"{folder}sub/x.csv") == Located(("2013", "1", "2"), folder, "sub/x.csv")
    odd = [
        *(KEY.removeprefix("raw/"), folder, folder.rstrip("/"), KEY.replace("month=1", "month="), f"{folder}sub/"),
        *(KEY.replace("month=1", "month"), KEY.replace("month=1", "m=1"), "raw/flights/year=2013/x.csv"),
        *("raw/flights/year=2013", "raw/flights/year=2013/month=1"),
    ]
    assert [partitions.locate(dataset(), key) for key in odd] == [None] * len(odd)
    assert partitions.locate(dataset(), KEY.replace("day=2", "day=2=3")) == Located(
        ("2013", "1", "2=3"), folder.replace("day=2", "day=2=3"), "part-0.parquet"
    )


@pytest.mark.parametrize(
    ("ready", "name", "may"),
    [
        ({}, "part-0.csv", True),
        ({}, "_SUCCESS", False),
        ({}, "sub/.hidden/x", False),
        ({"done_flag": "_SUCCESS"}, "_SUCCESS", True),
        ({"done_flag": "_SUCCESS"}, "part-0.csv", False),
        ({"manifest": "_manifest"}, "_anything", True),
    ],
)
def test_t8_which_object_may_make_a_partition_ready(ready: dict[str, str], name: str, may: bool) -> None:
    of = dataset(ready=ready) if ready else dataset()
    assert partitions.makes_ready(of, Located(("2013",), "raw/", name)) is may


def test_l3_an_event_counts_from_the_start_of_gathering_on() -> None:
    event = partition_event(at=NOON)
    leaf = Subscription(event.key, NAME, 7, 1, "0", since=NOON)
    assert gather.counts_for(event, leaf)
    assert not gather.counts_for(event, replace(leaf, since=NOON + 1))


@pytest.mark.parametrize(
    ("by", "payload", "values"),
    [
        (("shop",), {"shop": "a", "x": 1}, {"shop": "a"}),
        (("shop",), {"shop": 7}, {"shop": "7"}),
        (("shop",), {"shop": True}, None),
        (("shop",), {"shop": ""}, None),
        (("shop",), {"shop": 1.5}, None),
        (("shop", "day"), {"shop": "a"}, None),
        ((), {}, None),
    ],
)
def test_t19_payload_values_of_keys_are_text_or_whole_numbers(
    by: tuple[str, ...], payload: dict[str, Any], values: dict[str, str] | None
) -> None:
    assert gather.correlate(by, build.custom_event("demo", "k", "n", payload, NOON, NOON)) == values


def test_t19_a_sort_key_spells_out_values_unless_they_are_long() -> None:
    assert gather.gathering_key(None) == gather.gathering_key({}) == GATHERING
    assert gather.gathering_key({"a": "x/y", "b": "~z"}) == f"{GATHERING}#x%2Fy/%7Ez"
    longest = "v" * partitions.MAX_SORT_KEY
    assert gather.gathering_key({"a": longest}) == f"{GATHERING}#{longest}"
    assert gather.gathering_key({"a": longest, "b": "w"}) == f"{GATHERING}#~{ids.digest(longest, 'w')}"
