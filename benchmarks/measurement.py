"""The interface of a measurement: one module (or package) under `benchmarks`, whose name `make bench ONLY=<name>`
takes.

It has two functions, and is listed in `ALL`:

    def measure(progress: Progress) -> Results       JSON values by their keys in the results, usually one
    def tables(results: Results) -> list[Table]      the same for people, with units

`progress` prints how far it is (`benchmarks/progress.py`): `measure` goes through its steps with `progress.each`.

It may have a third, which names what exceeds a budget; then `make bench` fails, and stores the results nevertheless:

    def over_budget(results: Results) -> list[str]"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from rich.table import Table

from benchmarks.progress import Progress

# In the order of execution: measurements that other load disturbs come first.
ALL = (
    "event",
    "burst",
    "slow",
    "killed",
    "steady",
    "peers",
    "sustained",
    "registration",
    "emitters",
    "tick",
    "cpu",
    "cold_start",
    "startup",
    "app_tests",
    "frames",
    "console",
    "matrix",
    "cost",
    "history",
    "aws_model",
)


Results = dict[str, Any]


class Measurement(Protocol):
    def measure(self, progress: Progress) -> Results: ...

    def tables(self, results: Results) -> list[Table]: ...


def over_budget(name: str, results: Results) -> list[str]:
    """What exceeds the budgets of a measurement; nothing if it has none."""
    found: list[str] = getattr(load(name), "over_budget", lambda results: [])(results)
    return found


def load(name: str) -> Measurement:
    """The measurement of this name, imported on request, so that a broken one does not affect the others."""
    return cast(Measurement, import_module(f"benchmarks.{name}"))
