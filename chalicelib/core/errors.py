"""The errors that a caller of Sluice can get, each with a stable code.

The API answers with ``{"error": {"code", "message", "field", "hint"}}``; the CLI prints the same texts. A message names
the expected and the received value; the hint names the correction. If a request has several problems, ``problems``
lists all of them in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any

from chalicelib.core.fields import Location, elsewhere, fields_at, is_tag, nearest
from chalicelib.core.why import Mention, Sees, Why, plain

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MAX_LISTED = 40  # fields of an object that a hint lists
MAX_COMPARED = 300  # names among which that which was meant is searched

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
    "over_quota": 409,
    "lease_lost": 409,
    "changed_meanwhile": 412,
    "too_large": 413,
    "throttled": 429,
    "internal": 500,
    "unavailable": 503,
}

_CHECK = "check the names in the request; what is hidden belongs to a namespace that you may not read"


class SluiceError(ValueError):
    """An error that the caller can correct. When Sluice raises it, it has stored nothing.

    ``problems`` are all problems of the request if there are several. The error itself is the first of them, and its
    message ends with the number of the others.

    Where the message or the hint has a name that the request does not have, it is a `Why` with that name, whose readers
    alone may see it.
    """

    def __init__(
        self,
        code: str,
        message: str | Why,
        field: str | None = None,
        hint: str | Why | None = None,
        problems: Sequence[SluiceError] = (),
    ) -> None:
        self.said = Why.of(code, message)
        self.hinted = None if hint is None else Why.of(code, hint)
        self.code, self.message, self.field = code, self.said.text, field
        self.hint = None if self.hinted is None else self.hinted.text
        self.problems = tuple(problems)
        super().__init__(self.message)

    @property
    def status(self) -> int:
        return STATUS[self.code]

    @property
    def each(self) -> tuple[SluiceError, ...]:
        """Every problem by itself: the error alone, or all its problems."""
        return self.problems or (self,)

    def to_dict(self) -> dict[str, Any]:
        """The body of the answer. It has ``problems`` only if there are several."""
        several = {"problems": [problem._fields() for problem in self.problems]} if self.problems else {}
        return {"error": {**self._fields(), **several}}

    def _fields(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "field": self.field, "hint": self.hint}

    def renamed(self, field_of: Callable[[str | None], str | None]) -> SluiceError:
        """The same error, with the field of each problem replaced."""
        problems = [problem.renamed(field_of) for problem in self.problems]
        return SluiceError(self.code, self.said, field_of(self.field), self.hinted, problems)

    def concealing(self, sees: Sees) -> SluiceError:
        """The same error without the names that ``sees`` refuses."""
        problems = [problem.concealing(sees) for problem in self.problems]
        hint = None if self.hinted is None else self.hinted.seen(sees)
        if self.hinted is not None and any(not sees(name) for name in self.hinted.named("other")):
            hint = _CHECK  # it would ask to use what the reader does not see
        return SluiceError(self.code, self.said.seen(sees), self.field, hint, problems)

    def under(self, prefix: str) -> SluiceError:
        """The same error, with its field under ``prefix``, the path of the part within a larger document."""
        return self.renamed(lambda field: f"{prefix}.{field}" if field else prefix)


def several(problems: Sequence[SluiceError]) -> SluiceError:
    """One error for all these problems: unknown fields first, because they explain what is missing. ``problems`` has at
    least one; equal ones count once."""
    every = {(each.code, each.message, each.field): each for problem in problems for each in problem.each}
    first, *others = sorted(every.values(), key=lambda problem: problem.code != "unknown_field")
    if not others:
        return first
    return SluiceError(
        first.code,
        first.said.then(f" (and {len(others)} more)"),
        first.field,
        first.hinted,
        (first, *others),
    )


class Problems:
    """Collects the problems that checks raise, so that one answer has all of them."""

    def __init__(self) -> None:
        self._found: list[SluiceError] = []

    @contextmanager
    def caught(self, prefix: str = "") -> Iterator[None]:
        """Keep the error that the block raises, with its field under ``prefix``."""
        try:
            yield
        except SluiceError as error:
            self._found.append(error.under(prefix) if prefix else error)

    def add(self, error: SluiceError) -> None:
        self._found.append(error)

    def __len__(self) -> int:
        return len(self._found)

    def end(self) -> None:
        """Raise one error for all problems that were caught; nothing without any."""
        if self._found:
            raise several(self._found)


def invalid(field: str, expected: str, got: object, hint: str | None = None) -> SluiceError:
    """An error ``expected <expected>, got <got>`` for the path ``field``; long values are cut."""
    return SluiceError("invalid", f"expected {expected}, got {_short(got)}", field, hint)


def meant(word: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The hint for an unknown word: the known one that was probably meant, or else ``otherwise``."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that was probably meant; empty if none is similar. To compare two names takes 20 microseconds, so
    of many names only some of about the same length are compared."""
    length = len(name)
    alike = (each for each in known if abs(len(each) - length) <= max(3, length // 3))
    return get_close_matches(name, list(islice(alike, MAX_COMPARED)), n=1)


def not_found(kind: str, name: str, hint: str | Why | None = None, known: Iterable[str] = ()) -> SluiceError:
    """An error for a name that nothing has. ``known`` are the names that exist: the hint has the nearest of them."""
    return SluiceError("not_found", f"no {kind} named {name!r}", None, _meant(name, known) or hint)


def unknown_reference(field: str, kind: str, name: str, known: Iterable[str] = ()) -> SluiceError:
    hint = _meant(name, known) or f"create the {kind} first, or correct the name"
    message = plain(f"expected an existing {kind}, got ", Mention(repr(name), "reference", name))
    return SluiceError("unknown_reference", message, field, hint)


def _meant(name: str, known: Iterable[str]) -> Why | None:
    """The hint with the known name that was probably meant; None if none is similar."""
    near = _nearest(name, known)
    return plain("did you mean ", Mention(repr(near[0]), "other", near[0]), "?") if near else None


def bad_cursor() -> SluiceError:
    """An error for a cursor that no list has returned."""
    hint = "leave the cursor out to begin at the start"
    return SluiceError("bad_cursor", "expected a cursor that this list returned", "cursor", hint)


def owned_by_dag(name: str, dag: str) -> SluiceError:
    """An error for a change of a schedule that belongs to a DAG (both short names, as people know them)."""
    hint = f"change the DAG: PUT .../dags/{dag}, or POST .../dags/{dag}/enable, disable or run"
    message = f"schedule {name} belongs to the DAG {dag} and cannot be changed alone"
    return SluiceError("conflict", message, "name", hint)


def too_costly(field: str, what: str, why: object, hint: str) -> SluiceError:
    """An error for a request that takes more computation than one may. ``why`` says how much."""
    return SluiceError("too_large", f"expected {what} that takes less computation, got one of {why}", field, hint)


def changed_meanwhile(what: str) -> SluiceError:
    hint = "read it again, check what changed, and send the request with the new ETag"
    return SluiceError("changed_meanwhile", f"{what} was changed by another request meanwhile", None, hint)


def from_validation(error: ValidationError, model: type[BaseModel] | None = None) -> SluiceError:
    """The error for a failed validation, with every fault of pydantic as a problem. With ``model``, the model that was
    validated, the hint for an unknown field names the field that was probably meant."""
    faults: list[dict[str, Any]] = [dict(fault) for fault in error.errors(include_url=False)]
    found = list(_problems(faults, model))
    meant = {problem.field: suggestion for problem, suggestion in found if suggestion is not None}
    replaced = {_sibling(field, name) for field, name in meant.items()}
    lacking = {".".join(_path(_location(fault))) for fault in faults if fault["type"] == "missing"}
    kept = [problem for problem, _ in found if problem.field not in replaced & lacking]
    return several(kept)


def _sibling(field: str | None, name: str) -> str:
    return ".".join([*(field or "").split(".")[:-1], name])


MAX_GUESSED = 100  # unknown fields for which a known one is searched, a millisecond each


def _problems(
    faults: Sequence[Mapping[str, Any]], model: type[BaseModel] | None
) -> Iterator[tuple[SluiceError, str | None]]:
    """The problems that the faults report, each with the field that was probably meant by an unknown field."""
    named: set[str] = set()
    guessed = 0
    at_place: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for fault in faults:
        if _says_what_is_expected(fault):
            at_place.setdefault(tuple(_path(_location(fault))), []).append(fault)
    for fault in faults:
        path = _path(_location(fault))
        field = ".".join(path)
        if _follows_from_others(fault):
            continue
        carried = (fault.get("ctx") or {}).get("error")
        if isinstance(carried, SluiceError):
            for each in carried.each:
                inner = ".".join(part for part in (field, each.field or "") if part)
                yield SluiceError(each.code, each.said, inner or None, each.hinted), None
            continue
        if fault["type"] == "extra_forbidden":
            guessed += 1
            yield _unknown_field(fault, field, model if guessed <= MAX_GUESSED else None)
            continue
        if fault["type"] == "missing":
            yield SluiceError("invalid", "expected a value, got nothing", field, "add the field"), None
            continue
        if field in named:
            continue
        named.add(field)
        expected = _joined([_expected(other) for other in at_place[tuple(path)]])
        message = f"{expected}, got {_short(fault.get('input'))}"
        yield SluiceError("invalid", message, field or None, _hint(fault)), None


def _unknown_field(
    fault: Mapping[str, Any], field: str, model: type[BaseModel] | None
) -> tuple[SluiceError, str | None]:
    name = str(fault["loc"][-1])
    known = fields_at(model, fault["loc"][:-1]) if model is not None else ()
    near = nearest(name, known)
    hint = "remove it, or check its spelling"
    moved = elsewhere(model, fault["loc"][:-1], name) if model is not None and near is None else None
    if near is not None or moved is not None:
        hint = f"did you mean {near or moved!r}?"
    elif 0 < len(known) <= MAX_LISTED:
        hint = f"remove it; the fields are {', '.join(known)}"
    return SluiceError("unknown_field", f"unknown field {name!r}", field, hint), near


def _follows_from_others(fault: Mapping[str, Any]) -> bool:
    """Whether a list is called too short only because pydantic left out its invalid items."""
    given = fault.get("input")
    return fault["type"] == "too_short" and isinstance(given, list) and len(given) >= fault["ctx"]["min_length"]


def _says_what_is_expected(fault: Mapping[str, Any]) -> bool:
    return fault["type"] != "missing" and not isinstance((fault.get("ctx") or {}).get("error"), SluiceError)


def _joined(expected: Sequence[str]) -> str:
    """``expected text or an object`` from the expectations of each member of a union."""
    first, *others = dict.fromkeys(expected)
    return " or ".join([first, *(other.removeprefix("expected ") for other in others)])


# For each type of fault of pydantic the expected value, in the terms of JSON, and what to do about the given one. The
# hint is empty where it depends on the given value (`_hint`).
_FAULTS = {
    "string_type": ("text", ""),
    "int_type": ("a whole number", "write digits only, such as 3"),
    "int_parsing": ("a whole number", "write digits only, such as 3"),
    "int_from_float": ("a whole number", "leave out the fraction"),
    "float_type": ("a number", "write a number, such as 1.5"),
    "float_parsing": ("a number", "write a number, such as 1.5"),
    "bool_type": ("true or false", "write true or false"),
    "bool_parsing": ("true or false", "write true or false"),
    "dict_type": ("an object", ""),
    "model_type": ("an object", ""),
    "model_attributes_type": ("an object", ""),
    "list_type": ("a list", ""),
    "tuple_type": ("a list", ""),
    "string_pattern_mismatch": ("text that matches {pattern}", ""),
    "literal_error": ("{expected}", ""),
    "too_short": ("at least {min_length} item{s}", "add an item"),
    "too_long": ("at most {max_length} items", "leave out some of them"),
    "string_too_long": ("at most {max_length} characters", "shorten it"),
    "string_too_short": ("at least {min_length} characters", "lengthen it"),
    "greater_than_equal": ("greater than or equal to {ge}", "write {ge} or more"),
    "less_than_equal": ("less than or equal to {le}", "write {le} or less"),
}


def _expected(fault: Mapping[str, Any]) -> str:
    expected, _ = _FAULTS.get(fault["type"], ("", ""))
    if not expected:
        message: str = fault["msg"].removeprefix("Value error, ")
        return message[:1].lower() + message[1:]
    context = fault.get("ctx") or {}
    return "expected " + expected.format(**context, s="" if context.get("min_length") == 1 else "s")


def _hint(fault: Mapping[str, Any]) -> str | None:
    """The hint for a value of the wrong kind; None if no rule has one."""
    given = fault.get("input")
    match fault["type"]:
        case "literal_error" if isinstance(given, str):
            near = _did_you_mean(given, re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
            return near or "write one of these words"
        case "unknown_type":
            kinds = fault["msg"].partition("one of ")[2].split(", ")
            return _type_hint(given, kinds) if kinds != [""] else None
        case "string_type" if isinstance(given, int | float):
            return "put it in quotes"
        case "list_type" | "tuple_type" if isinstance(given, str | int | float | dict):
            return "put it in brackets: a list of one" if not isinstance(given, dict) else "begin each item with '- '"
        case "dict_type" | "model_type" | "model_attributes_type" if isinstance(given, list):
            return "remove the '- ': write names with their values"
    _, hint = _FAULTS.get(fault["type"], ("", ""))
    return hint.format(**(fault.get("ctx") or {})) or None


def _type_hint(given: object, kinds: Sequence[str]) -> str | None:
    if isinstance(given, str):
        return "write an object: {type: time, expression: ...}" if "time" in kinds else None
    if not isinstance(given, dict):
        return None
    kind = given.get("type")
    if kind is None:
        return f"add its type, such as type: {kinds[0]}"
    return _did_you_mean(kind, kinds) if isinstance(kind, str) else None


def _did_you_mean(word: str, known: Sequence[str]) -> str | None:
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near is not None else None


_MEMBER = re.compile(r"str|int|float|bool|(dict|list|tuple)\[.*\]")


def _location(fault: Mapping[str, Any]) -> Location:
    """The location of a fault, without the name of a member of a plain union, which pydantic adds at its end."""
    location: Location = fault["loc"]
    is_kind = re.search(r"_(type|parsing|from_float)$", fault["type"]) is not None and fault["type"] != "unknown_type"
    return location[:-1] if is_kind and len(location) > 1 and _MEMBER.fullmatch(str(location[-1])) else location


def _path(location: Location) -> list[str]:
    """The path of a fault in the user's document, without union tags and pydantic's mark for dictionary keys."""
    return [str(part) for part in location if not is_tag(part) and part != "[key]"]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
