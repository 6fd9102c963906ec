"""Views of DAGs as the API answers with them. `tests/web/test_dags.py` compares their fields with the real ones."""

from __future__ import annotations

from typing import Any

from tests.cli.recorded import View, past, stamp


def dag(name: str = "demo.flights.daily") -> View:
    node = {"properties": {}, "constraints": [], "priority": None, "timeout": {"after": "1d", "then": "abort"}}
    names = ("clean", "join", "report")
    return {
        **stamp("dag", name),
        "trigger": {"type": "partition", "dataset": "flights", "count": 1},
        "by": ["year", "month", "day"],
        "zone": "UTC",
        "catch_up": {"mode": "all", "within": "1d"},
        "nodes": {each: {"workflow": each, **node} for each in names},
        "edges": [
            {"from": "clean", "to": "join", "on": ["COMPLETED"], "within": "6h"},
            {"from": "join", "to": "report", "on": ["COMPLETED", "FAILED"], "within": None},
        ],
        "state": "enabled",
        "enabled": True,
        "stops": [],
        "skips": [],
        "triggered_by": "1 partition of flights",
        "schedules": [f"{name}~", *(f"{name}~0a1b2c3d~{each}" for each in names)],
    }


def dag_run(state: str = "FAILED", **changed: Any) -> View:
    def node(name: str, state: str, why: str, run: bool = True) -> View:
        run_id = f"demo.flights.daily~0a1b2c3d~{name}.m3k2j9x1.0123456789abcdef0123" if run else None
        at = past(minutes=3.5) if run else None
        return {
            "state": state,
            "why": why,
            "code": {"SUCCEEDED": "trigger_met", "FAILED": "target_failed"}.get(state),
            "run_id": run_id,
            "started_at": at,
            "ended_at": at,
            "attempt": 1,
            "round": 1,
            "workflow": f"demo.flights.{name}",
            "when": "all_succeeded",
        }

    return {
        "run_id": "demo.flights.daily~.m3k2j9x1.0123456789abcdef0123",
        "dag": "demo.flights.daily",
        "graph": "0a1b2c3d",
        "state": state,
        "fired_by": "trigger met: 1 partition of demo.flights came",
        "partition": {"year": "2013", "month": "1", "day": "1"},
        "nominal_at": None,
        "started_at": past(minutes=9.5),
        "ended_at": past(minutes=3.5),
        "end_by": None,
        "late": False,
        "reruns": [],
        "nodes": {
            "clean": node("clean", "SUCCEEDED", "trigger met"),
            "join": node("join", "FAILED", "disk full"),
            "report": node("report", "BLOCKED", "needs join COMPLETED, which is FAILED", run=False),
        },
        "edges": [
            {"from": start, "to": end, "on": ["COMPLETED"], "within": None}
            for start, end in (("clean", "join"), ("join", "report"))
        ],
        **changed,
    }
