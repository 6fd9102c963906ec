"""Messages about new objects, in two formats: notifications from S3 itself, and events from EventBridge.

The lake bucket notifies the queue directly. An existing bucket notifies EventBridge, and a rule of the stack forwards
its events to the same queue. Both formats have the same effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from chalicelib.core.errors import invalid
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import parse_instant


def parts_of(body: str) -> list[str]:
    """A message as messages of one record each; at least one, the message itself if it has no list of several."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return [body]
    records = message.get("Records") if isinstance(message, dict) else None
    if not isinstance(records, list) or len(records) < 2:
        return [body]
    return [json.dumps({"Records": [record]}) for record in records]


def objects_of(body: str) -> list[ObjectCreated]:
    """The new objects in a message. Raises ``invalid`` for any other format, so that SQS redrives the message.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise invalid("body", "an S3 notification in JSON", body) from error
    if isinstance(message, dict) and message.get("Event") == "s3:TestEvent":
        return []  # S3 sends a test message when the notification is configured
    if isinstance(message, dict) and message.get("source") == "aws.s3":
        return _of_event(message)
    records = message.get("Records") if isinstance(message, dict) else None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise invalid("body", "a list of S3 Records, or an event of EventBridge with the source aws.s3", body)
    return [_of_record(record) for record in records if str(record.get("eventName", "")).startswith("ObjectCreated")]


def _of_record(record: Mapping[str, Any]) -> ObjectCreated:
    """The object of an S3 record. S3 URL-encodes the key, with ``+`` for a space."""
    try:
        entity = record["s3"]
        key = unquote_plus(entity["object"]["key"])
        return _created(entity["bucket"], key, record["eventTime"], entity["object"], "eTag")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        expected = "records with s3.bucket.name, s3.object.key and eventTime"
        raise invalid("body.Records", expected, record) from error


def _of_event(event: Mapping[str, Any]) -> list[ObjectCreated]:
    """The objects of an EventBridge event. The key is the plain name, even if it holds ``+`` or ``%20``."""
    try:
        if event["detail-type"] != "Object Created":
            return []
        detail = event["detail"]
        return [_created(detail["bucket"], detail["object"]["key"], event["time"], detail["object"], "etag")]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        expected = "an event with detail-type, detail.bucket.name, detail.object.key and time"
        raise invalid("body.detail", expected, event) from error


def _created(bucket: Mapping[str, Any], key: Any, at: Any, content: Mapping[str, Any], etag: str) -> ObjectCreated:
    name = bucket["name"]
    if not isinstance(name, str) or not isinstance(key, str):
        raise TypeError(f"expected text for bucket and key, got {name!r} and {key!r}")
    size, sequencer = int(content.get("size", 0)), str(content.get("sequencer", ""))
    return ObjectCreated(name, key, parse_instant(at), size, str(content.get(etag, "")), sequencer)
