"""The expressions of DynamoDB that the tables use: conditions, key conditions and updates, each compiled once.

The checks are as strict as those of DynamoDB. These are errors: a name or value that no expression uses, two paths that
overlap, and a path into a missing map. So are a sum with a missing or non-numeric operand, and an empty update.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

Item = Mapping[str, Any]
Path = tuple[str, ...]
_TOKEN = re.compile(r"\s*(<=|>=|<>|[=<>(),.+-]|[:#]?\w+)")
_CLAUSES = ("SET", "REMOVE", "ADD")


class Invalid(Exception):
    """A request to which DynamoDB answers with a ValidationException."""


class Bound:
    """The names and values that a request binds."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.names: Mapping[str, str] = arguments.get("ExpressionAttributeNames", {})
        self.values: Mapping[str, Any] = arguments.get("ExpressionAttributeValues", {})


Test = Callable[[Item, Bound], bool]
Operand = Callable[[Item, Bound], Any]


def check_bindings(bound: Bound, *expressions: str | None) -> None:
    used = frozenset[str]().union(*(_placeholders(text) for text in expressions if text))
    names = {*bound.names, *bound.values}
    if names != used:
        raise Invalid(f"bound and not used: {sorted(names - used)}; used and not bound: {sorted(used - names)}")


@cache
def _placeholders(text: str) -> frozenset[str]:
    """The names and values that an expression uses, such as `#name` and `:value`."""
    return frozenset(token for token in _TOKEN.findall(text) if token[0] in ":#")


def projection(arguments: Mapping[str, Any]) -> Callable[[Item], Item]:
    """A function that returns the attributes of an item that the request names, or all attributes."""
    text = arguments.get("ProjectionExpression")
    bound = Bound(arguments)
    check_bindings(bound, text)
    if text is None:
        return lambda item: item
    names = [bound.names.get(token, token) for token in text.split(", ")]
    return lambda item: {name: item[name] for name in names if name in item}


@cache
def condition(text: str) -> Test:
    reader = _Reader(text)
    test = reader.either()
    reader.done()
    return test


def update(text: str, item: Item, bound: Bound) -> dict[str, Any]:
    """The item after an update expression. Every right-hand side reads the item as it was before the update."""
    clauses = _clauses(text)
    if not any(clauses.values()):
        raise Invalid("the expression cannot be empty")
    changes: list[tuple[Path, Any]] = []
    for target, operand in clauses["SET"]:
        changes.append((_path(target, bound), operand(item, bound)))
    for target, operand in clauses["ADD"]:
        known, more = _at(item, _path(target, bound)), operand(item, bound)
        changes.append((_path(target, bound), {"SS": sorted({*(known or {"SS": []})["SS"], *more["SS"]})}))
    changes += [(_path(target, bound), None) for target, _ in clauses["REMOVE"]]
    _check_overlap([path for path, _ in changes])
    after = dict(item)
    for path, value in changes:
        after = _with(after, path, value)
    return after


@cache
def _clauses(text: str) -> dict[str, list[tuple[Path, Operand]]]:
    reader = _Reader(text)
    found: dict[str, list[tuple[Path, Operand]]] = {clause: [] for clause in _CLAUSES}
    while reader.peek():
        clause = reader.take()
        if clause not in found or found[clause]:
            raise Invalid(f"expected a clause of {text!r}, got {clause}")
        while True:
            found[clause].append(reader.change(clause))
            if reader.peek() != ",":
                break
            reader.take()
    return found


def _path(tokens: Path, bound: Bound) -> Path:
    return tuple(bound.names[token] if token[0] == "#" else token for token in tokens)


def _at(item: Item, path: Path) -> Any:
    value = item.get(path[0])
    for part in path[1:]:
        value = value["M"].get(part) if value and "M" in value else None
    return value


