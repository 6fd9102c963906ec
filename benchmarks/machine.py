"""The origin of a measurement: commit, date, machine, versions."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Origin:
    """The origin, which is stored in the results with the figures."""

    measured_at: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]

    def ended(self) -> Origin:
        """The origin with the load at the end, which shows other load during the measurement."""
        return replace(self, measured_at={**self.measured_at, "load_after": _load()})


def origin() -> Origin:
    """The origin of a measurement now. `load` is that of the minute before, so that figures of a busy machine show
    it."""
    measured_at = {
        "commit": _git("rev-parse", "HEAD"),
        # The results themselves do not make a checkout dirty.
        "dirty": bool(_git("status", "--porcelain", "--", ".", ":!benchmarks/results.json")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": _load(),
    }
    machine = {"cpu": _cpu(), "cores": os.cpu_count(), "memory_gib": _memory_gib()}
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in ("boto3", "ministack", "chalice")}
    return Origin(measured_at, machine, versions)


def busy_s(stat: Path = Path("/proc/stat")) -> float | None:
    """The CPU time in s that all processes of the machine have used since it started; None if the system does not say.

    The same work takes more of it while the host gives the machine slower processors."""
    if not stat.exists():
        return None
    user, nice, system, _, _, irq, softirq = map(int, stat.read_text().split("\n", 1)[0].split()[1:8])
    return round((user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"), 2)


def used_from(seconds: float) -> Callable[[], dict[str, float]]:
    """Wait so long. Returns a function for ``cpu_s``, the CPU time of the machine from then on; empty if unknown."""
    time.sleep(max(0.0, seconds))
    before = busy_s()

    def used() -> dict[str, float]:
        after = busy_s()
        return {"cpu_s": round(after - before, 1)} if before is not None and after is not None else {}

    return used


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
