"""AWS's own rules for a request: required members, lengths, patterns, enumerations.

botocore has a model of each service, of which it checks only types and required members before it sends a request. AWS
checks everything. `problems` checks everything too, so that the emulators of the local cloud and the tests refuse what
AWS refuses. `service_rules` has the rules that are on AWS's pages but not in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped]  # it has no types of its own
from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape
from botocore.session import Session

from infra.local import service_rules

Check = Callable[[str, Any], Iterator[str]]
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
    found = [] if shape is None else list(_check_of(shape)("", parameters))
    return found + list(service_rules.problems(service, operation, parameters))


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
        return lambda path, value: iter(())
    if isinstance(shape, StructureShape):
        return _structure(shape)
    if isinstance(shape, ListShape):
        return _list(shape)
    if isinstance(shape, MapShape):
        return _map(shape)
    return _scalar(shape)


def _structure(shape: StructureShape) -> Check:
    members, required = shape.members, shape.required_members
    is_union = bool(getattr(shape, "is_tagged_union", False))

    def check(path: str, value: Any) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'request'}: expected a structure, got {value!r}"
            return
        for name in required:
            # botocore generates a missing idempotency token.
            if name not in value and not members[name].metadata.get("idempotencyToken"):
                yield f"{_at(path, name)}: expected a value, got none"
        if is_union and len(value) != 1:
            yield f"{path}: expected one of {', '.join(members)}, got {', '.join(value) or 'none'}"
        for name, content in value.items():
            if name not in members:
                yield f"{_at(path, name)}: expected one of {', '.join(members)}, got a member of that name"
            else:
                yield from _check_of(members[name])(_at(path, name), content)

    return check


def _list(shape: ListShape) -> Check:
    member = shape.member

    def check(path: str, value: Any) -> Iterator[str]:
        yield from _size(shape, path, value)
        for number, content in enumerate(value):
            yield from _check_of(member)(f"{path}[{number}]", content)

    return check


def _map(shape: MapShape) -> Check:
    key, content_shape = shape.key, shape.value

    def check(path: str, value: Any) -> Iterator[str]:
        yield from _size(shape, path, value)
        for name, content in value.items():
            yield from _check_of(key)(f"{path}, key {name!r}", name)
            yield from _check_of(content_shape)(_at(path, str(name)), content)

    return check


def _scalar(shape: Shape) -> Check:
    enum = list(shape.enum) if isinstance(shape, StringShape) else []
    pattern = _compiled(str(shape.metadata["pattern"])) if "pattern" in shape.metadata else None

    def check(path: str, value: Any) -> Iterator[str]:
        if shape.type_name in _SIZED:
            yield from _size(shape, path, value)
        elif shape.type_name in _NUMBERS:
            yield from _range(shape, path, value)
        if enum and value not in enum:
            yield f"{path}: expected one of {', '.join(enum)}, got {value!r}"
        if pattern is not None and not pattern.fullmatch(str(value)):
            yield f"{path}: expected a match of {pattern.pattern}, got {value!r}"

    return check


def _size(shape: Shape, path: str, value: Any) -> Iterator[str]:
    if not hasattr(value, "__len__"):  # a stream
        return
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if (low is not None and len(value) < low) or (high is not None and len(value) > high):
        yield f"{path}: expected a length of {low or 0} to {'any' if high is None else high}, got {len(value)}"


def _range(shape: Shape, path: str, value: Any) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        yield f"{path}: expected {minimum} to {maximum}, got {value}"


@cache
def _compiled(pattern: str) -> Any:
    """A compiled pattern. The models write patterns for Java, with classes such as `\\p{L}`, which `re` does not
    support, and with surrogate pairs for characters beyond `\\uFFFF` (Glue)."""
    return regex.compile(_HALVES.sub(_whole, pattern))


def _whole(halves: regex.Match[str]) -> str:
    high, low = (int(half, 16) for half in halves.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
