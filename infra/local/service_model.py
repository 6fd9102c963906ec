"""AWS's own rules for a request: required members, lengths, patterns, enumerations.

botocore has a model of each service, of which it checks only types and required members before it sends a request. AWS
checks everything. `problems` checks everything too, so that the emulators of the local cloud and the tests refuse what
AWS refuses. `service_rules` has the rules that are on AWS's pages but not in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped]  # it has no types of its own
from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape
from botocore.session import Session

from infra.local import service_rules

# A member below a checked value, such as `.tags[0].name`, and what is wrong with it.
Problem = tuple[str, str]
Check = Callable[[Any], Sequence[Problem]]
_SIZED = ("string", "blob", "list", "map")
# Shapes of DynamoDB that have no rules. They are not checked, because a request has many of them.
_FREE = ("AttributeValue",)
_HALVES = regex.compile(r"\\u(D[89AB]..)\\u(D[C-F]..)")
_NUMBERS = ("integer", "long", "float", "double")


def problems(service: str, operation: str, parameters: Mapping[str, Any]) -> list[str]:
    """The reasons for which AWS would refuse a request, each as `member: expected ..., got ...`; empty if it is valid.

    `service` is botocore's name (`emr-serverless`), `operation` the API's (`StartJobRun`).
    """
    shape = operation_model(service, operation).input_shape
    found = () if shape is None else _check_of(shape)(parameters)
    return [f"{where.removeprefix('.') or 'request'}: {what}" for where, what in found] + list(
        service_rules.problems(service, operation, parameters)
    )


@cache
def operation_model(service: str, operation: str) -> OperationModel:
    return _session().get_service_model(service).operation_model(operation)


@cache
def _session() -> Session:
    return Session()


_CHECKS: dict[int, tuple[Shape, Check]] = {}


def _check_of(shape: Shape) -> Check:
    """The check of a shape, cached. Shapes are recursive, so members are resolved when a value is checked."""
    known = _CHECKS.get(id(shape))
    if known is None:
        known = _CHECKS[id(shape)] = (shape, _make(shape))
    return known[1]


def _make(shape: Shape) -> Check:
    if shape.name in _FREE:
        return _nothing
    if isinstance(shape, StructureShape):
        return _structure(shape)
    if isinstance(shape, ListShape):
        return _list(shape)
    if isinstance(shape, MapShape):
        return _map(shape)
    return _scalar(shape)


def _nothing(value: Any) -> Sequence[Problem]:
    return ()


def _below(member: str, found: Sequence[Problem]) -> list[Problem]:
    """The problems of a member, as those of the value that contains it."""
    return [(member + where, what) for where, what in found]


def _structure(shape: StructureShape) -> Check:
    members = shape.members
    # botocore generates a missing idempotency token.
    required = [name for name in shape.required_members if not members[name].metadata.get("idempotencyToken")]
    is_union = bool(getattr(shape, "is_tagged_union", False))
    named = ", ".join(members)
    checks: dict[str, Check] = {}  # of the members that were met; a request has each of them many times

    def check(value: Any) -> Sequence[Problem]:
        if not isinstance(value, dict | Mapping):  # the instance check of `dict` alone is fast
            return [("", f"expected a structure, got {value!r}")]
        found = [(f".{name}", "expected a value, got none") for name in required if name not in value]
        if is_union and len(value) != 1:
            found.append(("", f"expected one of {named}, got {', '.join(value) or 'none'}"))
        for name, content in value.items():
            each = checks.get(name)
            if each is None and name in members:
                each = checks[name] = _check_of(members[name])
            if each is None:
                found.append((f".{name}", f"expected one of {named}, got a member of that name"))
            elif each is not _nothing and (wrong := each(content)):
                found += _below(f".{name}", wrong)
        return found

    return check


def _list(shape: ListShape) -> Check:
    member = shape.member

    def check(value: Any) -> Sequence[Problem]:
        found = _size(shape, value)
        each = _check_of(member)
        for number, content in enumerate(value if each is not _nothing else ()):
            if wrong := each(content):
                found = [*found, *_below(f"[{number}]", wrong)]
        return found

    return check


def _map(shape: MapShape) -> Check:
    key, content_shape = shape.key, shape.value

    def check(value: Any) -> Sequence[Problem]:
        found = _size(shape, value)
        of_key, of_content = _check_of(key), _check_of(content_shape)
        if of_key is _nothing and of_content is _nothing:
            return found
        for name, content in value.items():
            if wrong := of_key(name):
                found = [*found, *_below(f", key {name!r}", wrong)]
            if wrong := of_content(content):
                found = [*found, *_below(f".{name}", wrong)]
        return found

    return check


def _scalar(shape: Shape) -> Check:
    enum = list(shape.enum) if isinstance(shape, StringShape) else []
    pattern = _compiled(str(shape.metadata["pattern"])) if "pattern" in shape.metadata else None
    bounded = "min" in shape.metadata or "max" in shape.metadata
    limit = _size if shape.type_name in _SIZED else _range if shape.type_name in _NUMBERS else None
    if limit is None or not bounded:
        if not enum and pattern is None:
            return _nothing
        limit = None

    def check(value: Any) -> Sequence[Problem]:
        found = limit(shape, value) if limit is not None else ()
        if enum and value not in enum:
            found = [*found, ("", f"expected one of {', '.join(enum)}, got {value!r}")]
        if pattern is not None and not pattern.fullmatch(str(value)):
            found = [*found, ("", f"expected a match of {pattern.pattern}, got {value!r}")]
        return found

    return check


def _size(shape: Shape, value: Any) -> Sequence[Problem]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if (low is None and high is None) or not hasattr(value, "__len__"):  # a stream has no length
        return ()
    if (low is None or len(value) >= low) and (high is None or len(value) <= high):
        return ()
    return [("", f"expected a length of {low or 0} to {'any' if high is None else high}, got {len(value)}")]


def _range(shape: Shape, value: Any) -> Sequence[Problem]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if (low is None or value >= low) and (high is None or value <= high):
        return ()
    return [("", f"expected {low} to {high}, got {value}")]


@cache
def _compiled(pattern: str) -> Any:
    """A compiled pattern. The models write patterns for Java, with classes such as `\\p{L}`, which `re` does not
    support, and with surrogate pairs for characters beyond `\\uFFFF` (Glue)."""
    return regex.compile(_HALVES.sub(_whole, pattern))


def _whole(halves: regex.Match[str]) -> str:
    high, low = (int(half, 16) for half in halves.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"
