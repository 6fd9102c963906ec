"""Texts of a target's document with values of the run context.

Example: ``{"Message": "{{correlation.day}} has failed", "Id": "{{run_id}}"}``. A path names fields and, in a list, a
number: ``{{events.0.partition.day}}``. Beside the fields of the context, ``{{nominal_time}}`` is the instant for which
the run stands, as text. ``{{correlation.day}}`` is that of the run, or else of the runs before it: a node of a DAG has
none of its own. A text that is one placeholder alone becomes the value itself, any JSON. Within a longer text,
a value that is no text is written as JSON. Keys stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import iso

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"[A-Za-z_]\w*(\.[^.{}\s]+)*", re.ASCII)
# The fields of a context (docs/run-context.schema.json).
FIELDS = (
    *("attempt", "correlation", "dag", "data", "each", "events", "logical_start_time", "manifest", "missing", "period"),
    *("properties", "rerun_of", "result_uri", "run_id", "schedule", "schema", "spread", "upstream", "workflow"),
    "nominal_time",
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


def as_text(value: Any) -> str:
    """A value where only a text can be: what is no text becomes JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _filled(text: str, context: Mapping[str, Any], field: str) -> Any:
    if whole := _PLACEHOLDER.fullmatch(text):
        return _value(whole[1].strip(), context, field)

    def written(found: re.Match[str]) -> str:
        value = _value(found[1].strip(), context, field)
        return as_text(value)

    return _PLACEHOLDER.sub(written, text)


def is_placeholder(value: Any) -> bool:
    """Whether a value is one placeholder alone, which may become any value."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def has_placeholder(text: str) -> bool:
    return _PLACEHOLDER.search(text) is not None


def _value(path: str, context: Mapping[str, Any], field: str) -> Any:
    if path == "nominal_time" and "logical_start_time" in context:
        return iso(context["logical_start_time"])
    found = _found(path, context)
    if found is None and path.startswith("correlation.") and context.get("upstream") is not None:
        return _value(path, context["upstream"], field)
    if found is None:
        hint = "sluice runs context shows what the run has; name a value that each run of the schedule has"
        raise SluiceError("invalid", f"expected a run whose context has {path}, got one without it", field, hint)
    return found


def _found(path: str, context: Mapping[str, Any]) -> Any:
    found: Any = context
    for part in path.split("."):
        match found:
            case Mapping() if part in found:
                found = found[part]
            case [*_] if part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            case _:
                return None
    return found


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
