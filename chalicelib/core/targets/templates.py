"""Texts of a target's document with values of the run context.

Example: ``{"Message": "{{correlation.day}} has failed", "Id": "{{run_id}}"}``. A path names fields and, in a list, a
number: ``{{events.0.partition.day}}``. A text that is one placeholder alone becomes the value itself, any JSON. Within
a longer text, a value that is no text is written as JSON. Keys stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chalicelib.core.errors import SluiceError, invalid

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"[A-Za-z_]\w*(\.[^.{}\s]+)*", re.ASCII)
# The fields of a context (docs/run-context.schema.json).
FIELDS = (
    *("attempt", "correlation", "dag", "data", "each", "events", "logical_start_time", "manifest", "missing", "period"),
    *("properties", "rerun_of", "result_uri", "run_id", "schedule", "schema", "spread", "upstream", "workflow"),
)
_EXAMPLE = "{{correlation.day}}"


def check(template: Any, field: str) -> None:
    """Raise ``invalid`` for a placeholder below ``field`` that names no value of a context."""
    for where, text in _texts(template, field):
        if "{{" in _PLACEHOLDER.sub("", text):
            raise invalid(where, f"placeholders such as {_EXAMPLE}", text, "close each {{ with }}")
        for path in _paths(text):
            first = path.partition(".")[0]
            if not _PATH.fullmatch(path) or first not in FIELDS:
                hint = f"begin with a field of the run context: {', '.join(FIELDS)}"
                raise invalid(where, f"a path such as {_EXAMPLE}", "{{" + path + "}}", hint)


def fill(template: Any, context: Mapping[str, Any], field: str) -> Any:
    """The template with the values of a context. Raises ``invalid`` for a value that the context lacks."""
    match template:
        case str():
            return _filled(template, context, field)
        case dict():
            return {key: fill(value, context, f"{field}.{key}") for key, value in template.items()}
        case list() | tuple():
            return [fill(value, context, f"{field}.{number}") for number, value in enumerate(template)]
    return template


def _filled(text: str, context: Mapping[str, Any], field: str) -> Any:
    if whole := _PLACEHOLDER.fullmatch(text):
        return _value(whole[1].strip(), context, field)

    def written(found: re.Match[str]) -> str:
        value = _value(found[1].strip(), context, field)
        return value if isinstance(value, str) else json.dumps(value, sort_keys=True)

    return _PLACEHOLDER.sub(written, text)


def _value(path: str, context: Mapping[str, Any], field: str) -> Any:
    found: Any = context
    for part in path.split("."):
        match found:
            case Mapping() if part in found:
                found = found[part]
            case [*_] if part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            case _:
                raise _missing(path, field)
    if found is None:
        raise _missing(path, field)
    return found


def _missing(path: str, field: str) -> SluiceError:
    hint = "sluice runs context shows what the run has; name a value that each run of the schedule has"
    return invalid(field, f"a run whose context has {path}", "a run without it", hint)


def _paths(text: str) -> Iterator[str]:
    return (found.strip() for found in _PLACEHOLDER.findall(text))


def _texts(template: Any, field: str) -> Iterator[tuple[str, str]]:
    match template:
        case str():
            yield field, template
        case Mapping():
            for key, value in template.items():
                yield from _texts(value, f"{field}.{key}")
        case Sequence():
            for number, value in enumerate(template):
                yield from _texts(value, f"{field}.{number}")
