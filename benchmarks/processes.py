"""The CPU time that the processes of a benchmark use, by part: those of a local cloud, or those of another scheduler.

Linux says it in `/proc`. A process that begins and ends between two samples is not counted, nor is what a process uses
between the last sample and its end."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

EMULATOR = "emulator"
LAMBDA = "Lambda "  # the parts that are Lambdas begin with this
OTHERS = "others"
_FUNCTION = re.compile(r"/ministack-lambda-sluice-local-([\w-]+)-\w+/_worker\.py")

Id = tuple[int, int]  # the number of a process and its start, because numbers are used again
Reading = Mapping[Id, tuple[str, float]]  # of each process its part and the CPU time in s that it has used so far
Read = Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Process:
    """``folder`` is its entry in `/proc`, ``cpu_s`` what it has used so far, without its children."""

    id: Id
    parent: int
    cpu_s: float
    folder: Path


def processes() -> Iterator[Process]:
    """The processes of this machine."""
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name in front may have spaces and brackets. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        cpu_s = (int(stat[11]) + int(stat[12])) / ticks
        yield Process((int(folder.name), int(stat[19])), int(stat[1]), cpu_s, folder)


def of_cloud(root: Path) -> Reading:
    """The processes of the local cloud below ``root``: the emulator, each Lambda by its name, and others."""
    found: dict[Id, tuple[str, float]] = {}
    for process in processes():
        try:
            command = (process.folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            where = os.readlink(process.folder / "cwd")
        except OSError:  # it has ended
            continue
        if str(root) in command or str(root) in where:
            found[process.id] = part_of(command), process.cpu_s
    return found


def part_of(command: str) -> str:
    """The part of the cloud that a process belongs to, by its command."""
    if found := _FUNCTION.search(command):
        return f"{LAMBDA}{found[1]}"
    return EMULATOR if "infra.local.aws" in command else OTHERS


def of_trees(roots: Mapping[str, int]) -> Reading:
    """The processes of these numbers, and all that they have started: ``roots`` are the numbers by part."""
    every = list(processes())
    children: defaultdict[int, list[Process]] = defaultdict(list)
    for process in every:
        children[process.parent].append(process)
    found: dict[Id, tuple[str, float]] = {}
    for part, root in roots.items():
        waiting = [process for process in every if process.id[0] == root]
        while waiting:
            process = waiting.pop()
            found[process.id] = part, process.cpu_s
            waiting += children[process.id[0]]
    return found


def cpu_by_part(reading: Reading) -> dict[str, float]:
    """The CPU time in s that the processes of each part have used so far."""
    found: defaultdict[str, float] = defaultdict(float)
    for part, cpu_s in reading.values():
        found[part] += cpu_s
    return dict(found)


@dataclass
class Sampler:
    """Samples the CPU time by part while its block runs: at its begin, every some seconds, and at its end.

    ``samples`` are instants in epoch s and what each part has used until then, of processes that have ended, too."""

    read: Read
    every_s: float = 1.0
    samples: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    _last: dict[Id, tuple[str, float]] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Sampler:
        self.sample()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.sample()

    def sample(self) -> None:
        # A process that has ended keeps what it had used when it was seen last.
        self._last |= self.read()
        self.samples.append((time.time(), cpu_by_part(self._last)))

    def _run(self) -> None:
        while not self._done.wait(self.every_s):
            self.sample()

    def used(self, begin: float | None = None, end: float | None = None) -> dict[str, float]:
        """The CPU time in s of each part between the samples next to these instants in epoch s; without them between
        the first sample and the last. Parts that used none are left out."""
        before = [used for at, used in self.samples if begin is not None and at <= begin]
        after = [used for at, used in self.samples if end is not None and at >= end]
        first = before[-1] if before else self.samples[0][1]
        last = after[0] if after else self.samples[-1][1]
        used = {part: round(until - first.get(part, 0.0), 2) for part, until in last.items()}
        return {part: seconds for part, seconds in sorted(used.items()) if seconds > 0}
