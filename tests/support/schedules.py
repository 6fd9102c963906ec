"""Schedules that several tests use."""

from __future__ import annotations

from typing import Any

BY_DAY = ["year", "month", "day"]


def partitions(count: int = 1, workflow: str = "clean", dataset: str = "flights", **fields: Any) -> dict[str, Any]:
    """N new partitions of a dataset start a workflow."""
    trigger = {"type": "partition", "dataset": dataset, "count": count}
    return {"workflow": workflow, "enabled": True, "trigger": trigger} | fields


def after(workflow: str, starts: str, *statuses: str, **fields: Any) -> dict[str, Any]:
    """A workflow starts when another has reached a status."""
    trigger = {"type": "program_status", "workflow": workflow, "statuses": list(statuses) or ["COMPLETED"]}
    return {"workflow": starts, "enabled": True, "trigger": trigger} | fields


def at(expression: str, workflow: str = "clean", **fields: Any) -> dict[str, Any]:
    """A timer starts a workflow."""
    return {"workflow": workflow, "enabled": True, "trigger": {"type": "time", "expression": expression}} | fields


def at_most(count: int, on_unmet: str = "wait") -> dict[str, Any]:
    return {"constraints": [{"type": "concurrency", "max": count, "on_unmet": on_unmet}]}
