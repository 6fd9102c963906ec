"""Whether a conditional write that is refused was carried out already, by an earlier try whose answer was lost.

The refusal of a repeat carries the stored item (`ReturnValuesOnConditionCheckFailure`), at no cost. It shows what this
very write would have left: the same row, the same values, or nothing. See decision 0034.
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
    """Whether what is stored is what this write leaves behind."""
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
    """Whether a write counts from what is stored, so that doing it twice is another result, and no look at the row
    tells whether it was done."""
    return action == "Update" and _RELATIVE.search(arguments["UpdateExpression"]) is not None


def _is_updated(arguments: Mapping[str, Any], stored: Item) -> bool:
    """Each attribute that is set has its value, each that is removed is gone. Any other clause is not understood."""
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
    """DynamoDB spells numbers anew, and keeps no order in sets."""
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
