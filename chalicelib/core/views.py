"""Views: what answers show of stored rows, as typed dicts.

The class of a view stands beside the function that makes it. The OpenAPI document gets its schema from the fields and
the docstring, by the name of the class without ``View`` (`web/routes/openapi.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import Field, GetPydanticSchema
from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

from chalicelib.core.instants import iso
from chalicelib.core.why import NONE, Sees, Why, everyone


def described_as(kind: Any) -> GetPydanticSchema:
    """The schema of a value that becomes another kind of value when an answer is written."""
    return GetPydanticSchema(lambda _, handler: handler(kind))


At = Annotated[str, Field(json_schema_extra={"format": "date-time"})]  # an instant in RFC 3339
Sentence = Annotated[Why, described_as(str)]  # a text for the reader of the answer
Code = Annotated[str, Field(description="the code of the reason: see docs/reference.md")]

V = TypeVar("V")


class View(TypedDict):
    """What an answer, or a part of one, shows."""


# Fields whose names are keywords.
FromAt = TypedDict("FromAt", {"from": At})
FromText = TypedDict("FromText", {"from": str})
FromMaybe = TypedDict("FromMaybe", {"from": NotRequired[At | None]})
ForMaybe = TypedDict("ForMaybe", {"for": NotRequired[str | None]})


def as_json(content: Any, sees: Sees = everyone) -> str:
    """An answer for a reader who may know the names that ``sees`` accepts. Its reasons become texts here."""
    return json.dumps(content, default=lambda value: value.seen(sees))


def shown(view: type[V], row: object, **own: Any) -> V:
    """The view of a row. A field that is not given has the value of the row's attribute of the same name: an instant in
    RFC 3339, anything else that is shown as a text as its text, and None for an empty text in a field that may be None.
    A `Code` is that of the row's ``reason``.
    A field that need not be there is left out unless it is given."""
    found: dict[str, Any] = {}
    described: Any = view
    for name, write in _fields(described).items():
        if name in own:
            found[name] = own[name]
        elif write is not None:
            found[name] = write(row)
    return cast(V, found)


@cache
def _fields(view: Any) -> dict[str, Callable[[Any], Any] | None]:
    """How each field of a view is written; None for a field that need not be there."""
    return {name: _writer(name, hint) for name, hint in get_type_hints(view, include_extras=True).items()}


def _writer(name: str, hint: Any) -> Callable[[Any], Any] | None:
    if get_origin(hint) is NotRequired:
        return None
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kind = options[0]
    if kind == Code:
        return lambda row: row.reason.code or None
    write: Any = iso if kind == At else {list: list, dict: dict}.get(get_origin(kind), _text if kind is str else _same)
    write = _or_none(write) if NoneType in options else write
    return lambda row: write(getattr(row, name))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _same(value: Any) -> Any:
    return value


def _or_none(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None or (found := write(value)) in ("", NONE) else found


def stored(name: str, kind: str, document: Mapping[str, Any], version: int, row: Any) -> dict[str, Any]:
    """A stored document with what every one has besides its own fields. ``row`` says who changed it last, and when."""
    at = iso(row.updated_at)
    return {"name": name, "kind": kind, **document, "version": version, "updated_at": at, "updated_by": row.by}
