"""cold_start: the cost of the imports of each Lambda's first invocation, as a multiple of `import boto3`.

The imports are not listed here: a child process calls the handler, with clients that return empty answers, and prints
the modules that it imported. Further child processes import only these modules, or only boto3, and are timed. Creating
clients and calling AWS is not included. Nine processes of each kind run alternately, so that other load affects all
kinds; the medians remove outliers.

The modules are compiled already here. In a Lambda they may not be: see docs/internals/measurements.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.first_invocation import environment_of
from benchmarks.machine import ROOT
from benchmarks.measurement import Results
from benchmarks.progress import Progress

REPETITIONS = 9
HANDLERS = ("api", "tick", "objects", "check", "run_state")
BASE = "boto3"

TIMED = """
import json, sys
names = json.load(sys.stdin)
import importlib, resource, time
wall, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
for name in names:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # a name that a package made up while it was imported, such as those of six.moves
after = resource.getrusage(resource.RUSAGE_SELF)
wall = time.perf_counter() - wall
print(json.dumps([wall * 1000, (after.ru_utime - cpu.ru_utime) * 1000]))
"""


def measure(progress: Progress) -> Results:
    imported = {BASE: ["boto3"]} | {handler: first_invocation(handler) for handler in HANDLERS}
    for name, names in imported.items():
        _timed(name, names)  # warms compiled modules and the page cache, as in a Lambda's image
    wall: dict[str, list[float]] = {name: [] for name in imported}
    cpu: dict[str, list[float]] = {name: [] for name in imported}
    for _ in progress.each(range(REPETITIONS), lambda _: "repetition"):
        for name, modules in imported.items():
            milliseconds, of_cpu = _timed(name, modules)
            wall[name].append(milliseconds)
            cpu[name].append(of_cpu)
    return {"cold_start": [_entry(name, wall, cpu) for name in HANDLERS]}


def tables(results: Results) -> list[Table]:
    title = f"cold start: imports of the first invocation, medians of {REPETITIONS}, in ms"
    table = Table("Lambda", "wall", "user CPU", "boto3 wall", "boto3 CPU", "ratio", "CPU ratio", title=title)
    table.title_justify = "left"
    for one in results["cold_start"]:
        fields = ("handler_ms", "handler_cpu_ms", "boto3_ms", "boto3_cpu_ms")
        ratios = (f"{one['ratio']:.2f}", f"{one['cpu_ratio']:.2f}")
        table.add_row(one["handler"], *(f"{one[field]:.0f}" for field in fields), *ratios)
    return [table]


def first_invocation(handler: str) -> list[str]:
    """The modules that the first invocation of a handler imports, in order."""
    answer = _child(["-m", "benchmarks.first_invocation", handler], "")
    names: list[str] = json.loads(answer)
    return names


def _timed(handler: str, names: list[str]) -> tuple[float, float]:
    # `app` imports the routes unless Lambda names a handler of events.
    wall, cpu = json.loads(_child(["-c", TIMED], json.dumps(names), handler))
    return float(wall), float(cpu)


def _child(arguments: list[str], stdin: str, handler: str = "") -> str:
    """The last line that a new interpreter prints. Raises RuntimeError if it fails."""
    # With PYTHONDONTWRITEBYTECODE every child process would compile everything again.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if handler in HANDLERS:
        kept |= environment_of(handler)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=kept, input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"expected {' '.join(arguments)[:60]} to end well, got:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


def _entry(handler: str, wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> dict[str, Any]:
    handler_wall, base = median(wall[handler]), median(wall[BASE])
    handler_cpu, base_cpu = median(cpu[handler]), median(cpu[BASE])
    return {
        "handler": handler,
        "ratio": round(handler_wall / base, 3),
        "boto3_ms": round(base, 1),
        "handler_ms": round(handler_wall, 1),
        "cpu_ratio": round(handler_cpu / base_cpu, 3),
        "boto3_cpu_ms": round(base_cpu, 1),
        "handler_cpu_ms": round(handler_cpu, 1),
    }
