"""Branches of a DAG: whether the result of a node matches the pattern of an edge, and in words why not (W18).

The pattern is asked of a run that succeeded. A result that does not match is a choice: the node after it is skipped. No
result at all, or one that has no fields, is a mistake: it counts as a failure, so that nothing is left out silently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chalicelib.core.dags.join import Outcome
from chalicelib.core.definitions.each import there
from chalicelib.core.results import Result
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.patterns import Flattened, Matcher
from chalicelib.core.why import Why

MISSING, NOT_CHOSEN = CODES = ("result_missing", "not_chosen")
MAX_SHOWN = 200  # characters of a result in a reason


def outcome(pattern: Mapping[str, Any] | None, result: Result) -> Outcome:
    """What a success with this result means for an edge with this pattern."""
    if pattern is None:
        return "met"
    if not isinstance(result.value, Mapping):
        return "failed"
    return "met" if Matcher(pattern).matches(Flattened(result.value)) else "unmet"


def lacks(node: str, pattern: Mapping[str, Any], result: Result) -> Why:
    """Why the result of a node that succeeded does not meet a pattern: ``needs a result of scan where mode is 'full',
    got {"mode": "delta"}``."""
    needs = f"needs a result of {node} where {patterns.describe(pattern)}"
    if result.refused:
        return Why.of(MISSING, f"{needs}, but it was refused: {result.refused}")
    if result.value is None:
        return Why.of(MISSING, f"{needs}, but {node} gave none; let its program hand one on")
    if not isinstance(result.value, Mapping):
        return Why.of(MISSING, f"{needs}, but it has no fields: {_shown(result.value)}; hand on an object")
    asked = {key: part for key, part in result.value.items() if key in _fields(pattern)}
    absent = ", ".join(key for key in _fields(pattern) if key not in result.value)
    if absent and not asked:
        mend = f"hand on {absent}, or correct the pattern"
        return Why.of(NOT_CHOSEN, f"{needs}, got no {absent}: there is {there(result.value)}; {mend}")
    return Why.of(NOT_CHOSEN, f"{needs}, got {_shown(asked)}{f', without {absent}' if absent else ''}")


def _fields(pattern: Mapping[str, Any]) -> list[str]:
    """The fields of a result that a pattern asks for, at its first level."""
    found = [key for key in pattern if key != patterns.OR]
    return [*found, *(key for choice in pattern.get(patterns.OR, ()) for key in _fields(choice) if key not in found)]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
