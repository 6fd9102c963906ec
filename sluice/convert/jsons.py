"""Reads a text of several JSON documents one after the other, such as the file that ``aws ... >> all.json`` writes."""

from __future__ import annotations

import json
from typing import Any

from sluice.errors import WrongUsage


def read(text: str, source: str) -> list[Any]:
    """Every JSON value of the text. Raises `WrongUsage` with the line of the first error."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        if text[at].isspace() or text[at] == "\ufeff":
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise WrongUsage(f"expected JSON, got {error.msg.lower()}", f"{source}, line {error.lineno}") from None
        except RecursionError:
            raise WrongUsage("expected JSON, got objects nested too deep", source) from None
        found.append(value)
    return found


def objects(text: str, source: str, lists: tuple[str, ...], expected: str) -> list[dict[str, Any]]:
    """The objects of the text: each value, or the items of a list, or those under one of the keys ``lists``."""
    found: list[dict[str, Any]] = []
    waiting = read(text, source)
    while waiting:
        value = waiting.pop(0)
        key = next((key for key in lists if isinstance(value, dict) and isinstance(value.get(key), list)), None)
        if key is not None:
            waiting = [*value[key], *waiting]
        elif isinstance(value, list):
            waiting = [*value, *waiting]
        elif isinstance(value, dict):
            found.append(value)
        else:
            raise WrongUsage(f"expected {expected}, got {json.dumps(value)[:60]}", source)
    if not found:
        raise WrongUsage(f"expected {expected}, got none", source)
    return found


def text_at(value: dict[str, Any], key: str) -> str:
    """The text under a key; empty if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def object_at(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
