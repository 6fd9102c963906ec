"""The `spark-submit` command line of a run, and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from . import s3_paths
from .aws import credentials
from .java_runtime import java_home
from .records import JobRun
from .settings import Settings
from .spark_parameters import SubmitParameters

# Flags whose values are lists of files; Spark reads these from the mirror instead of S3.
_FILE_FLAGS = frozenset({"--py-files", "--files", "--jars", "--archives"})

# The C1 compiler only: a small job is mostly start-up, which the optimizing compiler makes longer.
_QUICK_START = ("-XX:TieredStopAtLevel=1",)
# The collector that starts fastest; left out if the job sets one, because Java refuses two.
_QUICK_COLLECTOR = "-XX:+UseSerialGC"

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def spark_home() -> Path:
    """The Spark in the wheel `pyspark`. Raises LookupError if it is not installed."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise LookupError("expected the wheel pyspark, found none: `pip install pyspark==3.5.9`")
    return Path(found.origin).parent


def write_log_settings(directory: Path) -> Path:
    """Log WARN and above to stderr; a job changes the level with `spark.log.level`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "log4j2.properties"
    path.write_text(_LOG4J)
    return path


def command(
    run: JobRun, parameters: SubmitParameters, settings: Settings, directory: Path, buckets: Sequence[str]
) -> list[str]:
    """`spark-submit` for the run: `directory` is its own, `directory/s3/<bucket>` the mirror of each bucket."""
    properties = {**default_properties(directory, buckets), **parameters.properties}
    line = [str(spark_home() / "bin" / "spark-submit"), "--master", settings.spark_master]
    for name, value in properties.items():
        line += ["--conf", f"{name}={value}"]
    for flag, value in parameters.flags:
        line += [flag, _local_list(value, directory) if flag in _FILE_FLAGS else value]
    submit = run.spark_submit
    return [*line, _local(submit["entryPoint"], directory), *(submit.get("entryPointArguments") or ())]


def default_properties(directory: Path, buckets: Sequence[str]) -> dict[str, str]:
    """Properties for a laptop instead of a cluster; the job's own properties override them."""
    properties = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # EMR's containers use UTC; a laptop may not.
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(directory / "tmp"),
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
    }
    for scheme in ("s3", "s3a", "s3n"):
        # The only built-in file system that maps any scheme to one directory per authority (the bucket).
        properties[f"spark.hadoop.fs.{scheme}.impl"] = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    for bucket in buckets:
        mirror = (directory / "s3" / bucket).as_uri()
        properties[f"spark.hadoop.fs.viewfs.mounttable.{bucket}.linkFallback"] = mirror
    return properties


def environment(
    settings: Settings, log_settings: Path, java_options: Sequence[str], job_options: str
) -> dict[str, str]:
    """The environment of a Spark process; `job_options` are the Java options of the job itself."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_CONF_DIR")}
    collector = () if "GC" in job_options else (_QUICK_COLLECTOR,)
    options = [f"-Dlog4j2.configurationFile={log_settings.as_uri()}", *_QUICK_START, *collector, *java_options]
    endpoint = {"AWS_ENDPOINT_URL": settings.endpoint_url} if settings.endpoint_url else {}
    return {
        **inherited,
        **credentials(),
        **endpoint,
        "AWS_REGION": settings.region,
        "AWS_DEFAULT_REGION": settings.region,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # spark-submit puts these before the job's own Java options, which therefore override them.
        "SPARK_SUBMIT_OPTS": " ".join(options),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "TZ": "UTC",
    }


def java_options_of(properties: Mapping[str, str]) -> str:
    """The Java options of the driver that the job sets."""
    return " ".join(
        properties.get(name, "") for name in ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
    )


def _local(uri: str, directory: Path) -> str:
    path = s3_paths.parse(uri)
    return str(path.under(directory / "s3")) if path is not None else uri


def _local_list(value: str, directory: Path) -> str:
    return ",".join(_local(one.strip(), directory) for one in value.split(","))
