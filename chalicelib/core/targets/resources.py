"""Resources: the size of a run at its target, per workflow and overridden per schedule (W13).

*Worker* has the sense of EMR Serverless here: the driver or an executor. The valid sizes are listed at
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
"""

from __future__ import annotations

from pydantic import Field, model_validator

from chalicelib.core.documents import Document
from chalicelib.core.errors import invalid

# By the number of vCPUs of a worker: the least and the most GB of memory, and the step between valid sizes.
MEMORY = {1: (2, 8, 1), 2: (4, 16, 1), 4: (8, 30, 1), 8: (16, 60, 4), 16: (32, 120, 8)}
# The defaults of Spark on EMR Serverless:
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-spark.html
USUAL_VCPU, USUAL_WORKERS = 4, 3
OVERHEAD = 0.1  # of the heap: spark.driver.memoryOverheadFactor, spark.executor.memoryOverheadFactor
MIN_OVERHEAD_MB = 384


class Resources(Document):
    """``workers`` executors and a driver, each with ``vcpu`` vCPUs, ``memory_gb`` and ``disk_gb``. ``application`` is
    the EMR Serverless application, which also determines the network."""

    workers: int | None = Field(default=None, ge=1, le=10_000)
    vcpu: int | None = None
    memory_gb: int | None = None
    disk_gb: int | None = Field(default=None, ge=20, le=200)
    application: str | None = Field(default=None, pattern=r"^[0-9a-z]{1,64}$")

    @model_validator(mode="after")
    def _is_a_worker(self) -> Resources:
        if self.vcpu is not None and self.vcpu not in MEMORY:
            raise invalid("vcpu", "1, 2, 4, 8 or 16 vCPUs for each worker", self.vcpu)
        if self.memory_gb is None:
            return self
        cores = self.vcpu if self.vcpu is not None else USUAL_VCPU
        least, most, step = MEMORY[cores]
        if not least <= self.memory_gb <= most or (self.memory_gb - least) % step:
            steps = "" if step == 1 else f", in steps of {step}"
            raise invalid("memory_gb", f"{least} to {most} GB{steps} beside {cores} vCPUs", self.memory_gb)
        return self

    @property
    def sizes_workers(self) -> bool:
        return self.workers is not None or self.vcpu is not None

    @property
    def vcpus(self) -> int:
        """The vCPUs of the whole run: of its executors and its driver."""
        workers = self.workers if self.workers is not None else USUAL_WORKERS
        return (workers + 1) * (self.vcpu if self.vcpu is not None else USUAL_VCPU)

    @property
    def spark(self) -> dict[str, str]:
        """The Spark properties for these resources. They also bound dynamic allocation to this number."""
        properties: dict[str, str] = {}
        for role in ("driver", "executor"):
            if self.vcpu is not None:
                properties[f"spark.{role}.cores"] = str(self.vcpu)
            if self.memory_gb is not None:
                properties[f"spark.{role}.memory"] = f"{_heap_mb(self.memory_gb)}m"
            if self.disk_gb is not None:
                properties[f"spark.emr-serverless.{role}.disk"] = f"{self.disk_gb}g"
        if self.sizes_workers:
            workers = str(self.workers if self.workers is not None else USUAL_WORKERS)
            properties |= {"spark.executor.instances": workers, "spark.dynamicAllocation.maxExecutors": workers}
        return properties


def _heap_mb(memory_gb: int) -> int:
    """The heap in MB of a worker with this memory. Spark adds its memory overhead to the heap."""
    whole = memory_gb * 1024
    return min(int(whole / (1 + OVERHEAD)), whole - MIN_OVERHEAD_MB)
