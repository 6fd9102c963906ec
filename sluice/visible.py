"""Texts of others for a terminal: what would steer it becomes visible.

A job decides about its log, and a user about descriptions. Escape sequences in them could set the title of the
operator's terminal, write its clipboard (OSC 52), or erase lines; characters that change the direction of a text, or
that nobody sees, could show another command than the one that is copied.
"""

from __future__ import annotations

import json
import re
from typing import Any

# C0 without tab and newline, DEL, C1, the directional formatting characters of Unicode, its separators of lines, and
# what has no width. U+200C and U+200D stay, because scripts and emoji need them.
_SIGNS = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060\\u2066-\\u2069\\ufeff"
_CONTROLS = re.compile(f"[{_SIGNS}]")
_HIDING = re.compile(f"[{_SIGNS}\\U000e0000-\\U000e007f]")  # with the tags, which no terminal shows
_PICTURES, _DELETE, _OTHER = 0x2400, "\u2421", "\ufffd"  # U+2400 and following show C0; nothing shows C1


def visible(text: str) -> str:
    """The text with a visible character for each control character but tab and newline. The length stays, so that
    columns do."""
    return _HIDING.sub(_shown, text)


def escaped(text: str) -> str:
    """The text with the escapes of JSON and YAML for these characters: within quotes, the same value for a program."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON that is harmless on a terminal."""
    return escaped(json.dumps(value, indent=indent, ensure_ascii=False))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(_PICTURES + code) if code < 0x20 else _DELETE if code == 0x7F else _OTHER
