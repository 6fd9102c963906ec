"""slow: the burst of many schedules on all, half and a quarter of the CPU, with the calls and the CPU of each part.

A slower machine shows work that is done again because time is short. Half of the CPU is every second core. For a
quarter, a process on each of these cores does nothing but use it. The cloud and this program share what is left.

Each burst says how much CPU the emulator and each Lambda used before the instant and after it, and how many calls the
emulator answered. A burst that does the same work on less CPU makes the same calls, and takes as much longer as it has
less CPU. `SLUICE_BENCH_SHARES=1,0.5` plays these shares alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.burst import AHEAD_S, JOBS, PATIENCE_S, WORKFLOW, one_shots
from benchmarks.cloud import own_cloud
from benchmarks.measurement import Progress, Results
from benchmarks.product import deploy
from benchmarks.target_queue import TargetQueue, figures
from infra.local import counts

SHARES = tuple(float(share) for share in os.environ.get("SLUICE_BENCH_SHARES", "1,0.5,0.25").split(","))
REPETITIONS = int(os.environ.get("SLUICE_BENCH_REPETITIONS", "1"))
SAMPLED_EVERY_S = 1.0
EMULATOR = "emulator"
_FUNCTION = re.compile(r"/ministack-lambda-sluice-local-([\w-]+)-\w+/_worker\.py")

Sample = Mapping[str, float]


def measure(progress: Progress) -> Results:
    runs: list[dict[str, Any]] = []
    total = REPETITIONS * len(SHARES)
    for number in range(REPETITIONS):
        for place, share in enumerate(SHARES):
            done = number * len(SHARES) + place
            about = f"{share:.0%} of the CPU, {number + 1}/{REPETITIONS}, {_left(runs, total - done)}"

            with limited_to(share):
                begun = time.monotonic()
                run = once(partial(_say, progress, about))
            runs.append({"share": share, **run, "took_s": round(time.monotonic() - begun, 1)})
    return {"slow": {"jobs": JOBS, "runs": runs}}


def _say(progress: Progress, part: str, about: str, done: int, total: int) -> None:
    progress(f"{part}: {about}", done, total)


def _left(runs: list[dict[str, Any]], more: int) -> str:
    """How long the rest takes, by what the runs before took."""
    if not runs:
        return f"{more} to play"
    return f"some {more * sum(run['took_s'] for run in runs) / len(runs) / 60:.0f} min left"


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
    progress("starting a cloud", 0, JOBS)
    with own_cloud(counted=True) as cloud:
        queue = TargetQueue(lambda: cloud.client("sqs"), "slow")
        deploy(cloud, {"workflows": {WORKFLOW: queue.workflow()}})
        progress("loading schedules", 0, JOBS)
        begun = time.time()
        one_shots(cloud, WORKFLOW, JOBS)
        with Sampler(cloud.layout.root) as sampler:
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


@dataclass
class Sampler:
    """Reads the CPU time of the cloud's processes each second."""

    root: Path
    samples: list[tuple[float, Sample]] = field(default_factory=list)
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.samples.append((time.time(), cpu_by_part(self.root)))

    def _run(self) -> None:
        while not self._done.is_set():
            self.samples.append((time.time(), cpu_by_part(self.root)))
            self._done.wait(SAMPLED_EVERY_S)

    def used(self, begin: float, end: float) -> dict[str, float]:
        """The CPU time in s of each part between the samples next to these instants."""
        first = max((one for one in self.samples if one[0] <= begin), default=self.samples[0], key=lambda one: one[0])
        last = min((one for one in self.samples if one[0] >= end), default=self.samples[-1], key=lambda one: one[0])
        used = {name: round(at_end - first[1].get(name, 0.0), 1) for name, at_end in last[1].items()}
        return {name: seconds for name, seconds in sorted(used.items()) if seconds > 0}


def cpu_by_part(root: Path) -> dict[str, float]:
    """The CPU time in s that the processes of a cloud have used so far: the emulator, and each Lambda by its name."""
    found: defaultdict[str, float] = defaultdict(float)
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            where = os.readlink(folder / "cwd")
        except OSError:  # it has ended
            continue
        if str(root) not in command and str(root) not in where:
            continue
        found[part_of(command)] += (int(stat[11]) + int(stat[12])) / ticks
    return dict(found)


def part_of(command: str) -> str:
    """The part of the cloud that a process belongs to, by its command."""
    if found := _FUNCTION.search(command):
        return f"Lambda {found[1]}"
    return EMULATOR if "infra.local.aws" in command else "others"


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
