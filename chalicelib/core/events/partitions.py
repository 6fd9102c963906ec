"""The decisions of the step *match*: which partition an object belongs to, whether it makes it ready, and which events
there are. What a job is once events have been applied to it is in `core/jobs/gather.py`.

match: an S3 notification becomes events, and progress of the schedules that wait for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import Instant

MAX_SORT_KEY = 500


@dataclass(frozen=True, slots=True)
class Located:
    """An object seen as part of a partition: its key values, its folder, and its name within the folder."""

    values: tuple[str, ...]
    folder: str
    name: str


def locate(dataset: Dataset, key: str) -> Located | None:
    """Where an object key (already URL-decoded) stands in a dataset's layout; None if it is in no partition."""
    if not key.startswith(dataset.prefix):
        return None
    parts = key[len(dataset.prefix) :].split("/")
    folders, rest = parts[: len(dataset.keys)], parts[len(dataset.keys) :]
    values: list[str] = []
    for expected, folder in zip(dataset.keys, folders, strict=False):
        name, equals, value = folder.partition("=")
        if name != expected or not equals or not value:
            return None
        values.append(value)
    if len(values) < len(dataset.keys) or not rest or not rest[-1]:
        return None
    return Located(tuple(values), dataset.prefix + "/".join(folders) + "/", "/".join(rest))


def makes_ready(dataset: Dataset, located: Located) -> bool:
    """Whether this object may be the one that makes its partition ready (T8); a manifest has then to be read."""
    if dataset.ready.done_flag is not None:
        return located.name == dataset.ready.done_flag
    if dataset.ready.manifest is not None:
        return True
    return is_data(located.name)


def is_data(name: str) -> bool:
    """Spark and Hive take names that begin with ``_`` or ``.`` for bookkeeping, not for data."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))


def listed(manifest: str) -> tuple[str, ...] | None:
    """The names that a manifest lists: JSON (a list, or an object with ``files`` or ``entries``), or one to a line.

    Names are relative to the partition's folder, or full ``s3://`` addresses. None for what is no manifest."""
    try:
        content = json.loads(manifest)
    except ValueError:
        return tuple(dict.fromkeys(line.strip() for line in manifest.splitlines() if line.strip()))
    if isinstance(content, dict):
        content = content.get("files", content.get("entries"))
    if not isinstance(content, list):
        return None
    names = [entry.get("url") if isinstance(entry, dict) else entry for entry in content]
    texts = [name for name in names if isinstance(name, str)]
    return tuple(dict.fromkeys(texts)) if len(texts) == len(names) else None


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    """An S3 notification, decoded: the key is as the object is named, the instant as S3 told it."""

    bucket: str
    key: str
    at: Instant
    size: int = 0
    etag: str = ""
