"""app_tests: how long tests of apps take with `sluice.testing`, from the construction of the app to the last assertion.

Each case is what a user's test does. The CPU time counts, because a busy machine disturbs it less than the time on the
clock. The import of the package, once for each session of pytest, is measured in processes of its own.

The budgets are part of the measurement: it fails when a median exceeds one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.machine import ROOT
from benchmarks.measurement import Results
from benchmarks.progress import Progress
from sluice.testing import App

REPETITIONS = 9
IMPORT = "import of sluice.testing"
TEST_MS, MONTH_MS = 100.0, 1_000.0  # the budgets of a test, and of one that spans a month
EVENT_MS = 10.0  # of an event under a policy
EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
QUEUE = {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/000000000000/sluice-target-a"}
FLIGHTS, WEATHER = ({"type": "partition", "dataset": name} for name in ("flights", "weather"))
EDGES = [{"from": one, "to": other} for one, other in ("ab", "ac", "bd", "cd")]


def app(trigger: dict[str, Any], target: dict[str, Any], **fields: Any) -> App:
    """An app with one schedule, ``join``."""
    names = ("flights", "weather")
    return App(
        {
            "namespace": "demo",
            "app": "flights",
            "datasets": {name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": ["day"]} for name in names},
            "policies": {"slow": {"max_events": 20, "interval": "1m"}},
            "workflows": {"join": {"target": target}, "step": {"target": EMR}},
            "schedules": {"join": {"workflow": "join", "enabled": True, "trigger": trigger} | fields},
            "dags": {
                "nightly": {
                    "enabled": True,
                    "trigger": {"type": "event", "event": "night"},
                    "nodes": {node: {"workflow": "step"} for node in "abcd"},
                    "edges": EDGES,
                }
            },
        }
    )


def both() -> None:
    made = app({"type": "all", "triggers": [FLIGHTS, WEATHER]}, EMR, by=["day"])
    made.partition("flights", day=1)
    made.advance("5m")
    made.partition("weather", day=1)
    made.run("join", day=1).succeed()


def dag() -> None:
    made = app(FLIGHTS, EMR)
    made.event("night")
    for node in "abcd":
        made.dag_run("nightly").node(node).succeed()
    assert made.dag_run("nightly").state == "SUCCEEDED"


def policy() -> None:
    made = app({"type": "time", "expression": "*/10 * * * *"}, QUEUE, spread={"count": 30}, policy="slow")
    made.advance("13m")
    assert len(made.runs("join")) == 30


def nights() -> None:
    made = app({"type": "time", "expression": "0 5 * * *"}, EMR)
    for _ in range(30):
        made.advance_to(made.next_fires("join")[0])
        made.runs("join")[-1].succeed()


def spans() -> None:
    made = app({"type": "time", "expression": "0 5 * * *"}, EMR)
    made.runs_take("20m")
    made.advance("30d")
    assert [run.state for run in made.runs("join")] == ["SUCCEEDED"] * 30


def hours() -> None:
    made = app({"type": "time", "expression": "0 */6 * * *"}, QUEUE)
    made.advance("30d")
    assert len(made.runs("join")) == 120


CASES: dict[str, tuple[Callable[[], None], float]] = {
    "two partitions, and a run that succeeds": (both, TEST_MS),
    "a DAG of four nodes": (dag, TEST_MS),
    "30 events under a policy": (policy, 30 * EVENT_MS),
    "a month of nights, each with a run that succeeds": (nights, MONTH_MS),
    "a month of nights whose runs take 20 minutes": (spans, MONTH_MS),
    "a month of messages, every six hours": (hours, MONTH_MS),
}


def measure(progress: Progress) -> Results:
    found: dict[str, list[float]] = {name: [] for name in (IMPORT, *CASES)}
    with App.quiet():
        for case, _ in CASES.values():
            case()  # validators are built at their first use
        for _ in progress.each(range(REPETITIONS), lambda _: "repetition"):
            found[IMPORT].append(_import_ms())
            for name, (case, _) in CASES.items():
                begun = time.process_time()
                case()
                found[name].append((time.process_time() - begun) * 1000)
    return {"app_tests": [{"test": name, "cpu_ms": round(median(each), 1)} for name, each in found.items()]}


def tables(results: Results) -> list[Table]:
    table = Table("test", "CPU", title=f"app_tests: medians of {REPETITIONS}, in ms")
    table.title_justify = "left"
    for one in results["app_tests"]:
        table.add_row(one["test"], f"{one['cpu_ms']:,.0f}")
    return [table]


def over_budget(results: Results) -> list[str]:
    """The tests that take too long, in words."""
    return [
        f"{one['test']}: expected at most {CASES[one['test']][1]:,.0f} ms, got {one['cpu_ms']:,.0f}"
        for one in results["app_tests"]
        if one["test"] in CASES and one["cpu_ms"] > CASES[one["test"]][1]
    ]


def _import_ms() -> float:
    code = "import time; import sluice.testing; print(time.process_time() * 1000)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True
    )
    return float(done.stdout)
