"""Which partition of a dataset an object belongs to, and whether the object makes the partition ready (T8).

Example: with the keys ``year`` and ``month``, ``<prefix>year=2026/month=03/part-0.parquet`` belongs to ``2026, 03``.
The folder ``at=07%3A00`` has the value ``07:00``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import periods
from chalicelib.core.events.values import folders
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import Instant
from chalicelib.core.partition_values import check_value, decoded

MAX_SORT_KEY = 500


@dataclass(frozen=True, slots=True)
class Located:
    """The position of an object in a partition: the values of the keys as they stand in the folder, the folder, and the
    name within it."""

    texts: tuple[str, ...]
    folder: str
    name: str

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the keys, without escapes."""
        return tuple(map(decoded, self.texts))


def locate(dataset: Dataset, key: str) -> Located | None:
    """The partition of an object, by its key (already URL-decoded); None if the object is in no partition."""
    if not key.startswith(dataset.prefix):
        return None
    parts = key[len(dataset.prefix) :].split("/")
    folders, names = parts[: len(dataset.keys)], parts[len(dataset.keys) :]
    texts: list[str] = []
    for expected, folder in zip(dataset.keys, folders, strict=False):
        name, equals, value = folder.partition("=")
        if name != expected or not equals or not value:
            return None
        texts.append(value)
    if len(texts) < len(dataset.keys) or not names or not names[-1]:
        return None
    return Located(tuple(texts), dataset.prefix + "/".join(folders) + "/", "/".join(names))


def check_values(dataset: Dataset, located: Located) -> None:
    """Raise ``invalid`` for an object in a folder whose values `check_value` refuses."""
    for key, value in zip(dataset.keys, located.values, strict=True):
        check_value(value, f"key.{key}")


def identity(dataset: Dataset, texts: Sequence[str]) -> tuple[str, ...]:
    """The values that identify the partition with these texts in its folders: without escapes and, if they name a
    period, as the format of the dataset writes them (T24)."""
    return periods.identity(dataset, tuple(map(decoded, texts)))


class NotCounted(NamedTuple):
    """Why an object belongs to no partition: a code, the folder that is wrong, and the same in words."""

    code: str
    of: str
    why: str


def why_ignored(dataset: Dataset, key: str, located: Located | None) -> NotCounted | None:
    """Why an object belongs to no partition; None if it does, or if it is bookkeeping that never does."""
    if located is not None:
        try:
            check_values(dataset, located)
        except SluiceError as refused:
            key = (refused.field or "").removeprefix("key.")
            value = dict(zip(dataset.keys, located.values, strict=True))[key]
            return NotCounted("invalid_value", f"{key}={value}", refused.message)
        return no_period(dataset, located) if _is_mistake(dataset, located.name) else None
    if not _is_mistake(dataset, key.removeprefix(dataset.prefix)):
        return None
    return NotCounted("no_folders", "", f"its path has no folders {'/'.join(f'{each}=...' for each in dataset.keys)}")


def no_period(dataset: Dataset, located: Located) -> NotCounted | None:
    """Why the folder of an object is that of no period; None if it is, or if the dataset has no periods."""
    values = dict(zip(dataset.keys, located.values, strict=True))
    try:
        periods.written(dataset, values)
    except SluiceError as refused:
        of = folders(dataset.keys, located.texts).rstrip("/")
        return NotCounted("no_period", of, f"its folder names no period: {refused.message}")
    return None


def other_folder(dataset: Dataset, located: Located, path: str | None) -> NotCounted | None:
    """Why an object is not in its partition, which lies at ``path``: its folder is another one of the same period."""
    if path in (None, f"s3://{dataset.bucket}/{located.folder}"):
        return None
    of = folders(dataset.keys, located.texts).rstrip("/")
    return NotCounted("other_folder", of, f"its folder is a second one of the period whose partition is {path}")


def _is_mistake(dataset: Dataset, name: str) -> bool:
    """Whether an object in no partition is a mistake in the layout: it is data, a done-flag or a manifest."""
    return name.rpartition("/")[2] in (dataset.ready.done_flag, dataset.ready.manifest) or is_data(name)


def makes_ready(dataset: Dataset, located: Located) -> bool:
    """Whether this object may make its partition ready (T8). If it is a manifest, the caller must read it to decide."""
    if dataset.ready.done_flag is not None:
        return located.name == dataset.ready.done_flag
    if dataset.ready.manifest is not None:
        return True
    return is_data(located.name)


def is_data(name: str) -> bool:
    """Whether a name, or a key within a dataset, is that of a data file, by the rules of Spark and Hive. It is not if a
    part of it begins with ``.``, or with ``_`` outside a folder ``key=value``. Nor if it is the marker of a folder, or
    a copy that Hadoop has not finished."""
    return bool(name) and not name.endswith("/") and not any(map(_is_bookkeeping, name.split("/")))


def _is_bookkeeping(part: str) -> bool:
    hidden = part.startswith(".") or (part.startswith("_") and "=" not in part)
    return hidden or part.endswith(("_$folder$", "._COPYING_"))


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    """A decoded S3 notification, with the URL-decoded key and the instant that S3 reports. A listing has no
    ``sequencer``."""

    bucket: str
    key: str
    at: Instant
    size: int = 0
    etag: str = ""
    sequencer: str = ""

    @property
    def version(self) -> ObjectVersion:
        return ObjectVersion(self.at, self.etag, self.sequencer)
