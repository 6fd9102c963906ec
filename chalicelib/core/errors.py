"""The errors that a caller of Sluice can get, each with a stable code.

The API answers with ``{"error": {"code", "message", "field", "hint"}}``; the CLI prints the same texts. A message says
what Sluice expected and what it got; the hint says what to do.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import ValidationError

# code -> HTTP status. The codes are public: they never change their meaning.
STATUS = {
    "invalid": 400,
    "unknown_field": 400,
    "unknown_reference": 400,
    "cycle": 400,
    "bad_cursor": 400,
    "bad_json": 400,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "in_use": 409,
    "lease_lost": 409,
    "changed_meanwhile": 412,
    "too_large": 413,
    "throttled": 429,
    "internal": 500,
    "unavailable": 503,
}


class SluiceError(ValueError):
    """An error that the caller can correct. When Sluice raises it, it has stored nothing."""

    def __init__(self, code: str, message: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.field, self.hint = code, message, field, hint

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def to_dict(self) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message, "field": self.field, "hint": self.hint}
        return {"error": error}

    def under(self, prefix: str) -> SluiceError:
        """The same error, with its field under ``prefix``, the path of the part within a larger document."""
        field = f"{prefix}.{self.field}" if self.field else prefix
        return SluiceError(self.code, self.message, field, self.hint)


def invalid(field: str, expected: str, got: object, hint: str | None = None) -> SluiceError:
    """An error ``expected <expected>, got <got>`` for the path ``field``; long values are cut."""
    return SluiceError("invalid", f"expected {expected}, got {_short(got)}", field, hint)


def not_found(kind: str, name: str, hint: str | None = None) -> SluiceError:
    return SluiceError("not_found", f"no {kind} named {name!r}", None, hint)


def unknown_reference(field: str, kind: str, name: str, known: Iterable[str] = ()) -> SluiceError:
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"create the {kind} first, or correct the name"
    return SluiceError("unknown_reference", f"expected an existing {kind}, got {name!r}", field, hint)


def changed_meanwhile(what: str) -> SluiceError:
    hint = "read it again, check what changed, and send the request with the new ETag"
    return SluiceError("changed_meanwhile", f"{what} was changed by another request meanwhile", None, hint)


def from_validation(error: ValidationError) -> SluiceError:
    """The error for a failed validation: the first fault of pydantic in full, and the number of the others."""
    faults: list[dict[str, Any]] = [dict(fault) for fault in error.errors(include_url=False)]
    first = faults[0]
    field = ".".join(_path(first["loc"]))
    others = {path for fault in faults if not field.startswith(path := ".".join(_path(fault["loc"])))}
    more = f" (and {len(others)} more)" if others else ""
    carried = (first.get("ctx") or {}).get("error")
    if isinstance(carried, SluiceError):
        path = ".".join(part for part in (field, carried.field or "") if part)
        return SluiceError(carried.code, carried.message + more, path or None, carried.hint)
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        return SluiceError("unknown_field", f"unknown field {name!r}{more}", field, "remove it, or check its spelling")
    if first["type"] == "missing":
        return SluiceError("invalid", f"expected a value, got nothing{more}", field, "add the field")
    message = f"{_expected(first)}, got {_short(first.get('input'))}{more}"
    return SluiceError("invalid", message, field or None)


# The expectation behind each type of fault of pydantic, in the terms of JSON.
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_pattern_mismatch": "text that matches {pattern}",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} item{s}",
    "too_long": "at most {max_length} items",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "greater_than_equal": "greater than or equal to {ge}",
    "less_than_equal": "less than or equal to {le}",
}


def _expected(fault: Mapping[str, Any]) -> str:
    expected = _EXPECTED.get(fault["type"])
    if expected is None:
        message: str = fault["msg"].removeprefix("Value error, ")
        return message[:1].lower() + message[1:]
    context = fault.get("ctx") or {}
    return "expected " + expected.format(**context, s="" if context.get("min_length") == 1 else "s")


def _path(location: tuple[int | str, ...]) -> list[str]:
    """The path of a fault in the user's document, without union tags and pydantic's mark for dictionary keys."""
    return [str(part) for part in location if not _is_tag(part) and part != "[key]"]


def _is_tag(part: object) -> bool:
    """Whether a part of a path is the tag of a discriminated union, which pydantic adds and no user writes."""
    return isinstance(part, str) and part.startswith("@")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
