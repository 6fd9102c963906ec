"""What the SDK's models say about a call of AWS's API: whether it exists, what it takes, and what it answers (W22).

The input of a call is JSON. A blob is a text, which is sent as UTF-8, or ``{"base64": "..."}``. A timestamp is an
instant of RFC 3339. A value that a placeholder has put in the place of a text is written as JSON, and a text in the
place of a number is read as one, because the values of correlations are texts.

Only types, unknown members and missing ones are checked: lengths, patterns and enumerations of a model may be older
than the service.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore import serialize, xform_name
from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
from botocore.utils import EVENT_ALIASES

from chalicelib.aws import models
from chalicelib.core import masks
from chalicelib.core.errors import Problems, SluiceError, invalid
from chalicelib.core.fields import nearest
from chalicelib.core.instants import iso, parse_instant
from chalicelib.core.targets import templates

MAX_LISTED = 15  # members that a hint lists
# A text as a whole number: of a partition it may begin with zeros.
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_NUMBER = "write digits; a placeholder alone may become a number"
# For each type what is expected, and what to do.
_WORDS = {
    "string": ("a text", "put it in quotes"),
    "blob": ('a text, or {"base64": ...} for bytes', "write base64 as RFC 4648 has it"),
    "integer": ("a whole number", _NUMBER),
    "long": ("a whole number", _NUMBER),
    "float": ("a number", _NUMBER),
    "double": ("a number", _NUMBER),
    "boolean": ("true or false", "write true or false; a placeholder alone may become one of them"),
    "timestamp": ("an instant", "write it as RFC 3339 has it, such as 2026-03-02T12:00:00Z"),
    "structure": ("an object", "write names with their values"),
    "map": ("an object", "write names with their values"),
    "list": ("a list", "put it in brackets: a list of one"),
}


def operation_of(service: str, action: str) -> OperationModel:
    """The operation that a target names. Raises ``invalid`` for one that does not exist, or whose answer is a
    stream."""
    known = models.services()
    if service not in known:
        raise invalid("service", "a service of AWS by botocore's name", service, _meant_service(service, known))
    found = models.model(service)
    names = {_plain(name): name for name in found.operation_names}
    name = names.get(_plain(action))
    if name is None:
        near = nearest(action, found.operation_names)
        meant = near and (xform_name(near) if action.islower() else near)
        hint = f"did you mean {meant!r}?" if near else f"https://docs.aws.amazon.com/cli/latest/reference/{service}/"
        raise invalid("action", f"an action of {service}", action, hint)
    operation = found.operation_model(name)
    if operation.has_streaming_output or operation.has_event_stream_output or operation.has_event_stream_input:
        instead = "use a target of type lambda" if service == "lambda" else "let a function or a job make this call"
        raise invalid("action", "an action that is answered at once, without a stream", action, instead)
    return operation


def check(target: Mapping[str, Any]) -> None:
    """Raise ``invalid`` for the document of a target whose call does not exist, or does not take its input. A
    placeholder alone may become any value."""
    operation = operation_of(str(target["service"]), str(target["action"]))
    _read(operation, target["input"], filled=False)


def request_of(operation: OperationModel, given: Mapping[str, Any], token: str) -> dict[str, Any]:
    """The request with this input, whose placeholders are filled. ``token`` is its idempotency token, if it has one and
    the input does not give it. Raises ``invalid`` for a value that does not fit."""
    request: dict[str, Any] = _read(operation, given, filled=True)
    return {**dict.fromkeys(operation.idempotent_members, token), **request}


def check_written(operation: OperationModel, request: Mapping[str, Any]) -> None:
    """Raise an exception of the SDK for a request that it cannot write, before anything is sent."""
    protocol = operation.service_model.resolved_protocol
    serialize.create_serializer(protocol, include_validation=False).serialize_to_request(dict(request), operation)


def answer_of(operation: OperationModel, answer: Mapping[str, Any]) -> Any:
    """An answer as JSON, without what the model says is sensitive, and without texts whose names are those of secrets.
    None for an operation that answers nothing."""
    shape = operation.output_shape
    return _shown(shape, {name: answer[name] for name in shape.members if name in answer}) if shape else None


def _meant_service(service: str, known: tuple[str, ...]) -> str:
    """The hint for an unknown service: botocore's name for an alias, or a similar name."""
    alias = next((name for name in known if _plain(EVENT_ALIASES.get(name, "")) == _plain(service)), None)
    near = alias or nearest(service, known)
    return f"did you mean {near!r}?" if near else "name it as in boto3.client(...), such as sns or stepfunctions"


