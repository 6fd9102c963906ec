"""Patterns that select custom events by their payload, similar to the content filtering of EventBridge (T11).

A pattern is an object with the shape of the payload. Its leaves are lists of alternatives, of which one must match:
plain values, or an operator such as ``{"prefix": "eu-"}``. All fields of an object must match; of the patterns under
``$or``, one must. The cases that could be read in several ways:

- a list in the payload matches if one of its elements does, those of nested lists included;
- an object where a leaf expects a plain value exists, but matches neither a value nor ``anything-but`` one;
- an absent field, or one under an absent field, matches ``{"exists": false}`` and nothing else;
- numbers are equal by value (``1`` is ``1.0``), and true and false are no numbers;
- a value that is no text has no prefix and no suffix, so ``anything-but`` a prefix or suffix matches it.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from chalicelib.core.errors import invalid, meant
from chalicelib.core.steps import Steps

MAX_DEPTH = 10  # levels of nested objects; each $or is a level as well
MAX_LEAVES = 100
MAX_ALTERNATIVES = 100  # of one leaf
MAX_TRIGGER_LEAVES = 200  # of all patterns of a trigger
MAX_OPERATORS = 100  # of one pattern, and of all patterns of a trigger: each is tried with each value of an event
MAX_DESCRIBED = 200  # characters
# Of the patterns of one schedule for one event: what the largest pattern and the largest payload need together.
MAX_STEPS = 2_000_000
# The same for a schedule of another namespace than the event's, whose sender pays: 20 ms on a core.
MAX_FOREIGN_STEPS = 50_000
MANY_OPERATORS_HINT = "list plain values, which cost nothing, or give the events different types"

OR = "$or"
_TEXT = {
    "prefix": "begins with {}",
    "suffix": "ends with {}",
    "equals-ignore-case": "is {} in any case",
    "wildcard": "is like {}",
}
_OPERATORS = (*_TEXT, "anything-but", "exists", "numeric")
_LOWER = {">", ">="}
_UPPER = {"<", "<="}
_COMPARE = {"=", *_LOWER, *_UPPER}
_WILD = re.compile(r"\\[*\\]|.", re.DOTALL)


class Flattened:
    """The payload of one event, for any number of patterns. Each field is flattened once, when a pattern first asks for
    it: the sender has made the payload as large as it is. ``steps`` counts what the patterns cost."""

    def __init__(self, payload: Any, steps: Steps | None = None) -> None:
        self.root: Mapping[str, Any] = payload if isinstance(payload, Mapping) else _NOTHING
        self.steps = steps if steps is not None else Steps(MAX_STEPS)
        self._fields: dict[tuple[int, str], _Values] = {}  # by the object and the key

    def within(self, steps: Steps) -> Flattened:
        """The same payload, for the patterns of one schedule, which may make these steps."""
        own = copy(self)
        own.steps = steps
        return own

    def field(self, holder: Mapping[str, Any], key: str) -> _Values | None:
        """The values of a field of an object of the payload; None if it is absent."""
        if key not in holder:
            return None
        place = (id(holder), key)
        if place not in self._fields:
            self._fields[place] = _Values(holder[key])
        return self._fields[place]


_NOTHING: Mapping[str, Any] = {}
_SCALARS = {str, bool, int, float, type(None)}


class _Values:
    """The values of a field, with all nested lists flattened, by their types. ``weight`` is how many there are; a text
    counts once more for each hundred characters."""

    def __init__(self, value: Any) -> None:
        found = _flat(value) if isinstance(value, list | tuple) else [value]
        kinds = set(map(type, found))
        self.texts: set[str] = {each for each in found if type(each) is str} if str in kinds else set()
        self.flags: set[bool] = {each for each in found if type(each) is bool} if bool in kinds else set()
        self.numbers: set[float] = {each for each in found if type(each) is int} if int in kinds else set()
        if float in kinds:
            self.numbers |= {each for each in found if type(each) is float and math.isfinite(each)}
        objects = [each for each in found if isinstance(each, Mapping)] if kinds - _SCALARS else []
        # One empty object is as good as many.
        self.objects = [each for each in objects if each] + [each for each in objects if not each][:1]
        self.has_null = type(None) in kinds
        self.weight = len(found) + sum(map(len, self.texts)) // 100

    @cached_property
    def folded(self) -> set[str]:
        return {text.casefold() for text in self.texts}

    @cached_property
    def in_order(self) -> list[float]:
        return sorted(self.numbers)


def _flat(values: Sequence[Any]) -> Sequence[Any]:
    """The values with all nested lists flattened."""
    if not {list, tuple} & set(map(type, values)):
        return values
    found, pending = [], list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending += value
        else:
            found.append(value)
    return found


class Matcher:
    """A pattern prepared for many payloads.

    The alternatives of a leaf become sets where equality decides, so a payload costs the size of the pattern, and not
    the alternatives times the values. `MAX_OPERATORS` bounds those that are tried with each value.
    """

    def __init__(self, pattern: Mapping[str, Any]) -> None:
        self._choices = [[Matcher(choice) for choice in wanted] for key, wanted in pattern.items() if key == OR]
        self._nested = {key: Matcher(wanted) for key, wanted in pattern.items() if isinstance(wanted, Mapping)}
        self._leaves = {
            key: _Alternatives(wanted)
            for key, wanted in pattern.items()
            if key != OR and not isinstance(wanted, Mapping)
        }

    def matches(self, payload: Flattened) -> bool:
        """Whether a payload matches; an empty pattern matches each. Raises `OverBudget` if the steps of the payload do
        not suffice."""
        return self._fits(payload.root, payload)

    def _fits(self, found: Mapping[str, Any], payload: Flattened) -> bool:
        """Whether an object of the payload matches."""
        payload.steps.spend(1 + len(self._leaves) + len(self._nested))
        return (
            all(leaf.match(payload.field(found, key), payload.steps) for key, leaf in self._leaves.items())
            and all(nested._fits_any(payload.field(found, key), payload) for key, nested in self._nested.items())
            and all(any(choice._fits(found, payload) for choice in choices) for choices in self._choices)
        )

    def _fits_any(self, values: _Values | None, payload: Flattened) -> bool:
        """Whether one of the objects in a field matches. A field without an object is like an empty one."""
        objects = values.objects if values is not None and values.objects else (_NOTHING,)
        return any(self._fits(found, payload) for found in objects)


class _Alternatives:
    """The alternatives of a leaf, by the type of value that they can accept."""

    def __init__(self, alternatives: Sequence[Any]) -> None:
        # The abstract class Mapping would take most of the time here.
        operators = [next(iter(choice.items())) for choice in alternatives if isinstance(choice, dict)]
        self._plain = _Values([choice for choice in alternatives if not isinstance(choice, dict)])
        self._exists = {operand for operator, operand in operators if operator == "exists"}
        self._folded = {operand.casefold() for operator, operand in operators if operator == "equals-ignore-case"}
        self._prefixes = tuple(operand for operator, operand in operators if operator == "prefix")
        self._suffixes = tuple(operand for operator, operand in operators if operator == "suffix")
        self._wildcards = [_Wildcard(operand) for operator, operand in operators if operator == "wildcard"]
        self._ranges = [_Range(operand) for operator, operand in operators if operator == "numeric"]
        self._excluded = [_Excluded(operand) for operator, operand in operators if operator == "anything-but"]
        self._operators = len(operators)

    def match(self, values: _Values | None, steps: Steps) -> bool:
        """Whether one of the values of a field is accepted; None if the field is absent."""
        if (values is not None) in self._exists:
            return True
        if values is None:
            return False
        steps.spend(2 + min(self._plain.weight, values.weight) + self._operators * values.weight)
        return self._equals(values) or self._operates(values)

    def _equals(self, values: _Values) -> bool:
        plain = self._plain
        return not (
            plain.texts.isdisjoint(values.texts)
            and plain.numbers.isdisjoint(values.numbers)
            and plain.flags.isdisjoint(values.flags)
            and not (plain.has_null and values.has_null)
        )

    def _operates(self, values: _Values) -> bool:
        return (
            (bool(self._prefixes) and any(text.startswith(self._prefixes) for text in values.texts))
            or (bool(self._suffixes) and any(text.endswith(self._suffixes) for text in values.texts))
            or (bool(self._folded) and not self._folded.isdisjoint(values.folded))
            or any(wildcard.matches(text) for wildcard in self._wildcards for text in values.texts)
            or any(one.has_one_of(values.in_order) for one in self._ranges)
            or any(excluded.leaves_one_of(values) for excluded in self._excluded)
        )


class _Excluded:
    """The operand of ``anything-but``: values, or a prefix or suffix, which only texts have."""

    def __init__(self, operand: Any) -> None:
        self._affix = next(iter(operand.items())) if isinstance(operand, Mapping) else None
        self._values = _Values([] if isinstance(operand, Mapping) else operand)

    def leaves_one_of(self, values: _Values) -> bool:
        """Whether a field has a value, but no object, that is not excluded."""
        if not values.numbers <= self._values.numbers or not values.flags <= self._values.flags:
            return True
        if values.has_null and not self._values.has_null:
            return True
        if self._affix is None:
            return not values.texts <= self._values.texts
        kind, affix = self._affix
        return not all(text.startswith(affix) if kind == "prefix" else text.endswith(affix) for text in values.texts)


class _Range:
    """The operand of ``numeric``: one or two comparisons, or an equality."""

    def __init__(self, operand: Sequence[Any]) -> None:
        self._bounds = dict(zip(operand[::2], operand[1::2], strict=True))

    def has_one_of(self, numbers: Sequence[float]) -> bool:
        """Whether one of these numbers, which are in order, lies between the bounds."""
        first, last = 0, len(numbers)
        for sign, bound in self._bounds.items():
            if sign in ("=", ">", ">="):
                first = max(first, bisect_right(numbers, bound) if sign == ">" else bisect_left(numbers, bound))
            if sign in ("=", "<", "<="):
                last = min(last, bisect_left(numbers, bound) if sign == "<" else bisect_right(numbers, bound))
        return first < last


class _Wildcard:
    """``*`` matches any text, ``\\*`` and ``\\\\`` the characters themselves.

    It uses no regular expression, because a crafted text can make one backtrack for years. The first position at which
    a part fits leaves the most text for the following parts, so one pass is enough."""

    def __init__(self, wildcard: str) -> None:
        parts = [""]
        for token in _WILD.findall(wildcard):
            if token == "*":
                parts.append("")
            else:
                parts[-1] += token[-1]
        self._first, self._last = parts[0], parts[-1]
        # Two stars in a row leave an empty part between them, which every text has.
        self._middle = [part for part in parts[1:-1] if part]
        self._is_plain = len(parts) == 1

    def matches(self, text: str) -> bool:
        if self._is_plain:
            return text == self._first
        if not text.startswith(self._first):
            return False
        at = len(self._first)
        for part in self._middle:
            index = text.find(part, at)
            if index < 0:
                return False
            at = index + len(part)
        return at <= len(text) - len(self._last) and text.endswith(self._last)


def check_pattern(pattern: Mapping[str, Any], field: str) -> None:
    """Raises ``invalid`` for a malformed or too large pattern, with the path of the error under ``field``."""
    leaves = list(_leaves(pattern, field, 1))
    if len(leaves) > MAX_LEAVES:
        hint = "match by a prefix or wildcard, or give the events different types"
        raise invalid(field, f"at most {MAX_LEAVES} leaves in one pattern", len(leaves), hint)
    for path, leaf in leaves:
        _check_leaf(path, leaf)
    operators = work(pattern).operators
    if operators > MAX_OPERATORS:
        raise invalid(field, f"at most {MAX_OPERATORS} operators in one pattern", operators, MANY_OPERATORS_HINT)


class Work(NamedTuple):
    """What a pattern costs for each value of an event."""

    leaves: int
    operators: int


def work(pattern: Mapping[str, Any]) -> Work:
    """The leaves and the operators of a valid pattern. A list of values to exclude is one operator."""
    leaves = [leaf for _, leaf in _leaves(pattern, "", 1)]
    return Work(len(leaves), sum(isinstance(choice, Mapping) for leaf in leaves for choice in leaf))


def _leaves(pattern: Any, path: str, level: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(pattern, Mapping) or (level > 1 and not pattern):
        hint = 'to match any value, write [{"exists": true}]' if pattern == {} else None
        raise invalid(path, "an object with the fields to match", pattern, hint)
    if level > MAX_DEPTH:
        raise invalid(path, f"at most {MAX_DEPTH} levels in one pattern", level, "match fields further up")
    for key, wanted in pattern.items():
        here = f"{path}.{key}" if path else key
        if key == OR:
            if not _is_list(wanted):
                raise invalid(here, "a list of patterns, one of which must match", wanted)
            for index, choice in enumerate(wanted):
                yield from _leaves(choice, f"{here}.{index}", level + 1)
        elif isinstance(wanted, Mapping):
            yield from _leaves(wanted, here, level + 1)
        else:
            _refuse_stray_operator(here, key, wanted)
            yield here, wanted


def _refuse_stray_operator(path: str, key: str, wanted: Any) -> None:
    """``{"total": {"numeric": [">", 5]}}`` would match a field named ``numeric``, and so never the number."""
    is_operand = key in _OPERATORS and not _is_list(wanted)
    is_comparison = key == "numeric" and _is_list(wanted) and _is_sign(wanted[0])
    if is_operand or is_comparison or key in ("anything-but", "equals-ignore-case"):
        hint = f'write the operator as an alternative, in a list: [{{"{key}": ...}}]'
        raise invalid(path, "an object of fields, or a list of alternatives", {key: wanted}, hint)


def _check_leaf(path: str, leaf: Any) -> None:
    if not _is_list(leaf):
        hint = f"write {json.dumps([leaf])}" if _is_plain(leaf) else "nothing matches an empty list"
        raise invalid(path, 'a list of alternatives such as ["a", {"prefix": "b"}]', leaf, hint)
    _check_number_of(path, leaf)
    for index, alternative in enumerate(leaf):
        if not _is_plain(alternative):
            _check_operator(f"{path}.{index}", alternative)


def _check_operator(path: str, alternative: Any) -> None:
    if not isinstance(alternative, Mapping) or len(alternative) != 1:
        hint = "write each operator as an alternative of its own" if isinstance(alternative, Mapping) else None
        raise invalid(path, "a text, a number, true, false, null, or an object with one operator", alternative, hint)
    ((operator, operand),) = alternative.items()
    here = f"{path}.{operator}"
    if operator not in _OPERATORS:
        expected = f"an operator, one of {', '.join(_OPERATORS)}"
        raise invalid(here, expected, operator, meant(operator, _OPERATORS))
    if operator == "numeric":
        _check_numeric(here, operand)
    elif operator == "anything-but":
        _check_anything_but(here, operand)
    elif operator == "exists":
        if not isinstance(operand, bool):
            raise invalid(here, "true or false", operand)
    else:
        _check_text(here, operator, operand)


def _check_text(path: str, operator: str, operand: Any) -> None:
    if not isinstance(operand, str):
        raise invalid(path, "text", operand)
    if operator == "wildcard" and any(token == "\\" for token in _WILD.findall(operand)):
        hint = "write two backslashes for one"
        raise invalid(path, "a backslash only before '*' or another backslash", operand, hint)


def _check_anything_but(path: str, operand: Any) -> None:
    if isinstance(operand, Mapping):
        if len(operand) != 1 or not operand.keys() <= {"prefix", "suffix"}:
            raise invalid(path, "a value, a list of values, or an object with prefix or suffix", operand)
        ((operator, text),) = operand.items()
        _check_text(f"{path}.{operator}", operator, text)
    elif _is_list(operand):
        _check_number_of(path, operand)
        for index, value in enumerate(operand):
            if not _is_plain(value):
                raise invalid(f"{path}.{index}", "a text, a number, true, false or null", value)
    elif not _is_plain(operand):
        raise invalid(path, "a value, a list of values, or an object with prefix or suffix", operand)


def _check_numeric(path: str, operand: Any) -> None:
    signs, bounds = (operand[::2], operand[1::2]) if _is_list(operand) else ([], [])
    paired = len(signs) == len(bounds) in (1, 2) and all(map(_is_sign, signs)) and all(map(_is_number, bounds))
    if not paired or (len(signs) == 2 and not (set(signs) & _LOWER and set(signs) & _UPPER)):
        hint = "signs are = < <= > >=; two of them are a lower and an upper bound"
        raise invalid(path, 'a comparison such as [">", 5] or [">=", 0, "<", 100]', operand, hint)
    if len(signs) == 2:
        low, high = bounds if signs[0] in _LOWER else reversed(bounds)
        if low > high or (low == high and set(signs) != {">=", "<="}):
            raise invalid(path, "bounds with a number between them", operand)


def _check_number_of(path: str, values: Any) -> None:
    if len(values) > MAX_ALTERNATIVES:
        hint = "match by a prefix or wildcard, or give the events different types"
        raise invalid(path, f"at most {MAX_ALTERNATIVES} alternatives", len(values), hint)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


def _is_sign(value: Any) -> bool:
    return isinstance(value, str) and value in _COMPARE


def _is_number(value: Any) -> bool:
    # Integers are tested first: isfinite would raise OverflowError for one that is too large for a float.
    return not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)


def describe(pattern: Mapping[str, Any]) -> str:
    """The pattern in plain words, cut to `MAX_DESCRIBED`: ``region begins with 'eu-' and total is > 100``."""
    text = ""
    for piece in _pieces(pattern, ""):
        text += piece
        if len(text) > MAX_DESCRIBED:
            return f"{text[: MAX_DESCRIBED - 3]}..."
    return text or "any payload"


def _pieces(pattern: Mapping[str, Any], path: str) -> Iterator[str]:
    """The words of a pattern, piece by piece: the rest of a long one is never made."""
    for number, (key, wanted) in enumerate(pattern.items()):
        here = f"{path}.{key}" if path else key
        yield " and " if number else ""
        if key == OR:
            yield from _either([_pieces(choice, path) for choice in wanted])
        elif isinstance(wanted, Mapping):
            yield from _pieces(wanted, here)
        else:
            yield from _either([chain([f"{here} "], predicate) for predicate in _predicates(wanted)])


def _predicates(alternatives: Sequence[Any]) -> list[Iterator[str]]:
    plain = [value for value in alternatives if _is_plain(value)]
    operators = [iter([_format_operator(choice)]) for choice in alternatives if not _is_plain(choice)]
    return [chain(["is "], _joined(plain, " or ")), *operators] if plain else operators


def _joined(values: Sequence[Any], between: str) -> Iterator[str]:
    return (f"{between if number else ''}{_format_value(value)}" for number, value in enumerate(values))


def _either(phrases: Sequence[Iterator[str]]) -> Iterator[str]:
    yield "(" if len(phrases) > 1 else ""
    for number, phrase in enumerate(phrases):
        yield " or " if number else ""
        yield from phrase
    yield ")" if len(phrases) > 1 else ""


def _format_operator(alternative: Mapping[str, Any]) -> str:
    ((operator, operand),) = alternative.items()
    if operator == "exists":
        return "is there" if operand else "is absent"
    if operator == "numeric":
        pairs = zip(operand[::2], operand[1::2], strict=True)
        return "is " + " and ".join(f"{sign} {bound}" for sign, bound in pairs)
    if operator == "anything-but":
        if isinstance(operand, Mapping):
            return "never " + _format_operator(operand)
        return (
            f"is none of {''.join(_joined(operand, ', '))}" if _is_list(operand) else f"is not {_format_value(operand)}"
        )
    return _TEXT[operator].format(_format_value(operand))


def _format_value(value: Any) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value)
