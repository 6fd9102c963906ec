"""Texts of others for a terminal: what would steer it becomes visible.

A job decides about its log, and a user about descriptions. Escape sequences in them could set the title of the
operator's terminal, write its clipboard (OSC 52), or erase lines; characters that change the direction of a text could
show another command than the one that is copied.
"""

from __future__ import annotations

import json
import re
from typing import Any

# C0 without tab and newline, DEL, C1, and the directional formatting characters of Unicode.
_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
_PICTURES, _DELETE, _OTHER = 0x2400, "\u2421", "\ufffd"  # U+2400 and following show C0; nothing shows C1


def visible(text: str) -> str:
    """The text with a visible character for each control character but tab and newline. The length stays, so that
    columns do."""
    return _CONTROLS.sub(_shown, text)


def escaped(text: str) -> str:
    """The text with the escapes of JSON and YAML for these characters: within quotes, the same value for a program."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON that is harmless on a terminal."""
    return escaped(json.dumps(value, indent=indent, ensure_ascii=False))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(_PICTURES + code) if code < 0x20 else _DELETE if code == 0x7F else _OTHER
