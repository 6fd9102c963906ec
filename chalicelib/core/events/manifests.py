"""What a manifest lists: the keys of the objects that make a partition ready (T8).

A manifest is text with one name in each row, or JSON: a list, or an object with such a list as ``files`` or
``entries``. An entry is a name, or an object with a ``url`` (Redshift) or a ``key`` (S3 Inventory).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

from chalicelib.core.text import count_of

MAX_MANIFEST = 5_000_000  # bytes: some 50,000 names
MAX_KEY = 1_024  # bytes, of S3
SHAPES = "one name to a line, a JSON list of names, or an object with such a list as files or entries"
_ADDRESS = re.compile(r"s3[an]?://([^/]*)/(.*)", re.DOTALL)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class BadManifest(ValueError):
    """Content that is no manifest. The message says what was expected and what came."""


def keys_of(content: bytes, bucket: str, folder: str) -> tuple[str, ...]:
    """The keys of the listed objects, each once. A name is relative to the folder of the partition, or a full address.
    Raises `BadManifest` for any other content, and for an address in another bucket."""
    names = dict.fromkeys(_key(name, bucket, folder) for name in _listed(_text(content), bucket))
    for key in names:
        valid = key.encode(errors="replace")
        if len(valid) > MAX_KEY or valid.decode() != key:
            raise BadManifest(f"expected names of at most {MAX_KEY} bytes in valid Unicode, got {_shown(ascii(key))}")
    return tuple(names)


def split(keys: Iterable[str], folder: str) -> tuple[list[str], list[str]]:
    """The keys inside a folder, and those outside."""
    known = list(keys)
    return [key for key in known if key.startswith(folder)], [key for key in known if not key.startswith(folder)]


def others(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are."""
    first, *rest = names
    return f"{first} and {count_of(len(rest), 'other')}" if rest else first


def _text(content: bytes) -> str:
    """UTF-8 with or without a byte order mark, or UTF-16 with one."""
    encoding = "utf-16" if content.startswith(_UTF_16) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadManifest(f"expected a manifest in UTF-8, or in UTF-16 with a byte order mark, got {error}") from error
    if "\x00" in text:
        raise BadManifest("expected a manifest in UTF-8, got characters of zero bytes, as in UTF-16 without its mark")
    return text


def _listed(text: str, bucket: str) -> list[str]:
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise BadManifest(f"expected {SHAPES}, got JSON that is nested too deeply") from error
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise BadManifest(f"expected {SHAPES}, got JSON that is cut off or broken: {error}") from error
        return [line.strip() for line in text.splitlines() if line.strip()]
    place = bucket
    if isinstance(content, dict):
        place = str(content.get("destinationBucket", bucket)).rpartition(":")[2]  # S3 Inventory has an ARN
        content = content.get("files", content.get("entries"))
    if not isinstance(content, list):
        raise BadManifest(f"expected {SHAPES}, got {_shown(text)}")
    return [_name(entry, place) for entry in content]


def _name(entry: Any, bucket: str) -> str:
    name = entry
    if isinstance(entry, dict):
        key = entry.get("key")
        name = f"s3://{bucket}/{key}" if isinstance(key, str) else entry.get("url")
    if not isinstance(name, str):
        raise BadManifest(f"expected names, or objects with a url or a key, got {_shown(json.dumps(entry))}")
    return name


def _key(name: str, bucket: str, folder: str) -> str:
    found = _ADDRESS.fullmatch(name)
    if found is None:
        return folder + name
    if found[1] != bucket:
        raise BadManifest(f"expected objects in the bucket of the dataset, {bucket}, got {name}")
    return found[2]


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
