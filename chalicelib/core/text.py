"""Small helpers for texts that users read."""

from __future__ import annotations

import re

from chalicelib.core.errors import invalid

# C0, DEL and C1, with which a text steers a terminal, and the characters that change the direction of a text.
# https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
_CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def count_of(number: int, noun: str) -> str:
    """A number with its noun: ``1 event``, ``2 events``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def refuse_controls(text: str, expected: str, allowed: str = "\n\t") -> None:
    """Raise ``invalid`` for a text with a control character that is not ``allowed``."""
    for found in _CONTROLS.finditer(text):
        if found[0] not in allowed:
            got = f"U+{ord(found[0]):04X} at character {found.start() + 1}"
            raise invalid("", expected, got, "remove the character; a terminal would execute it")
