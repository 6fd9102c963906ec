"""The code that the two jobs on Sluice's own history share: the lines of the lake, the day of a run, versions of a day.

A day is written completely, next to its present version, as ``day=<day>/as_of=<instant>/``. Its ``_SUCCESS``, which
Spark writes last and atomically, makes it the current version; then older versions are deleted. So no reader sees half
a day."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, RunContext

# One line of the lake, as in `docs/history.md`. Instants and durations in ms. Fields are added but never changed: in a
# day that is older than a field, the field is null.
INSTANTS = (
    "nominal_at due_at accepted_at created_at claimed_at start_requested_at started_at ended_at start_by end_by".split()
)
LINE_SCHEMA = (
    "schema int, kind string, id string, attempt int, rev long, namespace string, app string, schedule string, "
    "workflow string, state string, outcome string, reason string, job string, fired_by string, waited_for string, "
    "number long, priority int, attempts int, version int, target string, target_id string, worker_pool string, "
    "pool string, units int, metrics string, result string, result_refused string, "
    "backfill string, rerun_of string, fire string, dag string, "
    "dag_run string, dag_round int, node string, correlation map<string, string>, partition map<string, string>, "
    "late boolean, count long, missed_start boolean, "
    "missed_end boolean, lateness_ms long, lateness_p50_ms long, lateness_counts map<string, long>, waited_ms long, "
    "calls int, vcpu_hours double, memory_gb_hours double, storage_gb_hours double, cost_usd double, "
    + ", ".join(f"{instant} long" for instant in INSTANTS)
)
# The schema after the compaction, in which instants are timestamps.
COMPACT_SCHEMA = LINE_SCHEMA
for _instant in INSTANTS:
    COMPACT_SCHEMA = COMPACT_SCHEMA.replace(f"{_instant} long", f"{_instant} timestamp")


def day_of(context: RunContext) -> datetime.date:
    """The day of a run: the property ``day``, or the key ``day`` of its correlation or partitions, its own or else its
    upstream's; else the day before the logical start of the first upstream run. Raises ContextError for several
    days."""
    run = context
    while True:
        named = {keys["day"] for keys in (run.properties, run.correlation, *_partitions(run)) if keys and "day" in keys}
        if len(named) > 1:
            listed = ", ".join(sorted(str(name) for name in named))
            raise ContextError(f"run {run.run_id}: expected one day, got {listed}; give the schedule `by: [day]`")
        if named:
            return _date(run, str(named.pop()))
        if run.upstream is None:
            at = datetime.datetime.fromtimestamp(run.logical_start_time / 1000, datetime.timezone.utc)
            return at.date() - datetime.timedelta(days=1)
        run = run.upstream


def _partitions(run: RunContext) -> list[Any]:
    return [event.partition for event in run.events]


def _date(run: RunContext, text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        hint = "correct the property or the partition"
        raise ContextError(f"run {run.run_id}: expected a day such as 2026-11-21, got {text!r}; {hint}") from None


@dataclass(frozen=True)
class Days:
    """The days below a root, each with versions, in any file system that Spark can write."""

    spark: SparkSession
    root: str

    def folder(self, day: datetime.date) -> str:
        return f"{self.root}day={day}/"

    def next_version(self, day: datetime.date) -> str:
        """A name of fixed width, so that the last name in order is the latest version. A later run has read more."""
        now = datetime.datetime.now(datetime.timezone.utc)
        return f"{self.folder(day)}as_of={now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z/"

    def latest(self, day: datetime.date) -> str | None:
        """The current version: the latest complete one; None if there is none."""
        complete = [path for path in self._versions(day) if self._is_complete(path)]
        return f"{max(complete)}/" if complete else None

    def keep_only(self, version: str, day: datetime.date) -> int:
        """Remove the versions before this one, including incomplete ones; return their number."""
        own = version.rstrip("/").rpartition("/")[2]
        older = [path for path in self._versions(day) if path.rpartition("/")[2] < own]
        for path in older:
            files, path_object = self._place(path)
            files.delete(path_object, True)
        return len(older)

    def bytes_of(self, day: datetime.date) -> int:
        """The bytes in the folder of a day; 0 if it does not exist."""
        files, path_object = self._place(self.folder(day))
        return int(files.getContentSummary(path_object).getLength()) if files.exists(path_object) else 0

    def _versions(self, day: datetime.date) -> list[str]:
        files, path_object = self._place(self.folder(day))
        if not files.exists(path_object):
            return []
        found = [status.getPath().toString() for status in files.listStatus(path_object)]
        return [path for path in found if path.rpartition("/")[2].startswith("as_of=")]

    def _is_complete(self, path: str) -> bool:
        files, path_object = self._place(f"{path}/_SUCCESS")
        return bool(files.exists(path_object))

    def _place(self, uri: str) -> tuple[Any, Any]:
        java: Any = self.spark._jvm
        path_object = java.org.apache.hadoop.fs.Path(uri)
        return path_object.getFileSystem(self.spark._jsc.hadoopConfiguration()), path_object


def read_parquet(spark: SparkSession, path: str | None, schema: str) -> DataFrame:
    """A version of a day; no rows if it is None. With the schema given, Spark opens no file to infer it."""
    return no_rows(spark, schema) if path is None else spark.read.schema(schema).parquet(path)


def read_lines(spark: SparkSession, path: str, schema: str) -> DataFrame:
    """JSON lines, compressed or not, in all folders below a path; no rows if the path does not exist."""
    try:
        return spark.read.schema(schema).option("recursiveFileLookup", "true").json(path)
    except AnalysisException as error:
        if error.getErrorClass() != "PATH_NOT_FOUND":
            raise
    return no_rows(spark, schema)


def no_rows(spark: SparkSession, schema: str) -> DataFrame:
    """An empty table with these columns. Creating it from a list would start Python workers."""
    return spark.range(0).select(F.from_json(F.lit("{}"), schema).alias("row")).select("row.*")
