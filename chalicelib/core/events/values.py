"""Values of partition keys: which are valid, their order, and which of them are the same number.

A value is a text. Spark, Hive and pyarrow escape some characters of it in the name of its folder: the folder
``at=07%3A00`` has the value ``07:00``. Numbers in values compare as numbers: 9 comes before 10, and 09 lies between the
same two bounds as 9.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WHOLE = re.compile(r"-?[0-9]+")
MAX_ZEROS = 50  # leading zeros of a number in the name of a folder

Rank = tuple[tuple[int, int, str], ...]  # the parts of a value: numbers (0, number, "") before texts (1, 0, text)


def folders(keys: Sequence[str], texts: Sequence[str]) -> str:
    """The folders of the first values of a partition, relative to its dataset: ``year=2013/month=09/``."""
    return "".join(f"{key}={text}/" for key, text in zip(keys, texts, strict=False))


def spellings(value: str) -> tuple[str, ...]:
    """The texts that are the same whole number as a value, with up to `MAX_ZEROS` leading zeros; the value itself if it
    is no such number."""
    if not WHOLE.fullmatch(value):
        return (value,)
    sign, digits = "-" * value.startswith("-"), value.lstrip("-0") or "0"
    return tuple(dict.fromkeys((value, *(f"{sign}{'0' * zeros}{digits}" for zeros in range(MAX_ZEROS + 1)))))


def has_known_spellings(value: str) -> bool:
    """Whether `spellings` has every value of the same rank. It has not for numbers within a text, as in dates."""
    return WHOLE.fullmatch(value) is not None or not re.search("[0-9]", value)


def rank(value: str) -> Rank:
    """The place of a value in the order of values. Values that differ in leading zeros alone have the same rank: 9 and
    09, and 2013-9-1 and 2013-09-01."""
    if WHOLE.fullmatch(value):
        return ((0, int(value), ""),)
    parts = re.findall(r"[0-9]+|[^0-9]+", value)
    return tuple((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts)
