"""Sizes of data as text: ``100 GB``, ``1.5 MiB``, or a plain number of bytes (T9)."""

from __future__ import annotations

import re
from fractions import Fraction

from chalicelib.core.errors import invalid

MAX_BYTES = 10**18
MAX_TEXT = 40  # characters; the largest size with all its digits takes half of them

_DECIMAL = {"B": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", 1)}}
_BINARY = {f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)}
_UNITS = {unit.upper(): size for unit, size in {"": 1, **_DECIMAL, **_BINARY}.items()}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)")


def parse_bytes(value: str | int, field: str) -> int:
    """``100GB``, ``"1.5 MiB"`` or ``100`` as bytes. B, KB, MB, GB, TB, PB are powers of 1000, KiB to PiB of 1024.

    The case of units does not count. The result is rounded to a whole byte. Raises ``invalid`` for any other text, for
    less than one byte and for more than 10**18.
    """
    size = _exact(value)
    if size is None or not 1 <= size <= MAX_BYTES:
        hint = "units are B, KB, MB, GB, TB, PB (powers of 1000) and KiB, MiB, GiB, TiB, PiB (powers of 1024)"
        raise invalid(field, "a size such as 100GB, 1.5 MiB or a number of bytes, from 1 B to 1000 PB", value, hint)
    return round(size)


def format_bytes(size: int) -> str:
    """A size in bytes as text: ``100 GB``, ``1.5 MB``, ``64 MiB``.

    `parse_bytes` returns the same size for a whole number of any unit. Other sizes above 1 KB are cut to two decimals
    and never rounded up, so that no text claims more data than has arrived.
    """
    if size < 1000:
        return f"{size} B"
    texts = [f"{size // unit} {name}" for name, unit in _BINARY.items() if size % unit == 0]
    if size % 1000 == 0:
        texts.insert(0, _decimal(size, places=15))
    # The shortest text is probably the one that the user wrote: 125 GiB is also 134.217728 GB.
    return min(texts, key=len, default=_decimal(size, places=2))


def _exact(value: object) -> Fraction | None:
    if isinstance(value, bool):  # true and false are numbers in Python, not in JSON
        return None
    if isinstance(value, int):
        return Fraction(value)
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= MAX_TEXT else None
    unit = _UNITS.get(found[2].upper()) if found else None
    return Fraction(found[1]) * unit if found and unit else None


def _decimal(size: int, places: int) -> str:
    """A size in the largest unit that fits, cut to ``places`` decimals; 15 decimals show every byte of a petabyte."""
    name, unit = max(((name, unit) for name, unit in _DECIMAL.items() if unit <= size), key=lambda entry: entry[1])
    whole, remainder = divmod(size, unit)
    decimals = f"{remainder:0{len(str(unit)) - 1}d}"[:places].rstrip("0")
    return f"{whole}.{decimals} {name}" if decimals else f"{whole} {name}"
