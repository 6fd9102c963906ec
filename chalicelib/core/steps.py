"""A budget of computation, counted in steps instead of in time: the same input costs the same on every machine.

A step is a comparison or a lookup: some 0.4 microseconds on a core of 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCUMENT = 3_750  # steps to read and check the document of a schedule, besides one for each value in it


def values_in(document: Mapping[str, Any]) -> int:
    """How many values a document holds, lists and objects included."""
    count = 0
    pending: list[Any] = [document]
    while pending:
        holder = pending.pop()
        inner = list(holder.values()) if isinstance(holder, Mapping) else holder
        count += len(inner)
        pending += [value for value in inner if isinstance(value, Mapping | list | tuple)]
    return count


class OverBudget(Exception):
    """A computation needs more steps than its budget has."""


class Steps:
    """The steps that a computation may still make. They count for the budget ``whole``, too, of which it is a part."""

    def __init__(self, budget: int, whole: Steps | None = None) -> None:
        self.budget, self.whole = budget, whole
        self.spent = 0

    @property
    def is_over(self) -> bool:
        return self.spent > self.budget

    def spend(self, count: int) -> None:
        """Count steps before they are made. Raises `OverBudget` if too few are left."""
        self.spent += count
        if self.is_over:
            raise OverBudget(f"more than {self.budget} steps")
        if self.whole is not None:
            self.whole.spend(count)
