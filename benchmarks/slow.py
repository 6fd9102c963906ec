"""slow: the burst of many schedules on all, half and a quarter of the CPU, with the calls and the CPU of each part.

A slower machine shows work that is done again because time is short. Half of the CPU is every second core. For a
quarter, a process on each of these cores does nothing but use it. The cloud and this program share what is left.

Each burst says how much CPU the emulator and each Lambda used before the instant and after it, and how many calls the
emulator answered. A burst that does the same work on less CPU makes the same calls, and takes as much longer as it has
less CPU. `SLUICE_BENCH_SHARES=1,0.5` plays these shares alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.table import Table

from benchmarks.burst import AHEAD_S, JOBS, PATIENCE_S, WORKFLOW, one_shots
from benchmarks.cloud import own_cloud
from benchmarks.measurement import Results
from benchmarks.processes import Sampler, of_cloud
from benchmarks.product import deploy
from benchmarks.progress import Progress
from benchmarks.target_queue import TargetQueue, figures
from infra.local import counts

SHARES = tuple(float(share) for share in os.environ.get("SLUICE_BENCH_SHARES", "1,0.5,0.25").split(","))
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "1"))


def measure(progress: Progress) -> Results:
    runs: list[dict[str, Any]] = []
    plays = [(repetition, share) for repetition in range(1, REPETITIONS + 1) for share in SHARES]
    for _, share in progress.each(plays, _named, lambda play: f"{play[1]:.0%}"):
        with limited_to(share):
            begun = time.monotonic()
            run = once(progress)
        runs.append({"share": share, **run, "took_s": round(time.monotonic() - begun, 1)})
    return {"slow": {"jobs": JOBS, "runs": runs}}


def _named(play: tuple[int, float]) -> str:
    return f"repetition {play[0]} of {REPETITIONS}, {play[1]:.0%} of the CPU"


@contextmanager
def limited_to(share: float) -> Iterator[None]:
    """Leave this share of the CPU to this process and to those that it starts."""
    every = os.sched_getaffinity(0)
    cores = sorted(every)[: max(1, round(len(every) * max(share, 0.5)))]
    os.sched_setaffinity(0, cores)
    burners = [
        subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
        for core in (cores if share < 0.5 else ())
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
        os.sched_setaffinity(0, every)


def once(progress: Progress) -> dict[str, Any]:
    """Play the burst once, on a cloud of its own."""
    progress("starting a cloud")
    with own_cloud(counted=True) as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "slow")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        progress("loading schedules")
        begun = time.time()
        one_shots(cloud, WORKFLOW, JOBS)
        with Sampler(partial(of_cloud, cloud.layout.root)) as sampler:
            queue.wait_for(JOBS, AHEAD_S + PATIENCE_S, lambda count: progress("arrived", count, JOBS))
        arrivals = queue.drain()
        time.sleep(2 * counts.WRITTEN_EVERY_S)
        calls = counts.read(cloud.layout.counts)
    due, last = min(one.nominal_at for one in arrivals) / 1000, max(one.sent_at for one in arrivals) / 1000
    return {
        **figures(arrivals, JOBS),
        "cpu_before_s": sampler.used(begun, due),
        "cpu_after_s": sampler.used(due, last + 1),
        "calls_before": calls_between(calls, begun, due),
        "calls_after": calls_between(calls, due, last + 1),
    }


def calls_between(calls: counts.Counts, begin: float, end: float) -> dict[str, int]:
    """The calls of these seconds, the most frequent ones first."""
    found: Counter[str] = Counter()
    for second, of in calls.items():
        if begin <= second < end:
            found += of
    return dict(found.most_common())


def tables(results: Results) -> list[Table]:
    found = results["slow"]
    table = Table(
        *("CPU", "seconds", "per second", "p50", "p99", "missed", "doubled"),
        title=f"slow: a burst of {found['jobs']:,} schedules on less CPU, lateness in ms",
        title_justify="left",
    )
    for run in found["runs"]:
        late = (f"{run['lateness_ms'][share]:,.0f}" for share in ("p50", "p99"))
        cells = (f"{run['share']:.0%}", run["seconds"], run["per_second"], *late, run["missed"], run["doubled"])
        table.add_row(*(str(cell) for cell in cells))
    names = ("cpu_before_s", "cpu_after_s", "calls_before", "calls_after")
    return [table, *(_by_part(name, found["runs"]) for name in names)]


def _by_part(name: str, runs: list[dict[str, Any]]) -> Table:
    """A column for each run, a row for each part or call."""
    title = name.replace("_s", " in s").replace("_", " ").replace("before", "before the instant")
    table = Table("", *(f"{run['share']:.0%}" for run in runs), title=title, title_justify="left")
    for part in dict.fromkeys(part for run in runs for part in run[name]):
        table.add_row(part, *(f"{run[name].get(part, 0):,}" for run in runs))
    return table
