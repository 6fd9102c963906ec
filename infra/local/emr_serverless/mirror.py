"""Downloads the objects that a run needs from S3 into the run's own directory, and uploads the changes.

Spark sees each bucket as a local directory. After the run the directory is compared with the downloads: new and
rewritten files are uploaded, and objects whose file no longer exists are deleted. The uploads and deletions use the S3
API, so that S3 sends its notifications. Objects that were not downloaded are never changed."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .s3_paths import S3Path, find_in_json

log = logging.getLogger(__name__)

_PARALLEL = 8
_DELETE_BATCH = 1000
_MAX_JSON_BYTES = 5_000_000
# Files that Spark and Hadoop leave next to the data: work in progress, and checksums for local file systems.
_UNFINISHED = ("_temporary", ".spark-staging", ".sparkStaging", ".hive-staging")

# Enough to distinguish a rewritten file from an unchanged one: a file that was moved keeps its modification time, but
# has another inode.
_Mark = tuple[int, int, int]


class BucketMissing(ValueError):
    """A job names a bucket that does not exist."""


class RootRefused(ValueError):
    """A job names a whole bucket, and mirroring of whole buckets is off."""


class Mirror:
    """The buckets of one run below `directory`. Used by one thread; transfers run in parallel."""

    def __init__(self, s3: Any, directory: Path, allow_roots: bool = False) -> None:
        self._s3 = s3
        self._directory = directory
        self._allow_roots = allow_roots
        self._brought: dict[S3Path, _Mark] = {}

    @property
    def buckets(self) -> list[str]:
        """The buckets that have a directory, even an empty one."""
        return sorted(entry.name for entry in self._directory.iterdir()) if self._directory.exists() else []

    def bring(self, wanted: Iterable[S3Path]) -> None:
        """Download the object with that key, and all objects below it as a directory. Neither needs to exist."""
        starts = {path.without_glob() for path in wanted}
        objects: dict[S3Path, Any] = {}
        for start in sorted(starts):
            self._refuse_root(start)
            (self._directory / start.bucket).mkdir(parents=True, exist_ok=True)
            found = (item for item in self._list(start) if not _is_residue(item[0]) and item[0] not in self._brought)
            objects.update(found)
        self._each(lambda item: self._download(*item), objects.items())

    def uris_in_json(self, path: S3Path) -> list[S3Path]:
        """The S3 URIs in the strings of a downloaded `.json` object; none if it is missing or not JSON."""
        local = path.under(self._directory)
        if not local.is_file() or local.stat().st_size > _MAX_JSON_BYTES:
            return []
        try:
            return list(find_in_json(json.loads(local.read_text("utf-8"))))
        except ValueError:
            return []

    def take_back(self) -> tuple[int, int]:
        """Upload and delete what the run changed; returns the number of uploads and of deletions.

        The order is Spark's own on S3: first the deletion of overwritten objects, an old `_SUCCESS` included, then the
        data, and the new `_SUCCESS` last. So data is complete when the marker exists.
        """
        present = dict(self._scan())
        changed = [path for path, mark in present.items() if self._brought.get(path) != mark]
        markers = [path for path in changed if _name(path) == "_SUCCESS"]
        gone = [path for path in self._brought if path not in present]
        gone += [path for path in markers if path in self._brought]
        self._delete(gone)
        self._each(self._upload, [path for path in changed if path not in markers])
        self._each(self._upload, markers)
        return len(changed), len(gone)

    def _refuse_root(self, path: S3Path) -> None:
        if path.is_root and not self._allow_roots:
            raise RootRefused(
                f"expected a path inside of bucket {path.bucket}, got {path}, which would be mirrored as a whole: name "
                "a prefix, or start the emulator with --mirror-bucket-roots on"
            )

    def _list(self, start: S3Path) -> Iterator[tuple[S3Path, Any]]:
        try:
            yield from self._listed(start)
        except self._s3.exceptions.NoSuchBucket:
            raise BucketMissing(f"expected a bucket that exists, got {start}: there is no {start.bucket}") from None

    def _listed(self, start: S3Path) -> Iterator[tuple[S3Path, Any]]:
        # A key `a/b` is the object `a/b` and the directory `a/b/`, but never its sibling `a/bc`.
        prefixes = [start.key] if start.is_root or start.key.endswith("/") else [start.key + "/"]
        if start.key and not start.key.endswith("/"):
            exact = self._s3.list_objects_v2(Bucket=start.bucket, Prefix=start.key, MaxKeys=1).get("Contents", [])
            # The shortest key with this prefix is listed first, so one entry shows whether the object itself exists.
            yield from ((S3Path(start.bucket, o["Key"]), o["LastModified"]) for o in exact if o["Key"] == start.key)
        for prefix in prefixes:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=start.bucket, Prefix=prefix)
            for page in pages:
                for found in page.get("Contents", ()):
                    yield S3Path(start.bucket, found["Key"]), found["LastModified"]

    def _download(self, path: S3Path, modified: Any) -> None:
        local = path.under(self._directory)
        if path.key.endswith("/"):
            local.mkdir(parents=True, exist_ok=True)
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        body = self._s3.get_object(Bucket=path.bucket, Key=path.key)["Body"]
        with local.open("wb") as file:
            shutil.copyfileobj(body, file)
        os.utime(local, (modified.timestamp(), modified.timestamp()))
        self._brought[path] = _mark(local)

    def _upload(self, path: S3Path) -> None:
        self._s3.upload_file(str(path.under(self._directory)), path.bucket, path.key)

    def _delete(self, paths: list[S3Path]) -> None:
        for bucket in sorted({path.bucket for path in paths}):
            keys = [{"Key": path.key} for path in paths if path.bucket == bucket]
            for start in range(0, len(keys), _DELETE_BATCH):
                batch = keys[start : start + _DELETE_BATCH]
                answer = self._s3.delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True})
                if answer.get("Errors"):
                    raise OSError(f"expected to delete {len(batch)} objects of {bucket}, got {answer['Errors'][:3]}")

    def _scan(self) -> Iterator[tuple[S3Path, _Mark]]:
        for folder, subfolders, names in os.walk(self._directory):
            subfolders[:] = [name for name in subfolders if not name.startswith(_UNFINISHED)]
            for name in names:
                file = Path(folder, name)
                bucket, _, key = file.relative_to(self._directory).as_posix().partition("/")
                path = S3Path(bucket, key)
                if key and not _is_residue(path):
                    yield path, _mark(file)

    @staticmethod
    def _each(work: Callable[[Any], None], items: Iterable[Any]) -> None:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for _ in pool.map(work, items):
                pass


def _mark(file: Path) -> _Mark:
    status = file.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _is_residue(path: S3Path) -> bool:
    """Whether a file is no data. Such files are neither downloaded nor uploaded, so those in S3 stay unchanged."""
    parts = path.key.rstrip("/").split("/")
    if any(part.startswith(_UNFINISHED) for part in parts[:-1]):
        return True
    return "" in parts or (parts[-1].startswith(".") and parts[-1].endswith(".crc"))


def _name(path: S3Path) -> str:
    return path.key.rpartition("/")[2]
