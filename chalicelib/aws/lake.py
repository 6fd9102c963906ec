"""What stands in the buckets of datasets. Implements `ports.Lake`; S3 reads are strongly consistent."""

from __future__ import annotations

from typing import Any

# Bytes: some fifty thousand names of a manifest, or the longest part of a report, each line of it with a long reason.
MOST_TEXT = 5_000_000


class S3Lake:
    def __init__(self, client: Any) -> None:
        self._client = client

    def text(self, bucket: str, key: str) -> str | None:
        try:
            answer = self._client.get_object(Bucket=bucket, Key=key)
        except self._client.exceptions.NoSuchKey:
            return None
        if answer["ContentLength"] > MOST_TEXT:
            raise ValueError(f"expected a text of at most {MOST_TEXT} bytes, got {answer['ContentLength']}: {key}")
        text: str = answer["Body"].read().decode()
        return text

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return frozenset(entry["Key"] for page in pages for entry in page.get("Contents", ()))
