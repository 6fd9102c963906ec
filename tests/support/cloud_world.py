"""The world of the tests on the local cloud: tables with atomic transactions, real objects, and real notifications of
S3. The test still sets the clock, and EMR is still a fake.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import Any

from chalicelib.aws.s3.lake import S3Lake
from chalicelib.aws.s3.notifications import objects_of
from chalicelib.flow.ingest import objects
from infra.local.endpoints import Endpoints
from tests.support import tables
from tests.support.world import World

PATIENCE = 20  # seconds of real time for one notification


class CloudWorld(World):
    """The world on the tables and buckets of the local cloud. It is a subclass because it replaces `upload`, which all
    scenarios call.
    """

    def __init__(self, cloud: Endpoints) -> None:
        name = f"scene-{uuid.uuid4().hex[:8]}"
        self._dynamodb = cloud.client("dynamodb")
        self._names = tables.create(self._dynamodb, name)
        super().__init__(self._dynamodb, self._names)
        self._s3, self._sqs, self._bucket = cloud.client("s3"), cloud.client("sqs"), name
        self._queue = self._tell_of_objects()
        own = replace(self.ports.settings, lake_bucket=name)
        self.ports = self.with_ports(settings=own, lake=S3Lake(self._s3))

    def upload(self, key: str, bucket: str = "", size: int = 0, etag: str = "", text: str = "") -> str:
        """Put an object of ``size`` bytes, or ``text``, and handle S3's notifications. The etag is S3's own."""
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=text.encode() or b"x" * size)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self._sqs.receive_message(QueueUrl=self._queue, WaitTimeSeconds=1, MaxNumberOfMessages=1)
            for message in answer.get("Messages", ()):
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
                for created in objects_of(message["Body"]):
                    assert created.key == key, f"expected a notification of {key}, got {created.key}"
                    return objects.match_object(self.ports, replace(created, at=self.clock.now()))
        raise AssertionError(f"expected a notification of {key} within {PATIENCE} s")

    def item_sizes(self, table: str) -> list[int]:
        """The size of each item of a table in bytes of JSON: an upper bound of the size in DynamoDB."""
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=self._names[table])
        return [len(json.dumps(item)) for page in pages for item in page["Items"]]

    def close(self) -> None:
        for table in self._names.values():
            self._dynamodb.delete_table(TableName=table)
        self._sqs.delete_queue(QueueUrl=self._queue)
        for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            for entry in page.get("Contents", ()):
                self._s3.delete_object(Bucket=self._bucket, Key=entry["Key"])
        self._s3.delete_bucket(Bucket=self._bucket)

    def _tell_of_objects(self) -> str:
        """Create a bucket that notifies a queue, both for this world alone. Returns the URL of the queue."""
        self._s3.create_bucket(Bucket=self._bucket)
        url: str = self._sqs.create_queue(QueueName=self._bucket)["QueueUrl"]
        attributes: dict[str, Any] = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = attributes["Attributes"]["QueueArn"]
        allow = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        self._sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        answer = [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]
        self._s3.put_bucket_notification_configuration(
            Bucket=self._bucket, NotificationConfiguration={"QueueConfigurations": answer}
        )
        return url
