"""The base of every document that users write: strict fields, names, durations, tagged unions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationInfo,
    model_serializer,
)
from pydantic.json_schema import SkipJsonSchema

from chalicelib.core import instants
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.text import refuse_controls

T = TypeVar("T")

_SHORT = r"[a-z0-9][a-z0-9_-]{0,62}"
_NAME = re.compile(_SHORT)
_REFERENCE = re.compile(rf"{_SHORT}(\.{_SHORT}){{0,2}}")
_OF_MESSAGE = re.compile(rf"{_SHORT}(\.{_SHORT})\.~({_SHORT})?")
_OF_DAG = re.compile(rf"{_SHORT}(\.{_SHORT}){{2}}~([0-9a-f]{{8}}(~{_SHORT})?)?")


class Document(BaseModel):
    """An immutable document. An unknown field is an error, so that Sluice does not ignore a typing mistake."""

    # Validators are built at first use: most Lambdas need few of them, and to build all would delay a cold start.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Sparse(Document):
    """A document that leaves out some of its fields while they have their defaults. So a document without them is
    stored and shown as it was before they were added."""

    omitted: ClassVar[Collection[str]] = ()

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        known, fields = type(self).model_fields, handler(self)
        defaults = {name: known[name].get_default(call_default_factory=True) for name in self.omitted}
        unused = {name for name, default in defaults.items() if getattr(self, name) == default}
        unused |= {known[name].alias or name for name in unused}
        return {name: value for name, value in fields.items() if name not in unused}


# The context in which a document is validated that was valid when it was stored.
STORED = {"stored": True}


# The context in which a document is validated that a user sends.
SENT = {"sent": True}


def check_zone(name: str, info: ValidationInfo, field: str = "zone") -> None:
    """Raises ``invalid`` for an unknown zone, but not in a stored document: the present rules may no longer have it."""
    if info.context != STORED:
        instants.zone(name, field)


def check_name(name: str, field: str | None = None) -> str:
    """Returns a short name. Raises ``invalid`` for any other text."""
    if not _NAME.fullmatch(name):
        hint = "lower-case letters, digits, '-' and '_', at most 63, beginning with a letter or digit"
        raise invalid(field or "", "a name", name, hint)
    return name


def check_reference(name: str, field: str | None = None) -> str:
    """Returns a short or a full name. Raises ``invalid`` for any other text."""
    if not _REFERENCE.fullmatch(name):
        raise invalid(field or "", "a name, or a full name with dots such as namespace.app.name", name)
    return name


def check_stored(name: str, field: str | None = None) -> str:
    """Returns a name as `check_reference` takes it, or the full name of a schedule of a message or a DAG."""
    own = _OF_MESSAGE.fullmatch(name) or _OF_DAG.fullmatch(name)
    return name if own else check_reference(name, field)


def _known_zone(name: str, info: ValidationInfo) -> str:
    check_zone(name, info, "")
    return name


def _once_each(given: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(given))


def _check_duration(text: str) -> str:
    duration(text, "")
    return text


def _refuse_number(given: object) -> object:
    """Return the value, but raise ``invalid`` for a number: it has no unit."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        hint = f"a number has no unit: write {given}s for seconds, or {given}m for minutes"
        raise invalid("", "a duration such as 90s, 1h30m, 2d or PT5M", given, hint)
    return given


Name = Annotated[str, AfterValidator(check_name)]


StoredReference = Annotated[str, AfterValidator(check_stored)]  # also the names that only messages and DAGs have


Reference = Annotated[str, AfterValidator(check_reference)]


Zone = Annotated[str, AfterValidator(_known_zone)]


ONCE_EACH = AfterValidator(_once_each)  # of a list; a length stands before this


Duration = Annotated[str, BeforeValidator(_refuse_number, json_schema_input_type=str), AfterValidator(_check_duration)]


def spanning(least: Millis, most: Millis, expected: str, hint: str | None = None) -> AfterValidator:
    """Refuses a duration that is not from ``least`` to ``most`` ms: ``expected`` names both."""

    def check_span(text: str) -> str:
        if not least <= duration(text, "") <= most:
            raise invalid("", expected, text, hint)
        return text

    return AfterValidator(check_span)


def _check_text(text: object, info: ValidationInfo) -> object:
    if info.context == SENT and isinstance(text, str):
        refuse_controls(text, "text without control characters")
    return text


def _check_line(text: object, info: ValidationInfo) -> object:
    if info.context == SENT and isinstance(text, str):
        refuse_controls(text, "one line of text without control characters", "")
    return text


# Texts that people read, on a terminal, too. A stored document keeps what an earlier release accepted.
LINES = BeforeValidator(_check_text)  # a pattern or a length stands before this, so that errors name characters
ONE_LINE = BeforeValidator(_check_line)  # the same


Line = Annotated[str, ONE_LINE]


Tags = Annotated[dict[Line, Line], Field(max_length=50)]


Properties = dict[str, Any]


# The type of a custom event, or of a CloudEvent that Sluice sends: it can be posted as one.
EventType = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]


def one_of(tag: Callable[[Any], str], expected: str) -> Discriminator:
    """A discriminator by ``tag`` for a union without a field ``type``. Errors then concern the member that the user
    meant."""
    return Discriminator(tag, custom_error_type="unknown_type", custom_error_message=f"expected {expected}")


def by_type(kinds: tuple[str, ...]) -> Discriminator:
    """A discriminator by the field ``type``. Tags begin with ``@``, so that error paths can leave them out."""

    def tag(value: Any) -> str:
        kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
        return f"@{kind}"

    return one_of(tag, f"an object whose type is one of {', '.join(kinds)}")


_UNLISTED: Any = SkipJsonSchema  # typed as a generic alias, though it is a class
Internal = Annotated[T, SkipJsonSchema()]  # the type of a field that only stored documents have


def types_of(document: type[Document]) -> tuple[str, ...]:
    """The values that the field ``type`` of a document may have."""
    return tuple(map(str, get_args(document.model_fields["type"].annotation)))


def tagged(
    documents: Sequence[type[Document]],
    named: Sequence[type[Document]] | None = None,
    hidden: Sequence[type[Document]] = (),
) -> Any:
    """The union of these documents, discriminated by ``type``. The JSON schema has their order; an error lists the
    types in the order of ``named``, by default the same. A document with several types is a member for each. Those that
    are ``hidden`` are in neither: only stored documents have them."""
    members: list[Any] = [Annotated[document, Tag(f"@{kind}")] for document in documents for kind in types_of(document)]
    members += [Annotated[each, Tag(f"@{kind}"), _UNLISTED()] for each in hidden for kind in types_of(each)]
    order = documents if named is None else named
    return Annotated[reduce(or_, members), by_type(tuple(kind for document in order for kind in types_of(document)))]


class Described(Document):
    """The descriptive fields of a definition (L18); they do not affect its behaviour."""

    description: Annotated[str, Field(max_length=1_000), LINES] = ""
    tags: Tags = Field(default_factory=dict)
    owner: Annotated[str, Field(max_length=200), ONE_LINE] = ""


DESCRIPTIVE = set(Described.model_fields)
