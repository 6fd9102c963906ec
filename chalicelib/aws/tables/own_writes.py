"""Whether a write whose condition fails was already carried out by an earlier try, whose answer was lost.

The error of the repeat carries the stored item (`ReturnValuesOnConditionCheckFailure`), at no cost. If the earlier try
was carried out, the stored item shows its result: the same row, the same values, or no item. See decision 0034.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Item = Mapping[str, Any]

_SET = re.compile(r"(#?\w+) = (:\w+)")
_RELATIVE = re.compile(r"[+-] :\w+")


def is_done(action: str, arguments: Mapping[str, Any], stored: Item | None) -> bool:
    """Whether the stored item equals the result of this write."""
    match action:
        case "Put":
            return stored is not None and _same_items(stored, arguments["Item"])
        case "Delete":
            return not stored
        case "Update":
            return stored is not None and _is_updated(arguments, stored)
        case _:
            return False


def is_relative(action: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a write computes a value from the stored one. Executed twice it has another result, and the stored item
    does not show whether it was executed."""
    return action == "Update" and _RELATIVE.search(arguments["UpdateExpression"]) is not None


def _is_updated(arguments: Mapping[str, Any], stored: Item) -> bool:
    """Whether each attribute in SET has its value and each in REMOVE is absent. False for any other clause."""
    names, values = arguments.get("ExpressionAttributeNames", {}), arguments.get("ExpressionAttributeValues", {})
    sets, _, removes = arguments["UpdateExpression"].partition("REMOVE ")
    for clause in _clauses(sets.strip().removeprefix("SET ")):
        found = _SET.fullmatch(clause)
        if found is None:
            return False
        name, value = found.groups()
        attribute = names.get(name, name)
        if attribute not in stored or not _same(stored[attribute], values[value]):
            return False
    return all(names.get(name, name) not in stored for name in _clauses(removes))


def _clauses(text: str) -> list[str]:
    return [clause.strip() for clause in text.split(",") if clause.strip()]


def _same_items(stored: Item, written: Item) -> bool:
    return stored.keys() == written.keys() and all(_same(stored[name], written[name]) for name in written)


def _same(stored: Any, written: Any) -> bool:
    """Whether two attribute values are equal. DynamoDB reformats numbers, and does not keep the order of sets."""
    (kind, left), (other, right) = next(iter(stored.items())), next(iter(written.items()))
    if kind != other:
        return False
    match kind:
        case "N":
            return Decimal(left) == Decimal(right)
        case "SS" | "BS":
            return sorted(left) == sorted(right)
        case "NS":
            return sorted(map(Decimal, left)) == sorted(map(Decimal, right))
        case "L":
            return len(left) == len(right) and all(map(_same, left, right))
        case "M":
            return _same_items(left, right)
        case _:
            return bool(left == right)
