"""The jobs as the cluster starts them: spark-submit, ``--py-files``, paths of ``s3://``, an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyspark
import pytest

from examples.flights import data

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_home")]

JOBS = Path(__file__).parents[2] / "jobs"
VIEWFS = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


def submit(lake: Any, job: str, context: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    lake.put_object(Bucket="lake", Key="context/r1.json", Body=json.dumps(context).encode())
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": f"{lake.directory}/warehouse",
        "spark.hadoop.fs.s3.impl": VIEWFS,
        "spark.hadoop.fs.viewfs.mounttable.lake.linkFallback": f"file://{lake.directory}/lake",
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command += ["--py-files", str(JOBS.parent / "job_library" / "sluice_job.py"), str(JOBS / f"{job}.py")]
    command += ["--sluice-context", "s3://lake/context/r1.json"]
    surroundings = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=surroundings)


@pytest.mark.long  # `tests/e2e/test_real_day.py` of `make test` submits the same job to the emulator
def test_a_submitted_job_prints_summary_and_leaves_its_partition(lake: Any, document: Any) -> None:
    data.upload_day(lake, "lake", "raw/", date(2013, 1, 1), kinds=["flights"])
    properties = {"flights": "s3://lake/raw/flights/", "output": "s3://lake/clean/flights/"}

    done = submit(lake, "clean_flights", document(properties=properties))

    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    summary = json.loads(line)
    assert (summary["job"], summary["day"], summary["rows_in"]) == ("clean_flights", "2013-01-01", 842)
    assert Path(lake.root("clean/flights/year=2013/month=1/day=1/_SUCCESS")).exists()


def test_a_job_without_a_known_day_exits_with_2_and_says_why(lake: Any, document: Any) -> None:
    failed = submit(lake, "clean_flights", document(correlation=None, events=[], properties={"output": "s3://lake/x/"}))

    assert failed.returncode == 2
    # On stdout, though printed to stderr: spark-submit joins the two streams of its Python process.
    assert failed.stdout.startswith("clean_flights: expected one day (year, month, day), got none")
