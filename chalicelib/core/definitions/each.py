"""The field ``each`` of a node of a DAG: one job for each element of a list in the result of a node before it (W19)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chalicelib.core.documents import Document, Name
from chalicelib.core.results import Result

MAX_ELEMENTS = 1_000


class Each(Document):
    """The list lies at ``path`` in the result of the node ``of``, such as ``files`` or ``new.files``; without a path
    the whole result is the list. ``max`` is the longest list for which the node starts. ``concurrency`` is how many
    elements are under way at once; by default as many as the limits of the node let start.

    A node of a DAG has it, and the schedule of that node. No other schedule may have it."""

    of: Name
    path: str | None = Field(default=None, min_length=1, max_length=200)
    max: int = Field(default=MAX_ELEMENTS, ge=1, le=MAX_ELEMENTS)
    concurrency: int | None = Field(default=None, ge=1, le=MAX_ELEMENTS)

    @property
    def place(self) -> str:
        """Where the list is, as text for users."""
        return f"{self.path} of the result of {self.of}" if self.path is not None else f"the result of {self.of}"

    def values_in(self, result: Result) -> list[Any] | str:
        """The elements of a list in a result, or why there is none, as text for users."""
        if result.refused:
            return f"expected a list in {self.place}, but its result was not kept: {result.refused}"
        if result.value is None:
            return f"expected a list in {self.place}, but its run has no result; let its program hand one on"
        found: Any = result.value
        for name in self.path.split(".") if self.path is not None else ():
            if not isinstance(found, Mapping) or name not in found:
                return f"expected a list in {self.place}, got no {name}: there is {there(found)}; correct the path"
            found = found[name]
        if not isinstance(found, list | tuple):
            return f"expected a list in {self.place}, got {_shown(found)}; hand on a list"
        if len(found) > self.max:
            more = "hand on fewer, such as one for each group of files" if self.max == MAX_ELEMENTS else "raise max"
            return f"expected at most {self.max:,} elements in {self.place}, got {len(found):,}; {more}"
        return list(found)


def there(found: Any) -> str:
    """What is in place of a field that was asked for: ``an object with kind``, or the value itself."""
    if not isinstance(found, Mapping):
        return _shown(found)
    return f"an object with {_short(', '.join(sorted(found)))}" if found else "an empty object"


def _shown(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."
