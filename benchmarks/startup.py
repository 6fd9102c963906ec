"""startup: how soon the command line answers, and how much of that is its own start.

Each command is a process of its own, as a user starts it. `sluice why schedule` asks an API on this machine that
answers at once, so the figure is that of the command line alone. *Own* is the CPU time beyond that of an interpreter
that does nothing: a busy machine disturbs it less than the time on the clock. The commands take turns, so that other
load affects all of them.

The budgets are part of the measurement: it fails when a median exceeds one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

from rich.table import Table

from benchmarks.machine import ROOT
from benchmarks.measurement import Results
from benchmarks.progress import Progress

REPETITIONS = 15
WALL_MS, OWN_MS = 400.0, 200.0  # the budgets of a command
NOTHING = "python"
SLUICE = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"
NAME = "demo.flights.clean"
COMMANDS = {
    NOTHING: ["-c", "pass"],
    "sluice --help": ["-c", SLUICE, "--help"],
    "sluice why": ["-c", SLUICE, "why"],
    "sluice why schedule": ["-c", SLUICE, "why", "schedule", NAME],
}
ANSWER = {"schedule": NAME, "state": "enabled", "why": "waits for 1 partition of demo.flights", "jobs": []}


def measure(progress: Progress) -> Results:
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    cpu: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with _api() as environment:
        for name in COMMANDS:
            _timed(name, environment)  # compiles the modules and fills the page cache
        for _ in progress.each(range(REPETITIONS), lambda _: "repetition"):
            for name in COMMANDS:
                milliseconds, of_cpu = _timed(name, environment)
                wall[name].append(milliseconds)
                cpu[name].append(of_cpu)
    least = median(cpu[NOTHING])
    return {
        "startup": [
            {"command": name, "wall_ms": round(median(wall[name]), 1), "own_ms": round(median(cpu[name]) - least, 1)}
            for name in COMMANDS
        ]
    }


def tables(results: Results) -> list[Table]:
    title = f"startup: medians of {REPETITIONS}, in ms; at most {WALL_MS:.0f}, of which own {OWN_MS:.0f}"
    table = Table("command", "wall", "own CPU", title=title)
    table.title_justify = "left"
    for one in results["startup"]:
        table.add_row(one["command"], f"{one['wall_ms']:.0f}", f"{one['own_ms']:.0f}")
    return [table]


def over_budget(results: Results) -> list[str]:
    """The commands that take too long, in words."""
    found = []
    for one in results["startup"]:
        for field, budget in (("wall_ms", WALL_MS), ("own_ms", OWN_MS)):
            if one[field] > budget:
                found.append(f"{one['command']}: expected {field} of at most {budget:.0f}, got {one[field]:.0f}")
    return found


def _timed(name: str, environment: dict[str, str]) -> tuple[float, float]:
    """The milliseconds of a command on the clock, and those of its CPU time."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *COMMANDS[name]], env=environment, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 2):  # a group without a command ends with 2
        raise RuntimeError(f"expected {name} to end well, got:\n{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, cpu * 1000


@contextmanager
def _api() -> Iterator[dict[str, str]]:
    """The environment of a user of an API that gives one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(ANSWER).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # With PYTHONDONTWRITEBYTECODE every process would compile everything again.
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "AWS_PROFILE")}
    try:
        yield kept | {
            "SLUICE_API_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "PYTHONPATH": str(ROOT),
        }
    finally:
        server.shutdown()
        server.server_close()
