"""Which texts are values of partition keys, in folders, documents and requests."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

from chalicelib.core.errors import SluiceError, invalid

ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")

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


def decoded(text: str) -> str:
    """The value in the name of a folder, without the escapes of Spark and Hive.

    The text stays as it is if the value would be invalid, such as ``*``, or would look like an escape itself. So two
    texts have one value only if they mean the same, and decoding again changes nothing."""
    if not ESCAPE.search(text):
        return text
    try:
        value = unquote(text, errors="strict")
        check_value(value, "")
    except (UnicodeDecodeError, SluiceError):
        return text
    return text if ESCAPE.search(value) else value
