"""The export of history to the lake: changes from the stream of the runs table, and objects in the lake bucket."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Mapping
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core.history.audit import AuditPart, NewRecord
from chalicelib.core.history.lines import Change, Part, text_of
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.run import Record, Run


def sequence_of(record: Mapping[str, Any]) -> str:
    """The sequence number of a change in the stream; a failure report names the change by it."""
    return str(record["dynamodb"]["SequenceNumber"])


def change_of(record: Mapping[str, Any]) -> Change | None:
    """The row that a change of the runs table wrote; None for a removal and for rows of other kinds.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Record.html
    """
    stored = record["dynamodb"].get("NewImage")
    if record["eventName"] == "REMOVE" or stored is None:
        return None
    image = {name: _plain(content) for name, content in stored.items()}
    sort_key = image["sk"]["S"]
    if sort_key.startswith("A#"):
        return Change(sequence_of(record), items.from_item(Run, image))
    return Change(sequence_of(record), items.from_item(Record, image)) if sort_key == "RECORD" else None


def audit_record_of(record: Mapping[str, Any]) -> NewRecord | None:
    """The audit record that a change of the runs table has created; None for a change of another row."""
    stored = record["dynamodb"].get("NewImage")
    if record["eventName"] != "INSERT" or stored is None or not stored["pk"]["S"].startswith("AUDIT#"):
        return None
    image = {name: _plain(content) for name, content in stored.items()}
    return NewRecord(sequence_of(record), items.from_item(AuditRow, image))


def _plain(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """An attribute as boto3 reads it. A stream event is JSON, and carries bytes as base64."""
    binary = content.get("B")
    return {"B": base64.b64decode(binary)} if isinstance(binary, str) else content


class S3HistoryLake:
    """Objects of the lake. The name of an object follows from its content, so a repeat overwrites it with the same."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, part: Part) -> None:
        # The gzip header has no time of writing, so that the same lines give the same bytes.
        body = gzip.compress(text_of(part.lines).encode(), compresslevel=6, mtime=0)
        self._client.put_object(Bucket=self._bucket, Key=part.key, Body=body, ContentType="application/gzip")

    def tell_late(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=b"")


class S3AuditLog:
    """Objects of audit records. A repeat writes the same object again, as a further version if the bucket has Object
    Lock. S3 requires a checksum of objects with a retention."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, part: AuditPart) -> None:
        body = gzip.compress(part.text.encode(), compresslevel=6, mtime=0)
        self._client.put_object(
            Bucket=self._bucket, Key=part.key, Body=body, ContentType="application/gzip", ChecksumAlgorithm="SHA256"
        )
