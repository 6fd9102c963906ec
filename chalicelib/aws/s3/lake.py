"""The objects in the buckets of datasets. Implements `ports.Lake`; S3 reads are strongly consistent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.ports import StoredObject

# Bytes: the longest part of a report in which each line has a long reason.
MAX_TEXT = 5_000_000


class S3Lake:
    """``glue`` makes a client of the Glue catalog; only Iceberg tables of a Glue catalog need it."""

    def __init__(self, client: Any, glue: Callable[[], Any] | None = None) -> None:
        self._client = client
        self._glue = glue

    def text(self, bucket: str, key: str) -> str | None:
        content = self.content(bucket, key, MAX_TEXT)
        return None if content is None else content.decode()

    def content(self, bucket: str, key: str, most: int) -> bytes | None:
        found = self.stored(bucket, key, most)
        return None if found is None else found.content

    def stored(self, bucket: str, key: str, most: int) -> StoredObject | None:
        try:
            answer = self._client.get_object(Bucket=bucket, Key=key)
        except self._client.exceptions.NoSuchKey:
            return None
        if answer["ContentLength"] > most:
            raise ValueError(f"expected an object of at most {most} bytes, got {answer['ContentLength']}: {key}")
        return StoredObject(answer["Body"].read(), _millis(answer["LastModified"]), answer["ETag"].strip('"'))

    def metadata_location(self, table: str) -> str | None:
        if self._glue is None:
            raise ValueError(f"expected a Glue catalog that has {table}, got none")
        glue = self._glue()
        database, _, name = table.partition(".")
        try:
            found = glue.get_table(DatabaseName=database, Name=name)["Table"]
        except glue.exceptions.EntityNotFoundException:
            return None
        location: str | None = found.get("Parameters", {}).get("metadata_location")
        return location

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return frozenset(entry["Key"] for page in pages for entry in page.get("Contents", ()))


def _millis(at: datetime) -> Instant:
    return round(at.timestamp() * 1000)
