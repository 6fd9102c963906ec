"""Bodies of messages about new objects, as AWS writes them: by S3 itself, and by EventBridge."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

AT, AT_SECOND = "2026-03-02T12:00:00.123Z", "2026-03-02T12:00:00Z"
ETAG, SEQUENCER = "b1946ac92492d2347c6235b4d2611184", "617f08299329d189"
PUT, COPY, PARTS = ("Put", "PutObject"), ("Copy", "CopyObject"), ("CompleteMultipartUpload", "CompleteMultipartUpload")


def record(bucket: str, key: str, size: int = 5, etag: str = ETAG, how: tuple[str, str] = PUT) -> dict[str, Any]:
    """One record of a notification that S3 sends to a queue. Its key is URL-encoded.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": AT,
        "eventName": f"ObjectCreated:{how[0]}",
        "userIdentity": {"principalId": "AWS:AIDA"},
        "requestParameters": {"sourceIPAddress": "203.0.113.1"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "objects",
            "bucket": {"name": bucket, "ownerIdentity": {"principalId": "A1"}, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": quote_plus(key, safe="/"), "size": size, "eTag": etag, "sequencer": SEQUENCER.upper()},
        },
    }


def by_s3(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": records})


def event(bucket: str, key: str, size: int = 5, etag: str = ETAG, how: tuple[str, str] = PUT) -> dict[str, Any]:
    """The event about the same object that S3 sends to EventBridge. Its key is not encoded.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    return {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "111122223333",
        "time": AT_SECOND,
        "region": "us-east-1",
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": bucket},
            "object": {"key": key, "size": size, "etag": etag, "version-id": "IYV3p45B", "sequencer": SEQUENCER},
            "request-id": "N4N7GDK58NMKJ12R",
            "requester": "123456789012",
            "source-ip-address": "1.2.3.4",
            "reason": how[1],
        },
    }


def by_event_bridge(bucket: str, key: str, size: int = 5, etag: str = ETAG, how: tuple[str, str] = PUT) -> str:
    return json.dumps(event(bucket, key, size, etag, how))