def _plain(name: str) -> str:
    """A name without its case, underscores and hyphens: ``put_parameter`` is PutParameter."""
    return name.replace("_", "").replace("-", "").lower()


def _read(operation: OperationModel, given: Mapping[str, Any], filled: bool) -> Any:
    form, shape = _Form(filled), operation.input_shape
    if shape is None:
        if given:
            raise invalid("input", f"no input: {operation.name} takes none", sorted(given), "leave it out")
        return {}
    read = form.structure(shape, given, "input", operation.idempotent_members)
    form.problems.end()
    return read


class _Form:
    """Turns the input of a call into what botocore takes, and collects what does not fit. ``filled``: placeholders have
    their values, which no error shows."""

    def __init__(self, filled: bool) -> None:
        self.problems, self._filled = Problems(), filled

    def read(self, shape: Shape, value: Any, field: str) -> Any:
        if not self._filled and templates.is_placeholder(value):
            return value
        if getattr(shape, "is_document_type", False) or shape.serialization.get("jsonvalue"):
            return value
        match shape:
            case StructureShape():
                return self.structure(shape, value, field)
            case ListShape() if isinstance(value, list | tuple):
                return [self.read(shape.member, each, f"{field}.{number}") for number, each in enumerate(value)]
            case MapShape() if isinstance(value, Mapping):
                return {str(key): self.read(shape.value, each, f"{field}.{key}") for key, each in value.items()}
            case ListShape() | MapShape():
                return self._wrong(shape, value, field)
        try:
            return _SCALARS[shape.type_name](value, self._filled)
        except (SluiceError, ValueError):
            has_text = not self._filled and isinstance(value, str) and templates.has_placeholder(value)
            is_text = shape.type_name in ("timestamp", "blob", "string")
            return value if has_text and is_text else self._wrong(shape, value, field)

    def structure(self, shape: StructureShape, value: Any, field: str, filled_in: Any = ()) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong(shape, value, field)
        unknown = {name: nearest(name, shape.members) for name in value if name not in shape.members}
        for name in shape.required_members:
            if name not in {*value, *filled_in, *unknown.values()}:
                missing = "expected a value, got nothing"
                self.problems.add(SluiceError("invalid", missing, f"{field}.{name}", "add the field"))
        for name, near in unknown.items():
            self.problems.add(_unknown(name, near, shape, field))
        if getattr(shape, "is_tagged_union", False) and len(value) != 1:
            expected = f"exactly one of {', '.join(shape.members)}"
            self.problems.add(invalid(field, expected, sorted(value), "leave the others out"))
        known = {name: each for name, each in value.items() if name in shape.members}
        read = {name: self.read(shape.members[name], each, f"{field}.{name}") for name, each in known.items()}
        for name, each in read.items():
            if shape.members[name].serialization.get("location") == "uri" and _shortens(each):
                # A shorter path is another call: without the key, DeleteObject is DeleteBucket.
                expected = "expected a text that is a part of the call's path, got an empty one, or one with . or .."
                hint = "name what the call is about; a placeholder must have a value"
                self.problems.add(SluiceError("invalid", expected, f"{field}.{name}", hint))
        return read

    def _wrong(self, shape: Shape, value: Any, field: str) -> None:
        got = _kind(value) if self._filled else repr(value)
        got = got if len(got) <= 120 else f"{got[:117]}..."
        expected, hint = _WORDS[shape.type_name]
        self.problems.add(SluiceError("invalid", f"expected {expected}, got {got}", field, hint))


