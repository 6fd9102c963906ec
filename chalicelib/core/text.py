"""Small helpers for texts that users read."""

from __future__ import annotations

import re

from chalicelib.core.errors import invalid

# C0, DEL and C1, with which a text steers a terminal, the characters that change the direction of a text, separators of
# lines, and characters that nobody sees. Marks of direction, joiners and non-joiners stay: scripts and emoji need them.
# https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
_CONTROLS = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200b\\u2028-\\u202e\\u2060\\u2066-\\u2069\\ufeff\\U000e0000-\\U000e007f]"
)


def count_of(number: int, noun: str) -> str:
    """A number with its noun: ``1 event``, ``2 events``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def refuse_controls(text: str, expected: str, allowed: str = "\n\t") -> None:
    """Raise ``invalid`` for a text with a control character that is not ``allowed``."""
    for found in _CONTROLS.finditer(text):
        if found[0] not in allowed:
            got = f"U+{ord(found[0]):04X} at character {found.start() + 1}"
            raise invalid("", expected, got, "remove the character; a terminal would execute or hide it")
