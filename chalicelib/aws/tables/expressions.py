"""What all statements are put together from: a key, an expression, and the condition under which it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.aws.tables.keys import Key

NOBODY = "(attribute_not_exists(waiters) OR waiters = :zero)"

Built = tuple[str, Key, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shards:
    """Into how many parts the indexes are split. ``sooner``: how much earlier than after `HISTORY` the history passes
    away in this installation, in ms (H1)."""

    wake: int
    history: int
    sooner: int = 0


def condition(expected: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """The condition of a statement and the values that it and its expression name."""
    arguments: dict[str, Any] = {"ConditionExpression": expected} if expected else {}
    if values:
        arguments["ExpressionAttributeValues"] = {f":{name}": items.value(plain) for name, plain in values.items()}
    return arguments


def update(key: Key, expression: str, expected: str | None, **values: Any) -> Built:
    return "Update", key, {"UpdateExpression": expression} | condition(expected, values)