def _shortens(value: Any) -> bool:
    """Whether a value would leave out a part of the path that it is put into, or lead back in it."""
    return isinstance(value, str) and (not value.strip("/") or any(part in (".", "..") for part in value.split("/")))


def _unknown(name: str, near: str | None, shape: StructureShape, field: str) -> SluiceError:
    members = list(shape.members)
    listed = ", ".join(members[:MAX_LISTED]) + (", ..." if len(members) > MAX_LISTED else "")
    hint = f"did you mean {near!r}?" if near else f"remove it; the members are {listed or 'none'}"
    return SluiceError("unknown_field", f"unknown field {name!r}", f"{field}.{name}", hint)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "another text"
        case Mapping():
            return "an object"
    return "a list"


def _text(value: Any, filled: bool) -> str:
    """Raises ValueError for what is no text, and for a part of a character, which UTF-8 does not have."""
    if isinstance(value, str):
        value.encode()
        return value
    if filled and value is not None:
        return json.dumps(value, sort_keys=True)
    raise ValueError(value)


def _blob(value: Any, filled: bool) -> bytes:
    if isinstance(value, Mapping) and list(value) == ["base64"]:
        return base64.b64decode(value["base64"] if isinstance(value["base64"], str) else "?", validate=True)
    return _text(value, filled).encode()


def _number(whole: bool) -> Callable[[Any, bool], Any]:
    def read(value: Any, filled: bool) -> Any:
        given = _digits(value) if filled and isinstance(value, str) else value
        if isinstance(given, bool) or not isinstance(given, int if whole else int | float):
            raise ValueError(given)
        return given

    return read


def _digits(text: str) -> int | float | None:
    """The number that a text is; None if it is none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    found = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return found if math.isfinite(found) else None


def _boolean(value: Any, filled: bool) -> bool:
    given = _BOOLEANS.get(value) if filled and isinstance(value, str) else value
    if not isinstance(given, bool):
        raise ValueError(given)
    return given


def _timestamp(value: Any, filled: bool) -> datetime:
    del filled
    if not isinstance(value, str):
        raise ValueError(value)
    return datetime.fromtimestamp(parse_instant(value) / 1000, UTC)


_SCALARS: Mapping[str, Callable[[Any, bool], Any]] = {
    "string": _text,
    "blob": _blob,
    "integer": _number(whole=True),
    "long": _number(whole=True),
    "float": _number(whole=False),
    "double": _number(whole=False),
    "boolean": _boolean,
    "timestamp": _timestamp,
}


def _shown(shape: Shape, value: Any) -> Any:
    """A part of an answer as JSON: instants as texts, bytes as base64, and nothing that may be a secret."""
    match shape:
        case StructureShape() if isinstance(value, Mapping) and not getattr(shape, "is_document_type", False):
            known = ((name, shape.members[name], each) for name, each in value.items() if name in shape.members)
            return {name: _shown(of, each) for name, of, each in known if not _hides(name, of, each)}
        case ListShape() if isinstance(value, list):
            return [] if _is_sensitive(shape.member) else [_shown(shape.member, each) for each in value]
        case MapShape() if isinstance(value, Mapping):
            shown = ((key, each) for key, each in value.items() if not _hides(key, shape.value, each))
            return {key: _shown(shape.value, each) for key, each in shown}
    if isinstance(value, datetime):
        return iso(round(value.timestamp() * 1000))
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else value


def _hides(name: str, shape: Shape, value: Any) -> bool:
    """Whether a part of an answer is left out: AWS marks it, or its name is that of a secret and its value is text. AWS
    does not mark all credentials, such as the session token of STS. The ARN of a secret is none."""
    texts = value if isinstance(value, list) else [value]
    return _is_sensitive(shape) or any(isinstance(each, str) and masks.is_secret(name, each) for each in texts)


def _is_sensitive(shape: Shape) -> bool:
    return bool(shape.metadata.get("sensitive"))
