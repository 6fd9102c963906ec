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
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from chalicelib.core.errors import invalid

MAX_DEPTH = 10  # levels of nested objects; each $or is a level as well
MAX_LEAVES = 100
MAX_ALTERNATIVES = 100  # of one leaf; with the two limits above, this bounds the work for an event
MAX_DESCRIBED = 200  # characters

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
    return all(
        any(matches(choice, payload) for choice in wanted)
        if key == _OR
        else _field_matches(wanted, _found(payload, key))
        for key, wanted in pattern.items()
    )


def _found(payload: Any, key: str) -> list[Any]:
    """The value of a key as a list of one, or an empty list if the key is absent."""
    return [payload[key]] if isinstance(payload, Mapping) and key in payload else []


def _field_matches(wanted: Any, found: list[Any]) -> bool:
    values = _elements(found)
    if isinstance(wanted, Mapping):
        nested = [value for value in values if isinstance(value, Mapping)]
        return any(matches(wanted, value) for value in nested or [{}])
    plain = [value for value in values if not isinstance(value, Mapping)]
    return any(
        alternative["exists"] is bool(found)
        if isinstance(alternative, Mapping) and "exists" in alternative
        else any(_accepts(alternative, value) for value in plain)
        for alternative in wanted
    )


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


def _accepts(alternative: Any, value: Any) -> bool:
    if not isinstance(alternative, Mapping):
        return isinstance(alternative, bool) is isinstance(value, bool) and bool(alternative == value)
    ((operator, operand),) = alternative.items()
    if operator == "anything-but":
        excluded = operand if isinstance(operand, list | tuple) else [operand]
        return not any(_accepts(choice, value) for choice in excluded)
    if operator == "numeric":
        bounds = zip(operand[::2], operand[1::2], strict=True)
        return _is_number(value) and all(_COMPARE[sign](value, bound) for sign, bound in bounds)
    return isinstance(value, str) and _text_accepts(operator, operand, value)


def _text_accepts(operator: str, operand: str, value: str) -> bool:
    if operator == "prefix":
        return value.startswith(operand)
    if operator == "suffix":
        return value.endswith(operand)
    if operator == "equals-ignore-case":
        return value.casefold() == operand.casefold()
    return _is_like(operand, value)


def _is_like(wildcard: str, text: str) -> bool:
    """Whether a text matches a wildcard: ``*`` matches any text, ``\\*`` and ``\\\\`` the characters themselves.

    It uses no regular expression, because a crafted text can make one backtrack for years. The first position at which
    a part fits leaves the most text for the following parts, so one pass is enough."""
    parts = [""]
    for token in _WILD.findall(wildcard):
        if token == "*":
            parts.append("")
        else:
            parts[-1] += token[-1]
    if len(parts) == 1:
        return text == parts[0]
    first, *middle, last = parts
    at = len(first) if text.startswith(first) else -1
    for part in middle:
        index = text.find(part, at) if at >= 0 else -1
        at = index + len(part) if index >= 0 else -1
    return 0 <= at <= len(text) - len(last) and text.endswith(last)


def check_pattern(pattern: Mapping[str, Any], field: str) -> None:
    """Raises ``invalid`` for a malformed or too large pattern, with the path of the error under ``field``."""
    leaves = list(_leaves(pattern, field, 1))
    if len(leaves) > MAX_LEAVES:
        hint = "match by a prefix or wildcard, or give the events different types"
        raise invalid(field, f"at most {MAX_LEAVES} leaves in one pattern", len(leaves), hint)
    for path, leaf in leaves:
        _check_leaf(path, leaf)


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
