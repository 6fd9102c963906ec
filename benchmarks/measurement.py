"""What a measurement is: one module (or package) under `benchmarks`, whose name `make bench ONLY=<name>` takes.

It has two functions, and is listed in `ALL`:

    def measure(progress: Progress) -> Results       JSON values by their keys in the results, most often one
    def tables(results: Results) -> list[Table]      the same for people, with units
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from rich.table import Table

# In the order in which they run: what is sensitive to a busy machine comes before what is not.
ALL = ("event", "burst", "steady", "registration", "emitters", "tick", "cold_start", "cost", "history")


Results = dict[str, Any]


class Progress(Protocol):
    """How a measurement says how far it is."""

    def __call__(self, about: str, done: int, total: int) -> None: ...


class Measurement(Protocol):
    def measure(self, progress: Progress) -> Results: ...

    def tables(self, results: Results) -> list[Table]: ...


def load(name: str) -> Measurement:
    """The measurement of this name. Imported when asked for: a broken one harms no other."""
    return cast(Measurement, import_module(f"benchmarks.{name}"))
