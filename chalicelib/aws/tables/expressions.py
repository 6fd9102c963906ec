"""The parts of all statements: a key, an expression, and the condition under which the write is carried out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.core.rows import kinds
from chalicelib.core.rows.kinds import Key

ABSENT = "attribute_not_exists(pk)"
NO_WAITER = "(attribute_not_exists(waiters) OR waiters = :zero)"
_NAME = re.compile(r"#(\w+)")  # an attribute whose name is a reserved word in expressions, such as #count

Built = tuple[str, Key, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shards:
    """The number of parts of each index. ``sooner``: by how many ms this installation lets history expire earlier than
    `HISTORY` (H1)."""

    wake: int
    history: int
    sooner: int = 0


def condition(expected: str | None, values: dict[str, Any], expression: str = "") -> dict[str, Any]:
    """The arguments for a condition, and the names and values in the condition and in the expression of the
    statement."""
    arguments: dict[str, Any] = {"ConditionExpression": expected} if expected else {}
    if values:
        arguments["ExpressionAttributeValues"] = {f":{name}": items.value(plain) for name, plain in values.items()}
    if names := _NAME.findall(f"{expression} {expected}"):
        arguments["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
    return arguments


def update(key: Key, expression: str, expected: str | None, **values: Any) -> Built:
    return "Update", key, {"UpdateExpression": expression} | condition(expected, values, expression)


def check(key: Key, expected: str, **values: Any) -> Built:
    return "ConditionCheck", key, condition(expected, values)


def delete(row: object, expected: str | None = None, **values: Any) -> Built:
    return "Delete", kinds.key_of(row), condition(expected, values)
