"""Mapped tasks of Airflow: ``expand`` over literals becomes a task for each item."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from sluice.convert.airflow_values import Dag, Mapped, Task
from sluice.convert.draft import Draft

MAX_ITEMS = 50  # tasks of one mapped task; a DAG has at most 100 nodes


def unroll(dag: Dag, draft: Draft) -> None:
    """Replace each task that is mapped over literals by one for each item."""
    for task in list(dag.tasks.values()):
        if task.mapped is None:
            continue
        items = _items(task.mapped)
        if items is None or not 0 < len(items) <= MAX_ITEMS:
            continue
        copies = [
            replace(task, id=f"{task.id}-{number}", origin=task.id, item=item, mapped=None)
            for number, item in enumerate(items)
        ]
        draft.find(
            f"line {task.line}",
            f"the mapped task {task.id} became {len(copies)} nodes, one for each item",
            "its items are written in the file",
            "let the job read its item from its properties",
        )
        dag.tasks = {each.id: each for other in dag.tasks.values() for each in (copies if other is task else [other])}
        dag.edges = [(_with(ups, task, copies), _with(downs, task, copies)) for ups, downs in dag.edges]


def _with(members: list[Any], task: Task, copies: list[Task]) -> list[Any]:
    return [each for member in members for each in (copies if member is task else [member])]


def _items(mapped: Mapped) -> list[dict[str, Any]] | None:
    """The arguments of each job; None if they are known only at run time."""
    lists = []
    for value in mapped.over.values():
        if isinstance(value, dict) and not mapped.objects:
            value = list(value.items())
        if not isinstance(value, list | tuple | range) or not all(_is_plain(each) for each in value):
            return None
        lists.append(list(value))
    if mapped.objects:
        return lists[0] if lists and all(isinstance(each, dict) for each in lists[0]) else None
    total = 1
    for each in lists:
        total *= len(each)
    if total > MAX_ITEMS:
        return None
    return [dict(zip(mapped.over, given, strict=True)) for given in product(*lists)]


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, str | int | float | bool)
