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

CUTOFF, CUTOFF_OF_SHORT = 0.6, 0.7  # the least similarity of two words; short words are similar to many others
MAX_BELOW = 3  # levels below an object at which a misplaced field is searched

# Words of other schedulers for the fields and types of Sluice. A synonym counts only where Sluice's word is valid.
SYNONYMS = {
    "and": ("all",),
    "args": ("arguments",),
    "concurrency": ("max",),
    "cron": ("expression", "time"),
    "dataset": ("partition",),
    "duration": ("after",),
    "emr": ("emr_serverless",),
    "end_date": ("end",),
    "every": ("after", "each"),
    "file": ("partition",),
    "for": ("after",),
    "frequency": ("each",),
    "granularity": ("each",),
    "interval": ("every", "expression", "time", "after"),
    "leaf": ("of",),
    "main": ("entry_point",),
    "max_concurrency": ("max",),
    "max_attempts": ("attempts",),
    "or": ("any",),
    "path": ("prefix",),
    "period": ("after",),
    "rate": ("expression", "time"),
    "retry": ("retries",),
    "s3": ("partition",),
    "schedule": ("expression", "time"),
    "schedule_interval": ("expression",),
    "script": ("entry_point",),
    "silence": ("after",),
    "since": ("after",),
    "span": ("after",),
    "spark": ("emr_serverless",),
    "start_date": ("start",),
    "timezone": ("zone",),
    "trigger": ("of",),
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
    near = get_close_matches(_plain(word), list(plain), n=1, cutoff=CUTOFF if len(word) > 3 else CUTOFF_OF_SHORT)
    return plain[near[0]] if near else None


def elsewhere(model: type[BaseModel], location: Location, word: str) -> str | None:
    """The path of the field that was meant by a word which stands in the wrong object: further down, or further up.
    ``NAME`` in the path stands for a name that the user chooses."""
    path = [str(part) for part in location if not is_tag(part)]
    for name in (word, *SYNONYMS.get(word.lower().replace("-", "_"), ())):
        below = _below(model, location, name)
        if below is not None:
            return ".".join([*path, *below])
    for depth in range(len(location) - 1, -1, -1):
        if word in fields_at(model, location[:depth]):
            return ".".join([*(str(part) for part in location[:depth] if not is_tag(part)), word])
    return None


def _below(model: type[BaseModel], location: Location, word: str) -> tuple[str, ...] | None:
    """The shortest path to a field of this name, from a location on."""
    found: Any = model
    for part in location:
        found = _step(found, part)
    level: list[tuple[tuple[str, ...], Any]] = [((), found)]
    for _ in range(MAX_BELOW):
        following: list[tuple[tuple[str, ...], Any]] = []
        for path, annotation in level:
            for step, inner in _steps(annotation):
                if step == word:
                    return (*path, step)
                following.append(((*path, step), inner))
        level = following
    return None


def _steps(annotation: Any) -> Iterator[tuple[str, Any]]:
    """The fields of an annotated value, each with its annotation. An object with names of the user has ``NAME``."""
    for each in _members(annotation):
        for name, field in getattr(each, "model_fields", {}).items():
            yield field.alias or name, field.annotation
        if get_origin(each) is dict and len(get_args(each)) == 2:
            yield "NAME", get_args(each)[1]


def _plain(word: str) -> str:
    return re.sub(r"[_\s-]", "", word).lower()


def is_tag(part: object) -> bool:
    """Whether a part of a path is the tag of a discriminated union, which pydantic adds and no user writes."""
    return isinstance(part, str) and part.startswith("@")


def fields_at(model: type[BaseModel], location: Location) -> tuple[str, ...]:
    """The names of the fields of the document at a location of pydantic, within a document of ``model``. None if the
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
