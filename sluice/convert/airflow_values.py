"""The values in a DAG file that can be known without executing the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression whose value is known only after its execution."""

    text: str


@dataclass(frozen=True, slots=True)
class Span:
    seconds: float


@dataclass(frozen=True, slots=True)
class When:
    """A wall time, and its zone; None if the file names no zone."""

    wall: datetime
    zone: str | None


@dataclass(frozen=True, slots=True)
class ZoneName:
    name: str


@dataclass(frozen=True, slots=True)
class Asset:
    name: str


@dataclass(frozen=True, slots=True)
class Assets:
    """``kind`` is ``all`` or ``any``."""

    kind: str
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Timetable:
    """A call of a timetable class, with its arguments."""

    kind: str
    given: tuple[Any, ...]
    named: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Label:
    """The label of an edge, which has no effect."""


@dataclass
class Task:
    """A call of an operator or a sensor, or of a function with ``@task``. ``path`` holds its groups."""

    id: str
    kind: str
    line: int
    named: dict[str, Any]
    path: tuple[str, ...]


@dataclass
class Group:
    path: tuple[str, ...]


@dataclass
class Dag:
    id: str
    line: int
    named: dict[str, Any]
    about: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    edges: list[tuple[list[Any], list[Any]]] = field(default_factory=list)  # of tasks and groups

    def members(self, value: Any) -> set[str]:
        """The ids of a task, or of all tasks in a group."""
        if isinstance(value, Task):
            return {value.id}
        depth = len(value.path)
        return {task.id for task in self.tasks.values() if task.path[:depth] == value.path}

    def pairs(self) -> list[tuple[str, str]]:
        """The edges between tasks, without duplicates. An edge to a group leads to the first tasks of the group, and an
        edge from a group begins at its last tasks."""
        whole = [(self.members(one), self.members(other), ups, downs)
                 for ups, downs in self.edges for one in ups for other in downs]  # fmt: skip
        found: dict[tuple[str, str], None] = {}
        plain = {(a, b) for ones, others, _, _ in whole for a in ones for b in others if ones != others}
        for ones, others, _, _ in whole:
            last = [each for each in ones if not any((each, next_) in plain for next_ in ones)]
            first = [each for each in others if not any((before, each) in plain for before in others)]
            for one in sorted(last, key=list(self.tasks).index):
                for other in sorted(first, key=list(self.tasks).index):
                    if one != other:
                        found[one, other] = None
        return list(found)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file. ``kind`` is ``dag``, ``task``, ``task_group`` or ``plain``."""

    kind: str
    node: ast.FunctionDef
    named: dict[str, Any]
    mapped: bool = False
    flavour: str = "@task"


def inside(value: Any) -> Iterator[Any]:
    """The value, and all values that its lists and objects contain, at any depth."""
    yield value
    if isinstance(value, dict):
        for item in value.values():
            yield from inside(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from inside(item)
