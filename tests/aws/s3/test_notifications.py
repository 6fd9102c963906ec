"""Messages about new objects are read in the format of S3 and in that of EventBridge; anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.aws.s3.notifications import objects_of
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import parse_instant
from tests.support import s3_notifications as reported

BUCKET = "landing"
KEYS = [
    "raw/day=1/a",
    "raw/day=1 of 2/a b",
    "raw/day=1+2/a+b",
    "raw/day=50%/a%20b",
    "raw/day=%2B/a",
    "raw/day=Zürich/日",
    "raw/day=a&b=c/ñ?#",
]
HOWS = [reported.PUT, reported.COPY, reported.PARTS, ("Post", "POST Object")]


@pytest.mark.parametrize("key", KEYS)
def test_both_formats_name_the_object_key_exactly(key: str) -> None:
    by_s3 = objects_of(reported.by_s3(reported.record(BUCKET, key)))
    by_event_bridge = objects_of(reported.by_event_bridge(BUCKET, key))
    assert by_s3 == [
        ObjectCreated(BUCKET, key, parse_instant(reported.AT), 5, reported.ETAG, reported.SEQUENCER.upper())
    ]
    at = parse_instant(reported.AT_SECOND)
    assert by_event_bridge == [ObjectCreated(BUCKET, key, at, 5, reported.ETAG, reported.SEQUENCER)]


@pytest.mark.parametrize("how", HOWS, ids=[how[1] for how in HOWS])
def test_an_object_is_reported_however_it_was_created(how: tuple[str, str]) -> None:
    bodies = (
        reported.by_s3(reported.record(BUCKET, "raw/x", how=how)),
        reported.by_event_bridge(BUCKET, "raw/x", how=how),
    )
    assert [[each.key for each in objects_of(body)] for body in bodies] == [["raw/x"], ["raw/x"]]


@pytest.mark.parametrize("kind", ["Object Deleted", "Object Tags Added", "Object Restore Completed"])
def test_other_events_of_a_bucket_are_not_new_objects(kind: str) -> None:
    assert objects_of(json.dumps(reported.event(BUCKET, "raw/x") | {"detail-type": kind})) == []


def without(*path: str) -> dict[str, Any]:
    """An event of EventBridge that lacks a field."""
    whole = reported.event(BUCKET, "raw/x")
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return whole


BROKEN = {
    "no detail-type": without("detail-type"),
    "no detail": without("detail"),
    "no bucket": without("detail", "bucket"),
    "no key": without("detail", "object", "key"),
    "no time": without("time"),
    "a detail that is none": reported.event(BUCKET, "raw/x") | {"detail": 7},
    "a key that is none": reported.event(BUCKET, None),
    "a bucket that is none": reported.event(None, "raw/x"),
    "a size that is none": reported.event(BUCKET, "raw/x", size="much"),
    "a time that is none": reported.event(BUCKET, "raw/x") | {"time": "noon"},
    "an event of another service": reported.event(BUCKET, "raw/x") | {"source": "aws.ec2"},
}


@pytest.mark.parametrize("event", BROKEN.values(), ids=BROKEN)
def test_an_event_not_in_s3_format_is_refused_with_expectation(event: dict[str, Any]) -> None:
    with pytest.raises(SluiceError, match="expected"):
        objects_of(json.dumps(event))


def test_size_etag_and_sequencer_are_optional_in_both_formats() -> None:
    record, event = reported.record(BUCKET, "raw/x"), reported.event(BUCKET, "raw/x")
    record["s3"]["object"] = {"key": "raw/x"}
    event["detail"]["object"] = {"key": "raw/x"}
    for body in (reported.by_s3(record), json.dumps(event)):
        [created] = objects_of(body)
        assert (created.size, created.etag, created.sequencer) == (0, "", "")
