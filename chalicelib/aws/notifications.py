"""S3 notifications as they really come: URL-encoded keys, test events, several records, anything else refused."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus

from chalicelib.core.calendar import parse_instant
from chalicelib.core.errors import invalid
from chalicelib.flow.match import ObjectCreated


def objects_of(body: str) -> list[ObjectCreated]:
    """The objects that a message is about. Raises ``invalid`` for what is no S3 notification, so that it is redriven.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    try:
        message = json.loads(body)
    except ValueError as error:
        raise invalid("body", "an S3 notification in JSON", body) from error
    if isinstance(message, dict) and message.get("Event") == "s3:TestEvent":
        return []  # S3 sends one when the notification is configured
    records = message.get("Records") if isinstance(message, dict) else None
    if not isinstance(records, list):
        raise invalid("body.Records", "a list of S3 records", body)
    return [_object(record) for record in records if str(record.get("eventName", "")).startswith("ObjectCreated")]


def _object(record: dict[str, Any]) -> ObjectCreated:
    try:
        entity = record["s3"]
        key = unquote_plus(entity["object"]["key"])
        content = entity["object"]
        size, etag = int(content.get("size", 0)), str(content.get("eTag", ""))
        return ObjectCreated(entity["bucket"]["name"], key, parse_instant(record["eventTime"]), size, etag)
    except (KeyError, TypeError) as error:
        raise invalid("body.Records", "records with s3.bucket.name, s3.object.key and eventTime", record) from error
