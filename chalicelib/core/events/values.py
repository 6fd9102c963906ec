"""Values of partition keys: which are valid, their order, and which of them are the same number.

A value is a text, as in the folder names of S3. Numbers in it compare as numbers: 9 comes before 10, and 09 between the
same two bounds as 9.
"""

from __future__ import annotations

import re
import unicodedata

from chalicelib.core.errors import invalid

# Spark expands these in a path, so a job that builds a path from the value would read other partitions, too. Spark and
# Hive themselves escape them in the names of folders.
GLOB = frozenset("*?{}[]\\")
WHOLE = re.compile(r"-?[0-9]+")

Rank = tuple[tuple[int, int, str], ...]  # the parts of a value: numbers (0, number, "") before texts (1, 0, text)


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


def rank(value: str) -> Rank:
    """The place of a value in the order of values. Values that differ in leading zeros alone have the same rank: 9 and
    09, and 2013-9-1 and 2013-09-01."""
    if WHOLE.fullmatch(value):
        return ((0, int(value), ""),)
    parts = re.findall(r"[0-9]+|[^0-9]+", value)
    return tuple((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts)
