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
import operator as comparison
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from chalicelib.core.errors import invalid

MAX_DEPTH = 10  # levels of nested objects; each $or is a level as well
MAX_LEAVES = 100
MAX_ALTERNATIVES = 100  # of one leaf
MAX_TRIGGER_LEAVES = 200  # of all patterns of a trigger
MAX_OPERATORS = 100  # of one pattern, and of all patterns of a trigger: each is tried with each value of an event
MAX_DESCRIBED = 200  # characters
MANY_OPERATORS_HINT = "list plain values, which cost nothing, or give the events different types"

_OR = "$or"
_TEXT = {
    "prefix": "begins with {}",
    "suffix": "ends with {}",
    "equals-ignore-case": "is {} in any case",
    "wildcard": "is like {}",
}
_OPERATORS = (*_TEXT, "anything-but", "exists", "numeric")
_LOWER = {">": comparison.gt, ">=": comparison.ge}
_UPPER = {"<": comparison.lt, "<=": comparison.le}
_COMPARE = {"=": comparison.eq, **_LOWER, **_UPPER}
_WILD = re.compile(r"\\[*\\]|.", re.DOTALL)


def matches(pattern: Mapping[str, Any], payload: Any) -> bool:
    """Whether a payload matches a pattern that `check_pattern` accepted. An empty pattern matches every payload."""
    return Matcher(pattern).matches(payload)


class Matcher:
    """A pattern prepared for many payloads.

    The alternatives of a leaf become sets where equality decides, so that the work for a payload does not grow with
    their number. `MAX_OPERATORS` bounds the others: without both, one event of 10 KB could take 19 s of CPU.
    """

    def __init__(self, pattern: Mapping[str, Any]) -> None:
        self._choices = [[Matcher(choice) for choice in wanted] for key, wanted in pattern.items() if key == _OR]
        self._nested = {key: Matcher(wanted) for key, wanted in pattern.items() if isinstance(wanted, Mapping)}
        self._leaves = {
            key: _Alternatives(wanted)
            for key, wanted in pattern.items()
            if key != _OR and not isinstance(wanted, Mapping)
        }

    def matches(self, payload: Any) -> bool:
        """Whether a payload matches. Anything but an object matches only what no field is expected of."""
        return (
            all(leaf.match(_found(payload, key)) for key, leaf in self._leaves.items())
            and all(_any_object(nested, _found(payload, key)) for key, nested in self._nested.items())
            and all(any(choice.matches(payload) for choice in choices) for choices in self._choices)
        )


def _any_object(matcher: Matcher, found: list[Any]) -> bool:
    objects = [value for value in _elements(found) if isinstance(value, Mapping)]
    return any(matcher.matches(value) for value in objects or [{}])


def _found(payload: Any, key: str) -> list[Any]:
    """The value of a key as a list of one, or an empty list if the key is absent."""
    return [payload[key]] if isinstance(payload, Mapping) and key in payload else []


def _elements(found: list[Any]) -> list[Any]:
    """The values with all nested lists flattened."""
    values, pending = [], list(found)
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending += value
        else:
            values.append(value)
    return values


class _Alternatives:
    """The alternatives of a leaf, by the type of value that they can accept."""

    def __init__(self, alternatives: Sequence[Any]) -> None:
        operators = [next(iter(choice.items())) for choice in alternatives if isinstance(choice, Mapping)]
        plain = [choice for choice in alternatives if not isinstance(choice, Mapping)]
        self._exists = {operand for operator, operand in operators if operator == "exists"}
        self._null = None in plain
        self._flags = {choice for choice in plain if isinstance(choice, bool)}
        self._numbers = {choice for choice in plain if _is_number(choice)}
        self._texts = {choice for choice in plain if isinstance(choice, str)}
        self._folded = {operand.casefold() for operator, operand in operators if operator == "equals-ignore-case"}
        self._prefixes = tuple(operand for operator, operand in operators if operator == "prefix")
        self._suffixes = tuple(operand for operator, operand in operators if operator == "suffix")
        self._wildcards = [_Wildcard(operand) for operator, operand in operators if operator == "wildcard"]
        self._ranges = [
            [(_COMPARE[sign], bound) for sign, bound in zip(operand[::2], operand[1::2], strict=True)]
            for operator, operand in operators
            if operator == "numeric"
        ]
        self._excluded = [
            _Alternatives(operand if isinstance(operand, list | tuple) else [operand])
            for operator, operand in operators
            if operator == "anything-but"
        ]

    def match(self, found: list[Any]) -> bool:
        """Whether one of the values of a field is accepted; ``found`` is empty if the field is absent."""
        if bool(found) in self._exists:
            return True
        return any(self._accept(value) for value in _elements(found) if not isinstance(value, Mapping))

    def _accept(self, value: Any) -> bool:
        if isinstance(value, str):
            equal = self._accept_text(value)
        elif isinstance(value, bool):
            equal = value in self._flags
        elif value is None:
            equal = self._null
        else:
            equal = value in self._numbers or (_is_number(value) and self._accept_number(value))
        return equal or any(not excluded._accept(value) for excluded in self._excluded)

    def _accept_number(self, value: float) -> bool:
        return any(all(compare(value, bound) for compare, bound in bounds) for bounds in self._ranges)

    def _accept_text(self, value: str) -> bool:
        return (
            value in self._texts
            or value.startswith(self._prefixes)
            or value.endswith(self._suffixes)
            or (bool(self._folded) and value.casefold() in self._folded)
            or any(wildcard.matches(value) for wildcard in self._wildcards)
        )


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
        if key == _OR:
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
        near = get_close_matches(operator, _OPERATORS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else None
        raise invalid(here, f"an operator, one of {', '.join(_OPERATORS)}", operator, hint)
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
        raise invalid(
            path, "a backslash only before '*' or another backslash", operand, "write two backslashes for one"
        )


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
    if not paired or (len(signs) == 2 and not (set(signs) & _LOWER.keys() and set(signs) & _UPPER.keys())):
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
    text = " and ".join(_phrases(pattern, "")) or "any payload"
    return text if len(text) <= MAX_DESCRIBED else f"{text[: MAX_DESCRIBED - 3]}..."


def _phrases(pattern: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, wanted in pattern.items():
        here = f"{path}.{key}" if path else key
        if key == _OR:
            yield _either([" and ".join(_phrases(choice, path)) for choice in wanted])
        elif isinstance(wanted, Mapping):
            yield from _phrases(wanted, here)
        else:
            yield _either([f"{here} {predicate}" for predicate in _predicates(wanted)])


def _predicates(alternatives: list[Any]) -> Iterator[str]:
    plain = [_format_value(value) for value in alternatives if _is_plain(value)]
    if plain:
        yield f"is {' or '.join(plain)}"
    yield from (_format_operator(choice) for choice in alternatives if not _is_plain(choice))


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
            f"is none of {', '.join(map(_format_value, operand))}"
            if _is_list(operand)
            else f"is not {_format_value(operand)}"
        )
    return _TEXT[operator].format(_format_value(operand))


def _either(phrases: list[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"({' or '.join(phrases)})"


def _format_value(value: Any) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value)
