"""cost: AWS calls, DynamoDB units and dollars per launched run, for each path, and those of an idle tick.

The cost per run is the use of N repetitions, minus that of as many idle ticks, divided by N. Two repetitions before
warm the caches and create the rows that stay (limits, timers). `capacity` has the billing rules, `prices` the prices.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table as Shown

from benchmarks.cost import report
from benchmarks.cost.paths import APP, PATHS, Path
from benchmarks.cost.plant import Plant, fresh_tables
from benchmarks.cost.usage import Usage
from benchmarks.measurement import Results
from benchmarks.progress import Progress
from chalicelib.core.instants import MINUTE

RUNS = 20
WARM_UP = 2
IDLE_TICKS = 10


@dataclass(frozen=True, slots=True)
class Measured:
    """`per_repetition` includes the cost of the base path (`Path.beyond`), `per_run` excludes it."""

    per_repetition: Usage
    per_run: Usage


def measure(progress: Progress) -> Results:
    idle = _idle_tick(_plant())
    measured: dict[str, Measured] = {}
    for path in progress.each(PATHS, lambda path: path.name):
        measured[path.name] = _measure(path, _plant(), idle, measured)
    costs = [report.entry(path.name, path.about, RUNS * path.each, measured[path.name].per_run) for path in PATHS]
    return {"cost": costs, "cost_idle_tick": report.entry("idle_tick", "a tick with nothing to do", IDLE_TICKS, idle)}


def tables(results: Results) -> list[Shown]:
    return report.tables(results["cost"], results["cost_idle_tick"])


def _measure(path: Path, plant: Plant, idle: Usage, known: dict[str, Measured]) -> Measured:
    plant.deploy({**APP, "schedules": path.schedules})
    for number in range(WARM_UP):
        path.repeat(plant, number)
    plant.restart_meter()
    before = plant.launched
    for number in range(WARM_UP, WARM_UP + RUNS):
        path.repeat(plant, number)
    expected = RUNS * len(path.schedules) * path.each
    if plant.launched - before != expected:
        raise RuntimeError(f"{path.name}: expected {expected} launched runs, got {plant.launched - before}")
    used = (Usage.of(plant.tally) - idle * plant.ticks) * (1 / (RUNS * path.each))
    return Measured(used, used - known[path.beyond].per_repetition if path.beyond else used)


def _idle_tick(plant: Plant) -> Usage:
    plant.deploy(APP)
    plant.pass_by(MINUTE)
    plant.restart_meter()
    plant.pass_by(IDLE_TICKS * MINUTE)
    return Usage.of(plant.tally) * (1 / plant.ticks)


def _plant() -> Plant:
    return Plant(*fresh_tables(), logged=True)
