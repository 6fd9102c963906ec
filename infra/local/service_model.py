"""AWS's own rules for a request: what is required, how long, of which pattern, one of which words.

botocore carries a model of each service and checks only part of it before it sends a request: types and required
members. AWS checks the rest. `problems` checks all of it, so that the emulators of the local cloud and the tests refuse
what AWS refuses. Rules that AWS states on its pages and not in the model are in `service_rules`.
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
# Of DynamoDB, without rules of their own, and many to a request.
_FREE = ("AttributeValue",)
_HALVES = regex.compile(r"\\u(D[89AB]..)\\u(D[C-F]..)")
_NUMBERS = ("integer", "long", "float", "double")


def problems(service: str, operation: str, parameters: Mapping[str, Any]) -> list[str]:
    """What AWS would refuse a request for, each as `member: expected ..., got ...`; nothing if it would take it.

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
    """The check of a shape, made once. Shapes contain themselves, so members are looked up when a value is checked."""
    known = _CHECKS.get(id(shape))
    if known is None:
        known = _CHECKS[id(shape)] = (shape, _make(shape))
    return known[1]


def _make(shape: Shape) -> Check:
    if shape.name in _FREE:
        return lambda place, value: iter(())
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

    def check(place: str, value: Any) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{place or 'request'}: expected a structure, got {value!r}"
            return
        for name in required:
            # botocore makes up an idempotency token that is not given.
            if name not in value and not members[name].metadata.get("idempotencyToken"):
                yield f"{_at(place, name)}: expected a value, got none"
        if is_union and len(value) != 1:
            yield f"{place}: expected one of {', '.join(members)}, got {', '.join(value) or 'none'}"
        for name, content in value.items():
            if name not in members:
                yield f"{_at(place, name)}: expected one of {', '.join(members)}, got a member of that name"
            else:
                yield from _check_of(members[name])(_at(place, name), content)

    return check


def _list(shape: ListShape) -> Check:
    member = shape.member

    def check(place: str, value: Any) -> Iterator[str]:
        yield from _size(shape, place, value)
        for number, content in enumerate(value):
            yield from _check_of(member)(f"{place}[{number}]", content)

    return check


def _map(shape: MapShape) -> Check:
    key, content_shape = shape.key, shape.value

    def check(place: str, value: Any) -> Iterator[str]:
        yield from _size(shape, place, value)
        for name, content in value.items():
            yield from _check_of(key)(f"{place}, key {name!r}", name)
            yield from _check_of(content_shape)(_at(place, str(name)), content)

    return check


def _scalar(shape: Shape) -> Check:
    enum = list(shape.enum) if isinstance(shape, StringShape) else []
    pattern = _compiled(str(shape.metadata["pattern"])) if "pattern" in shape.metadata else None

    def check(place: str, value: Any) -> Iterator[str]:
        if shape.type_name in _SIZED:
            yield from _size(shape, place, value)
        elif shape.type_name in _NUMBERS:
            yield from _range(shape, place, value)
        if enum and value not in enum:
            yield f"{place}: expected one of {', '.join(enum)}, got {value!r}"
        if pattern is not None and not pattern.fullmatch(str(value)):
            yield f"{place}: expected a match of {pattern.pattern}, got {value!r}"

    return check


def _size(shape: Shape, place: str, value: Any) -> Iterator[str]:
    if not hasattr(value, "__len__"):  # a stream
        return
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and len(value) < least) or (most is not None and len(value) > most):
        yield f"{place}: expected a length of {least or 0} to {'any' if most is None else most}, got {len(value)}"


def _range(shape: Shape, place: str, value: Any) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and value < least) or (most is not None and value > most):
        yield f"{place}: expected {least} to {most}, got {value}"


@cache
def _compiled(pattern: str) -> Any:
    """The models write patterns as Java does, with classes such as `\\p{L}`, which `re` does not know, and with two
    halves in the place of a character beyond `\\uFFFF` (Glue)."""
    return regex.compile(_HALVES.sub(_whole, pattern))


def _whole(halves: regex.Match[str]) -> str:
    high, low = (int(half, 16) for half in halves.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
