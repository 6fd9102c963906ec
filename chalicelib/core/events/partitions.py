"""Which partition of a dataset an object belongs to, and whether the object makes the partition ready (T8).

Example: with the keys ``year`` and ``month``, ``<prefix>year=2026/month=03/part-0.parquet`` belongs to ``2026, 03``.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import invalid
from chalicelib.core.events.versions import ObjectVersion
from chalicelib.core.instants import Instant

MAX_SORT_KEY = 500
# Spark expands these in a path, so a job that builds a path from the value would read other partitions, too. Spark and
# Hive themselves escape them in the names of folders.
GLOB = frozenset("*?{}[]\\")


def check_value(value: str, field: str) -> None:
    """Raise ``invalid`` for a value of a partition key that jobs could read as a pattern or as another folder. Also for
    a value that is not in the normal form C of Unicode: two forms of one text would be two partitions."""
    if not value or "/" in value or not value.isprintable():
        hint = "write the value as it stands in the folder, such as 2026-01-31"
        raise invalid(field, "a value of printable characters without '/'", value, hint)
    if GLOB & set(value) or value in (".", ".."):
        hint = "Spark reads them as patterns; escape them in the name of the folder, such as %2A for *"
        raise invalid(field, "a value without * ? { } [ ] \\, other than . and ..", value, hint)
    if not unicodedata.is_normalized("NFC", value):
        hint = "write the name of the folder, and the value, in the normal form C: unicodedata.normalize('NFC', text)"
        raise invalid(field, "a value in the normal form C of Unicode", ascii(value), hint)


@dataclass(frozen=True, slots=True)
class Located:
    """The position of an object in a partition: the key values, the folder, and the name within the folder."""

    values: tuple[str, ...]
    folder: str
    name: str


def locate(dataset: Dataset, key: str) -> Located | None:
    """The partition of an object, by its key (already URL-decoded); None if the object is in no partition."""
    if not key.startswith(dataset.prefix):
        return None
    parts = key[len(dataset.prefix) :].split("/")
    folders, names = parts[: len(dataset.keys)], parts[len(dataset.keys) :]
    values: list[str] = []
    for expected, folder in zip(dataset.keys, folders, strict=False):
        name, equals, value = folder.partition("=")
        if name != expected or not equals or not value:
            return None
        values.append(value)
    if len(values) < len(dataset.keys) or not names or not names[-1]:
        return None
    return Located(tuple(values), dataset.prefix + "/".join(folders) + "/", "/".join(names))


def check_values(dataset: Dataset, located: Located) -> None:
    """Raise ``invalid`` for an object in a folder whose values `check_value` refuses."""
    for key, value in zip(dataset.keys, located.values, strict=True):
        check_value(value, f"key.{key}")


def makes_ready(dataset: Dataset, located: Located) -> bool:
    """Whether this object may make its partition ready (T8). If it is a manifest, the caller must read it to decide."""
    if dataset.ready.done_flag is not None:
        return located.name == dataset.ready.done_flag
    if dataset.ready.manifest is not None:
        return True
    return is_data(located.name)


def is_data(name: str) -> bool:
    """Whether a name is that of a data file. Spark and Hive ignore names that begin with ``_`` or ``.``."""
    return not any(part.startswith(("_", ".")) for part in name.split("/"))


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
