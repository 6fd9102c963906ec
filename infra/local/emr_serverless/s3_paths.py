"""The S3 URIs of a run: parse them, find them in arguments and JSON, convert them to local paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_URI = re.compile(r"s3[an]?://([^/\s\"'<>,;]+)(/[^\s\"'<>,;]*)?")
_GLOB = re.compile(r"[*?{\[]")


@dataclass(frozen=True, order=True)
class S3Path:
    """A bucket and a key or key prefix. An empty key means the whole bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def is_root(self) -> bool:
        return self.key == ""

    def without_glob(self) -> S3Path:
        """The deepest directory before the first wildcard, as Spark lists it."""
        wildcard = _GLOB.search(self.key)
        if wildcard is None:
            return self
        return S3Path(self.bucket, self.key[: self.key.rfind("/", 0, wildcard.start()) + 1])

    def under(self, buckets: Path) -> Path:
        """The local path, with each bucket a directory of `buckets`. Raises ValueError for a key that leaves it."""
        root = buckets / self.bucket
        path = root / self.key
        if ".." in Path(self.key).parts or self.key.startswith("/"):
            raise ValueError(f"expected a key that is a path below its bucket, got {self}")
        return path


def parse(uri: str) -> S3Path | None:
    """The path of a text that as a whole is an S3 URI, spaces and commas included; None for any other text."""
    match = re.fullmatch(r"s3[an]?://([^/]+)/?(.*)", uri, re.DOTALL)
    return S3Path(match.group(1), match.group(2)) if match else None


def find(text: str) -> Iterator[S3Path]:
    """All S3 URIs in a text: the text itself, or parts of it such as `--in=s3://a/b` and `s3://a/b,s3://a/c`."""
    if text.count("://") == 1 and (whole := parse(text)) is not None:
        yield whole
        return
    for bucket, rest in _URI.findall(text):
        yield S3Path(bucket, rest[1:])


def find_in_json(value: Any) -> Iterator[S3Path]:
    """All S3 URIs in the strings of a JSON value, at any depth; keys of objects count too."""
    if isinstance(value, str):
        yield from find(value)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from find(name)
            yield from find_in_json(member)
    elif isinstance(value, list):
        for member in value:
            yield from find_in_json(member)
