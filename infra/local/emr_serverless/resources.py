"""The resources and cost of a run in AWS: vCPUs, memory and storage of its workers.

Defaults are those of EMR Serverless for Spark ("Spark job properties" of the user guide): 4 vCPU and 14 GB per worker
plus 10 % of memory overhead, 20 GB of disk, initially one driver and three executors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .records import Usage

_DEFAULT_CORES = 4
_DEFAULT_MEMORY = "14g"
_DEFAULT_EXECUTORS = 3
_MEMORY_OVERHEAD = 1.1
_STORAGE_GB_PER_WORKER = 20
_MIN_BILLED_SECONDS = 60
_GB_PER_UNIT = {"k": 1 / 1024**2, "m": 1 / 1024, "g": 1.0, "t": 1024.0}


@dataclass(frozen=True)
class Need:
    """The resources of all workers of one run, and the driver's own vCPUs."""

    vcpus: int
    driver_vcpus: int
    memory_gb: float
    storage_gb: float

    def over(self, seconds: float) -> Usage:
        """Resource hours after `seconds` of running."""
        hours = seconds / 3600
        return Usage(round(self.vcpus * hours, 3), round(self.memory_gb * hours, 3), round(self.storage_gb * hours, 3))

    def billed(self, seconds: float) -> Usage:
        """Like `over`, with AWS's minimum of one minute; the first 20 GB of storage per worker are free."""
        charged = self.over(max(seconds, _MIN_BILLED_SECONDS))
        return Usage(charged.vcpu_hours, charged.memory_gb_hours, 0.0)


def need(properties: Mapping[str, str]) -> Need:
    """The need of a run with these Spark properties. Raises ValueError for an invalid number."""
    driver_vcpus = _whole(properties, "spark.driver.cores", _DEFAULT_CORES)
    executor_vcpus = _whole(properties, "spark.executor.cores", _DEFAULT_CORES)
    executors = _executors(properties)
    memory = _gigabytes(properties, "spark.driver.memory") + executors * _gigabytes(properties, "spark.executor.memory")
    return Need(
        vcpus=driver_vcpus + executors * executor_vcpus,
        driver_vcpus=driver_vcpus,
        memory_gb=memory * _MEMORY_OVERHEAD,
        storage_gb=(1 + executors) * _STORAGE_GB_PER_WORKER,
    )


def vcpus_of(maximum_capacity: Mapping[str, Any] | None, default: int) -> int:
    """The vCPUs of an application's `maximumCapacity`, whose `cpu` has the form "16 vCPU"."""
    given = re.match(r"\s*(\d+)", str((maximum_capacity or {}).get("cpu", "")))
    return int(given.group(1)) if given else default


def _executors(properties: Mapping[str, str]) -> int:
    executors = _whole(properties, "spark.executor.instances", _DEFAULT_EXECUTORS)
    if properties.get("spark.dynamicAllocation.enabled", "true").lower() != "true":
        return executors
    initial = _whole(properties, "spark.dynamicAllocation.initialExecutors", executors)
    return min(initial, _whole(properties, "spark.dynamicAllocation.maxExecutors", initial))


def _whole(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, str(default)).strip()
    if not text.isdecimal():
        raise ValueError(f"{name}: expected a whole number, got {text!r}")
    return int(text)


def _gigabytes(properties: Mapping[str, str], name: str) -> float:
    text = properties.get(name, _DEFAULT_MEMORY).strip().lower()
    given = re.fullmatch(r"(\d+)([kmgt])b?", text)
    if given is None:
        raise ValueError(f"{name}: expected a size such as 14g, got {text!r}")
    return math.ceil(int(given.group(1)) * _GB_PER_UNIT[given.group(2)] * 100) / 100
