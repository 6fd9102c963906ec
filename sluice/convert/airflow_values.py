"""The values in a DAG file of Airflow that can be known without executing the file, and its DAGs and tasks."""

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


@dataclass(frozen=True, slots=True)
class Mapped:
    """The arguments of ``expand``, each with its list: a task whose result it is, literals, or an `Unknown`.

    ``objects``: of ``expand_kwargs``, whose one list has an object of arguments for each job."""

    over: dict[str, Any]
    line: int
    objects: bool = False


@dataclass
class Task:
    """A call of an operator or a sensor, or of a function with ``@task``. ``path`` holds its groups.

    ``named``: its arguments, also those that it has from ``default_args``; ``own`` are the keys of the others.
    ``takes``: the tasks whose results are among its arguments.
    """

    id: str
    kind: str
    line: int
    named: dict[str, Any]
    path: tuple[str, ...]
    mapped: Mapped | None = None
    takes: list[str] = field(default_factory=list)
    own: frozenset[str] = frozenset()
    origin: str = ""  # the id of the mapped task of which this one is an item
    item: dict[str, Any] = field(default_factory=dict)  # its arguments

    @property
    def shown(self) -> str:
        """Its id in Airflow."""
        return self.origin or self.id

    def inherit(self, defaults: dict[str, Any]) -> None:
        self.own = frozenset(self.named)
        self.named = {**defaults, **self.named}


@dataclass
class Group:
    """``path``: the groups from the outermost to this one. ``prefix``: the parts of the ids of its tasks. ``defaults``:
    arguments of its tasks."""

    path: tuple[str, ...]
    prefix: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass
class Dag:
    """``intervals``: a run with a cron schedule has the beginning of an interval as its logical date, and starts at its
    end, as in Airflow 2. Otherwise its logical date is the instant of the fire, as in Airflow 3."""

    id: str
    line: int
    named: dict[str, Any]
    about: str = ""
    intervals: bool = True
    tasks: dict[str, Task] = field(default_factory=dict)
    edges: list[tuple[list[Any], list[Any]]] = field(default_factory=list)  # of tasks and groups

    @property
    def defaults(self) -> dict[str, Any]:
        """Its ``default_args``."""
        found = self.named.get("default_args")
        return found if isinstance(found, dict) else {}

    def members(self, value: Any) -> set[str]:
        """The ids of a task, or of all tasks in a group."""
        if isinstance(value, Task):
            return {value.id}
        depth = len(value.path)
        return {task.id for task in self.tasks.values() if task.path[:depth] == value.path}

    def pairs(self) -> list[tuple[str, str]]:
        """The edges between tasks, without duplicates. An edge to a group leads to the first tasks of the group, and an
        edge from a group begins at its last tasks."""
        whole = [
            (self.members(one), self.members(other)) for ups, downs in self.edges for one in ups for other in downs
        ]
        place = {name: number for number, name in enumerate(self.tasks)}
        found: dict[tuple[str, str], None] = {}
        plain = {(a, b) for ones, others in whole for a in ones for b in others if ones != others}
        for ones, others in whole:
            last = [each for each in ones if not any((each, next_) in plain for next_ in ones)]
            first = [each for each in others if not any((before, each) in plain for before in others)]
            for one in sorted(last, key=place.__getitem__):
                for other in sorted(first, key=place.__getitem__):
                    if one != other:
                        found[one, other] = None
        return list(found)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file. ``kind`` is ``dag``, ``task``, ``task_group`` or ``plain``. ``named`` are the arguments
    of its decorator, ``fixed`` those of ``partial``."""

    kind: str
    node: ast.FunctionDef
    named: dict[str, Any]
    fixed: dict[str, Any] = field(default_factory=dict)
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