def _with(item: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    head, *rest = path
    if rest:
        if "M" not in (item.get(head) or {}):
            raise Invalid(f"the document path {'.'.join(path)} is invalid for update")
        return {**item, head: {"M": _with(item[head]["M"], tuple(rest), value)}}
    left = {name: content for name, content in item.items() if name != head}
    return left if value is None else {**left, head: value}


def _check_overlap(paths: list[Path]) -> None:
    for index, one in enumerate(paths):
        for other in paths[index + 1 :]:
            shorter = min(len(one), len(other))
            if one[:shorter] == other[:shorter]:
                raise Invalid(f"two document paths overlap: {one} and {other}")


def plain(value: Any) -> Any:
    """A value in the form in which values are compared: numbers by size, sets without order."""
    [(kind, content)] = value.items()
    if kind == "N":
        return kind, Decimal(content)
    if kind == "SS":
        return kind, frozenset(content)
    if kind == "L":
        return kind, tuple(plain(part) for part in content)
    if kind == "M":
        return kind, tuple(sorted((name, plain(part)) for name, part in content.items()))
    return kind, content


def _compares(sign: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    texts = left.get("S"), right.get("S")
    one, other = (("S", text) for text in texts) if None not in texts else (plain(left), plain(right))
    if sign == "=":
        return bool(one == other)
    if sign == "<>":
        return bool(one != other)
    if one[0] != other[0]:
        return False
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign])


def _sum(sign: str, left: Any, right: Any) -> Any:
    if left is None or right is None or "N" not in left or "N" not in right:
        raise Invalid("an operand of a sum is no number, or is not there")
    one, other = Decimal(left["N"]), Decimal(right["N"])
    return {"N": str(one + other if sign == "+" else one - other)}


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise Invalid(f"cannot read {text!r}")
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Invalid(f"expected {expected or 'more'}, got {token!r} in {self._tokens}")
        self._at += 1
        return token

    def done(self) -> None:
        if self.peek():
            raise Invalid(f"did not expect {self.peek()!r} in {self._tokens}")

    def either(self) -> Test:
        tests = [self._both()]
        while self.peek() == "OR":
            self.take()
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda item, bound: any(test(item, bound) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self.peek() == "AND":
            self.take()
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda item, bound: all(test(item, bound) for test in tests)

    def _one(self) -> Test:
        if self.peek() == "(":
            self.take()
            inner = self.either()
            self.take(")")
            return inner
        if self.peek() in ("attribute_exists", "attribute_not_exists", "begins_with", "contains"):
            return self._function()
        left = self.operand()
        sign = self.take()
        if sign == "IN":
            several = self._listed()
            return lambda item, bound: any(_compares("=", left(item, bound), each(item, bound)) for each in several)
        if sign == "BETWEEN":
            low, _, high = self.operand(), self.take("AND"), self.operand()
            return lambda item, bound: (
                _compares(">=", left(item, bound), low(item, bound))
                and _compares("<=", left(item, bound), high(item, bound))
            )
        right = self.operand()
        return lambda item, bound: _compares(sign, left(item, bound), right(item, bound))

    def _function(self) -> Test:
        name = self.take()
        first, *rest = self._listed()
        if name == "begins_with":
            return lambda item, bound: str((first(item, bound) or {}).get("S", "")).startswith(
                rest[0](item, bound)["S"]
            )
        if name == "contains":  # of a set of texts
            return lambda item, bound: rest[0](item, bound)["S"] in (first(item, bound) or {}).get("SS", ())
        return lambda item, bound: (first(item, bound) is not None) == (name == "attribute_exists")

    def _listed(self) -> list[Operand]:
        self.take("(")
        found = [self.operand()]
        while self.peek() == ",":
            self.take()
            found.append(self.operand())
        self.take(")")
        return found

    def operand(self) -> Operand:
        if self.peek() == "size":
            self.take()
            [of] = self._listed()
            return lambda item, bound: _size(of(item, bound))
        if self.peek() == "if_not_exists":
            self.take()
            path, other = self._listed()
            return lambda item, bound: known if (known := path(item, bound)) is not None else other(item, bound)
        if self.peek().startswith(":"):
            name = self.take()
            return lambda item, bound: bound.values[name]
        tokens = self.path()
        if len(tokens) == 1 and tokens[0][0] != "#":
            return lambda item, _: item.get(tokens[0])
        return lambda item, bound: _at(item, _path(tokens, bound))

    def path(self) -> Path:
        tokens = [self.take()]
        while self.peek() == ".":
            self.take()
            tokens.append(self.take())
        return tuple(tokens)

    def change(self, clause: str) -> tuple[Path, Operand]:
        target = self.path()
        if clause == "REMOVE":
            return target, lambda item, bound: None
        if clause == "SET":
            self.take("=")
        operand = self.operand()
        if clause == "SET" and self.peek() in ("+", "-"):
            sign, left, right = self.take(), operand, self.operand()
            return target, lambda item, bound: _sum(sign, left(item, bound), right(item, bound))
        return target, operand


def _size(value: Any) -> Any:
    if value is None:
        return None
    [content] = value.values()
    return {"N": str(len(content))}
