"""The parts of all statements: a key, an expression, and the condition under which the write is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core.rows.kinds import Key

NO_WAITER = "(attribute_not_exists(waiters) OR waiters = :zero)"

Built = tuple[str, Key, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shards:
    """The number of parts of each index. ``sooner``: by how many ms this installation lets history expire earlier than
    `HISTORY` (H1)."""

    wake: int
    history: int
    sooner: int = 0


def condition(expected: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments for a condition, and the values that the condition and the expression of the statement name."""
    arguments: dict[str, Any] = {"ConditionExpression": expected} if expected else {}
    if values:
        arguments["ExpressionAttributeValues"] = {f":{name}": items.value(plain) for name, plain in values.items()}
    return arguments


def update(key: Key, expression: str, expected: str | None, **values: Any) -> Built:
    return "Update", key, {"UpdateExpression": expression} | condition(expected, values)
