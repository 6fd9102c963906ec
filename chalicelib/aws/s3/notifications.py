"""Messages about new objects, in two formats: notifications that S3 sends itself, and events that EventBridge sends.

The lake bucket notifies the queue directly. A bucket that exists already notifies EventBridge, and a rule of the stack
passes its events on to the same queue. What an object counts for does not depend on the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from chalicelib.core.errors import invalid
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import parse_instant


def objects_of(body: str) -> list[ObjectCreated]:
    """The new objects that a message is about. Raises ``invalid`` for any other format, so that SQS redrives it.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    try:
        message = json.loads(body)
    except ValueError as error:
        raise invalid("body", "an S3 notification in JSON", body) from error
    if isinstance(message, dict) and message.get("Event") == "s3:TestEvent":
        return []  # S3 sends one when the notification is configured
    if isinstance(message, dict) and message.get("source") == "aws.s3":
        return _of_event(message)
    records = message.get("Records") if isinstance(message, dict) else None
    if not isinstance(records, list):
        raise invalid("body", "a list of S3 Records, or an event of EventBridge with the source aws.s3", body)
    return [_of_record(record) for record in records if str(record.get("eventName", "")).startswith("ObjectCreated")]


def _of_record(record: Mapping[str, Any]) -> ObjectCreated:
    """S3's own record: it URL-encodes the key, with ``+`` for a space."""
    try:
        entity = record["s3"]
        key = unquote_plus(entity["object"]["key"])
        return _created(entity["bucket"], key, record["eventTime"], entity["object"], "eTag")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = "records with s3.bucket.name, s3.object.key and eventTime"
        raise invalid("body.Records", expected, record) from error


def _of_event(event: Mapping[str, Any]) -> list[ObjectCreated]:
    """An event of EventBridge: the key is as the object is named, also if it holds ``+`` or ``%20``."""
    try:
        if event["detail-type"] != "Object Created":
            return []
        detail = event["detail"]
        return [_created(detail["bucket"], detail["object"]["key"], event["time"], detail["object"], "etag")]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = "an event with detail-type, detail.bucket.name, detail.object.key and time"
        raise invalid("body.detail", expected, event) from error


def _created(bucket: Mapping[str, Any], key: Any, at: Any, content: Mapping[str, Any], etag: str) -> ObjectCreated:
    name = bucket["name"]
    if not isinstance(name, str) or not isinstance(key, str):
        raise TypeError(f"expected a bucket and a key in text, got {name!r} and {key!r}")
    return ObjectCreated(name, key, parse_instant(at), int(content.get("size", 0)), str(content.get(etag, "")))
