"""The field names of documents, and the name that a user probably meant by an unknown word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel

Location = tuple[int | str, ...]

# Words of other schedulers for the fields and types of Sluice. A synonym counts only where Sluice's word is valid.
SYNONYMS = {
    "and": ("all",),
    "args": ("arguments",),
    "concurrency": ("max",),
    "cron": ("expression", "time"),
    "dataset": ("partition",),
    "emr": ("emr_serverless",),
    "end_date": ("end",),
    "file": ("partition",),
    "interval": ("every", "expression", "time"),
    "main": ("entry_point",),
    "max_concurrency": ("max",),
    "max_attempts": ("attempts",),
    "or": ("any",),
    "path": ("prefix",),
    "rate": ("expression", "time"),
    "retry": ("retries",),
    "s3": ("partition",),
    "schedule": ("expression", "time"),
    "schedule_interval": ("expression",),
    "script": ("entry_point",),
    "spark": ("emr_serverless",),
    "start_date": ("start",),
    "timezone": ("zone",),
    "tz": ("zone",),
    "window": ("time_window",),
    "workflow": ("program_status",),
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a user probably meant: the same one in another case, a synonym, or a similar word."""
    listed = list(known)
    plain = {_plain(name): name for name in listed}
    if _plain(word) in plain:
        return plain[_plain(word)]
    for other in SYNONYMS.get(word.lower().replace("-", "_"), ()):
        if other in listed:
            return other
    near = get_close_matches(_plain(word), list(plain), n=1)
    return plain[near[0]] if near else None


def _plain(word: str) -> str:
    return re.sub(r"[_\s-]", "", word).lower()


def is_tag(part: object) -> bool:
    """Whether a part of a path is the tag of a discriminated union, which pydantic adds and no user writes."""
    return isinstance(part, str) and part.startswith("@")


def fields_at(model: type[BaseModel], location: Location) -> tuple[str, ...]:
    """The names of the fields of the document at a location of pydantic, within a document of ``model``; none if the
    type at the location is not exactly one document."""
    found: Any = model
    for part in location:
        found = _step(found, part)
    return _names(found)


def _names(annotation: Any) -> tuple[str, ...]:
    models = [each for each in _members(annotation) if hasattr(each, "model_fields")]
    if len(models) != 1:
        return ()
    return tuple(field.alias or name for name, field in models[0].model_fields.items())


def _step(annotation: Any, part: int | str) -> Any:
    """The annotation of one part of an annotated value: a member of a union by its tag, a field, or an item."""
    if is_tag(part):
        return next((each for each in _annotated(annotation) if _tag(each) == part), None)
    for each in _members(annotation):
        if hasattr(each, "model_fields"):
            each.model_rebuild(raise_errors=False)  # resolves the reference of a document that contains itself
            for name, field in each.model_fields.items():
                if part in (name, field.alias):
                    return field.annotation
        origin, arguments = get_origin(each), get_args(each)
        if origin in (list, tuple) and isinstance(part, int):
            return arguments[0]
        if origin is dict and len(arguments) == 2:
            return arguments[1]
    return None


def _annotated(annotation: Any) -> Iterator[Any]:
    """The members of a union with their annotations, at any depth."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _annotated(each)
        return
    yield annotation
    if origin is Annotated:
        yield from _annotated(get_args(annotation)[0])


def _members(annotation: Any) -> Iterator[Any]:
    """The types of a union, without their annotations."""
    for each in _annotated(annotation):
        if get_origin(each) is not Annotated and not isinstance(each, ForwardRef):
            yield each


def _tag(annotation: Any) -> str | None:
    metadata = getattr(annotation, "__metadata__", ())
    return next((each.tag for each in metadata if hasattr(each, "tag")), None)
