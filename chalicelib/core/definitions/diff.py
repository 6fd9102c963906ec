"""The differences between two JSON documents as readable texts, for the history of a schedule's versions (L7).

A deployment prints them, often into the log of a pipeline that many read: so they show no known form of credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chalicelib.core import masks

MAX_SHOWN = 80  # characters of a value; the version shows all of it
MAX_DEPTH_SHOWN = 4  # levels of a nested value

_ABSENT: Final = object()


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One text for each changed leaf, sorted by path: ``constraints.0.max: 1 -> 2``.

    Empty if and only if the documents are equal as JSON: ``1`` equals ``1.0`` but not ``true``, and the order of keys
    does not count. Lists are compared by index. An added or removed object or list is one text.
    """
    found: list[str] = []
    # A list of pending comparisons instead of recursion: a document may be deeper than Python's recursion limit.
    pending: list[tuple[str, Any, Any]] = [("", old, new)]
    while pending:
        path, before, after = pending.pop()
        members = _members(before, after)
        if members is not None:
            pending += [(f"{path}.{key}" if path else key, *pair) for key, *pair in reversed(members)]
        elif not _same(before, after):
            found.append(f"{path}: {_change(before, after)}")
    return found


def _members(before: Any, after: Any) -> list[tuple[str, Any, Any]] | None:
    """The members of two objects or two lists in pairs; None for values that are compared as a whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return [(key, before.get(key, _ABSENT), after.get(key, _ABSENT)) for key in sorted({*before, *after})]
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        indexes = range(max(len(before), len(after)))
        return [(str(index), _at(before, index), _at(after, index)) for index in indexes]
    return None


def _at(values: list[Any] | tuple[Any, ...], index: int) -> Any:
    return values[index] if index < len(values) else _ABSENT


def _same(before: Any, after: Any) -> bool:
    """Whether two values are equal as JSON. In Python ``True == 1``, in JSON not."""
    return isinstance(before, bool) is isinstance(after, bool) and bool(before == after)


def _change(before: Any, after: Any) -> str:
    if before is _ABSENT:
        return f"added {_shown(after)}"
    if after is _ABSENT:
        return f"removed {_shown(before)}"
    was, becomes = _shown(before), _shown(after)
    return f"{was} -> {becomes}" if was != becomes else f"changed beyond the part shown, {was}"


def _shown(value: Any) -> str:
    text = _format(value, MAX_DEPTH_SHOWN)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _format(value: Any, levels: int) -> str:
    if isinstance(value, Mapping):
        inside = [f"{key}: {_format(value[key], levels - 1)}" for key in sorted(value)] if levels else ["..."]
        return f"{{{', '.join(inside)}}}" if value else "{}"
    if isinstance(value, list | tuple):
        inside = [_format(item, levels - 1) for item in value] if levels else ["..."]
        return f"[{', '.join(inside)}]" if value else "[]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return repr(masks.text(value)) if isinstance(value, str) else str(value)
