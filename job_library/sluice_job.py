"""What a job that Sluice starts imports: its run context, registration of partitions, its result, progress, metrics.

Standard library and Python 3.9 only, so that a job needs only ``--py-files sluice_job.py`` on a cluster.
``docs/run-context.md`` and ``docs/run-context.schema.json`` describe the context: why a run was started, on what data.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import hashlib
import hmac
import http.client
import importlib.resources
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "ContextError", "DagRun", "Data", "Day", "Each", "Event", "Increment", "JobError", "Partition", "Period",
    "RegistrationError", "ResultError", "RunContext", "metric", "progress", "register_partition", "result", "run_job",
    "zone",
]  # fmt: skip

SCHEMA = 1
DAY_KEYS = ("year", "month", "day")
ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
ESCAPED = re.compile(r"""["#%'*/:=?\\{\[\]^\x00-\x1f\x7f]""")  # what Spark escapes in the name of a folder


class JobError(Exception):
    """An error of a job with a text that says expected, got, and what to do."""


class ContextError(JobError):
    """The input of a job is missing or invalid."""


class RegistrationError(JobError):
    """A partition was not registered: the API refused it, or gave no answer."""


class ResultError(JobError):
    """A result was not handed on: it is not JSON, or there is nowhere to write it."""


def zone(name: str) -> ZoneInfo:
    """The time zone with this name, by the rules of the package ``tzdata`` if the job was given it, else of its image.

    Give a job the version that Sluice has (``requirements.txt``), so that its days are those of its schedule. Raises
    ContextError for a zone that is unknown."""
    try:
        file = importlib.resources.files("tzdata") / "zoneinfo"
        for part in name.split("/"):
            file = file / part
        with file.open("rb") as rules:
            return ZoneInfo.from_file(rules, key=name)
    except ModuleNotFoundError:
        pass
    except (OSError, KeyError, ValueError):
        raise _unknown_zone(name) from None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise _unknown_zone(name) from None


def _unknown_zone(name: str) -> ContextError:
    return ContextError(f"expected a time zone such as Europe/Paris, got {name!r}; correct the zone")


class Day(NamedTuple):
    """A calendar day, as in the partition keys ``year``, ``month`` and ``day``."""

    year: int
    month: int
    day: int

    def under(self, root: str) -> str:
        """The day's partition below ``root``: ``<root>year=2013/month=1/day=1/``, numbers not padded. For folders such
        as ``month=01`` use ``context.partition("year", "month", "day").under(root)``."""
        return f"{root}year={self.year}/month={self.month}/day={self.day}/"

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


class Partition(Mapping[str, str]):
    """The values of a partition's keys, in their order. Values are texts: ``"1"``, not ``1``. The folder
    ``at=07%3A00`` has the value ``"07:00"``."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Partition({self})"

    def __str__(self) -> str:
        return "/".join(f"{key}={value}" for key, value in self._values.items())

    def under(self, root: str) -> str:
        """The path of the partition below ``root``, with a closing slash: ``<root>/region=eu/hour=4/``. Its folders
        have the names that Spark gives them: ``at=07%3A00``."""
        return "/".join([root.rstrip("/"), *(f"{key}={_in_folder(value)}" for key, value in self.items()), ""])


class Period(NamedTuple):
    """The period that a partition is: from ``start`` to before ``end``, both in ``zone``. ``label`` is such as
    ``2026-03-01T07``."""

    start: datetime.datetime
    end: datetime.datetime
    zone: str
    label: str

    def __str__(self) -> str:
        return self.label


class DagRun(NamedTuple):
    """The run of a DAG that a run is a part of. ``node`` is None for the start of the DAG."""

    name: str
    run_id: str
    round: int
    node: str | None


@dataclass(frozen=True)
class Each:
    """The element of a list for which a node of a DAG runs: its ``index`` from 0 on, the ``count`` of elements, and its
    ``value``, any JSON."""

    index: int
    count: int
    value: Any


@dataclass(frozen=True, order=True)
class Spread:
    """The number of a run's event among those of its fire, from 0 on, and how many events the fire has."""

    index: int
    count: int


class Data(NamedTuple):
    """The data that a schedule or message carries: as text, as bytes, or by its address in S3."""

    content_type: str
    text: str | None
    content: bytes | None
    uri: str | None

    def json(self) -> Any:
        """The text as JSON. Raises ContextError if the data is no JSON text."""
        return _json(self.text or "", "data")


class Increment(NamedTuple):
    """A range of commits of an Iceberg table, for Spark's read options of the same names. The start is excluded; None
    means the beginning of the table."""

    start_snapshot_id: str | None
    end_snapshot_id: str


@dataclass(frozen=True)
class Event:
    """One event that contributed to the start of the run; ``instant`` in ms since 1970. Fields of other kinds are None.

    ``kind`` says which fields an event has: see ``docs/run-context.md``. ``snapshot`` is the commit of an Iceberg
    table: ``id``, ``parent_id``, ``sequence_number``, ... ``period`` is that of the partition, if it is one. ``result``
    is what the run of a ``program_status`` has handed on."""

    kind: str
    id: str
    instant: int
    dataset: str | None = None
    path: str | None = None
    partition: Mapping[str, str] | None = None
    workflow: str | None = None
    run_id: str | None = None
    status: str | None = None
    snapshot: Mapping[str, Any] | None = None
    bytes: int | None = None
    type: str | None = None
    payload: Mapping[str, Any] | None = None
    alarm: str | None = None
    arn: str | None = None
    state: str | None = None
    previous_state: str | None = None
    reason: str | None = None
    period: Period | None = None
    result: Any = None


@dataclass(frozen=True)
class RunContext:
    """One run's context. ``logical_start_time`` in ms since 1970, UTC; ``upstream`` the run that triggered it.

    ``rerun_of`` is the run that this one repeats, ``dag`` the DAG run that it is a part of, ``data`` what it carries.
    ``spread`` is its place among the events of its fire, if the schedule has a spread. ``own_period`` is the period of
    its job, if the schedule has one for each period. ``each`` is the element of a list for which a node of a DAG runs.
    ``result`` is what an upstream run has handed on, and None for the run itself, which writes its own to
    ``result_uri``.
    """

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    logical_start_time: int
    properties: Mapping[str, Any]
    correlation: Mapping[str, str] | None
    events: tuple[Event, ...]
    upstream: RunContext | None
    rerun_of: str | None = None
    dag: DagRun | None = None
    data: Data | None = None
    spread: Spread | None = None
    own_period: Period | None = None
    each: Each | None = None
    result: Any = None
    result_uri: str | None = None

    @classmethod
    def load(cls, spark: SparkSession, uri: str) -> RunContext:
        """Read the context at ``uri`` (any scheme that Spark can read) and its manifests.

        Raises ContextError if a text cannot be read, is not JSON, or is not a context of schema 1.
        """
        context = cls.parse(_json(_read(spark, uri), uri), lambda manifest: _read(spark, manifest), uri)
        _loaded[:] = [(spark, context)]
        return context

    @classmethod
    def from_environment(cls) -> RunContext:
        """Read the context of a container, at the address in ``SLUICE_CONTEXT``, by boto3 with the role of its task.

        Raises ContextError as ``load`` does, and if there is no address."""
        uri = os.environ.get("SLUICE_CONTEXT")
        if not uri:
            raise ContextError(
                "expected the address of a run context in SLUICE_CONTEXT, got none; let Sluice start the container, "
                "or set it to the s3:// address of a context"
            )
        context = cls.parse(_json(_get(uri), uri), _get, uri)
        _loaded[:] = [(None, context)]
        return context

    @classmethod
    def parse(cls, document: Any, read: Callable[[str], str], where: str = "run context") -> RunContext:
        """Build from a parsed document; ``read`` returns the text of a manifest. Unknown fields are ignored."""
        if not isinstance(document, dict):
            raise ContextError(f"{where}: expected a JSON object, got {_shown(document)}; {_RENDERED_BY}")
        if document.get("schema") != SCHEMA:
            raise ContextError(
                f"{where}: expected schema {SCHEMA}, got {_shown(document.get('schema'))}; "
                "use the sluice_job.py that belongs to the installed Sluice"
            )
        manifest = _field(document, "manifest", (str, type(None)), where)
        events = _field(document, "events", (list,), where)
        named = [(item, f"{where}: events[{i}]") for i, item in enumerate(events)]
        if manifest is not None:
            lines = enumerate(read(manifest).splitlines(), start=1)
            named = [(_json(line, f"{manifest}:{n}"), f"{manifest}:{n}") for n, line in lines if line.strip()]
        upstream = _field(document, "upstream", (dict, type(None)), where)
        return cls(
            run_id=_field(document, "run_id", (str,), where),
            attempt=_field(document, "attempt", (int,), where),
            schedule=_field(document, "schedule", (str,), where),
            workflow=_field(document, "workflow", (str,), where),
            logical_start_time=_field(document, "logical_start_time", (int,), where),
            properties=_field(document, "properties", (dict,), where),
            correlation=_keys(document, "correlation", where),
            events=tuple(_event(item, at) for item, at in named),
            upstream=None if upstream is None else cls.parse(upstream, read, f"{where}: upstream"),
            rerun_of=_optional(document, "rerun_of", (str,), where),
            dag=_dag(document, where),
            data=_data(document, where),
            spread=_spread(document, where),
            own_period=_period(document, where) if "period" in document else None,
            each=_each(document, where),
            result=document.get("result"),
            result_uri=_optional(document, "result_uri", (str,), where),
        )

    @classmethod
    def from_arguments(cls, name: str, argv: list[str]) -> RunContext:
        """Read the context that ``--sluice-context`` names, by boto3: for a program without Spark, such as a Python
        shell job of Glue. ``argv`` are the arguments of the program, ``name`` is its own.

        Raises ContextError as ``load`` does."""
        uri = _context_of(name, argv)
        context = cls.parse(_json(_get(uri), uri), _get, uri)
        _loaded[:] = [(None, context)]
        return context

    @property
    def logical_start(self) -> datetime.datetime:
        """The logical start time, in UTC."""
        return datetime.datetime.fromtimestamp(self.logical_start_time / 1000, datetime.timezone.utc)

    def partition(self, *keys: str) -> Partition:
        """The run's only partition, or the values of these ``keys`` of it: from its correlation, else from its events,
        else from upstream.

        Raises ContextError, with what was found, if none of them has the keys, or if the events have several."""
        run: RunContext | None = self
        while run is not None:
            for source in ([run.correlation], [event.partition for event in run.events]):
                named = [{key: values[key] for key in keys or values}
                         for values in source if values and all(key in values for key in keys)]  # fmt: skip
                found = {tuple(sorted(values.items())) for values in named}
                if len(found) == 1:
                    return Partition(named[0])
                if found:
                    # Continuing upstream would silently choose one of several.
                    raise ContextError(self._none_of(keys, f"{len(found)} of them"))
            run = run.upstream
        raise ContextError(self._none_of(keys, "none"))

    def period(self, dataset: str | None = None) -> Period:
        """The run's only period: that of its job; else that of the partitions (of ``dataset``) among its events, else
        among those upstream.

        Raises ContextError, with what was found, if none of them is a period, or if they are several."""
        run: RunContext | None = self
        while run is not None:
            if dataset is None and run.own_period is not None:
                return run.own_period
            found = {event.period for event in run.events if event.period and _is_of(event, dataset)}
            if len(found) == 1:
                return found.pop()
            if found:
                # Continuing upstream would silently choose one of several.
                raise ContextError(self._no_period(dataset, ", ".join(sorted(map(str, found))[:10])))
            run = run.upstream
        raise ContextError(self._no_period(dataset, "none"))

    def _no_period(self, dataset: str | None, got: str) -> str:
        return (
            f"expected one period{f' of {dataset}' if dataset else ''}, got {got}: {self._searched()}; "
            "give the dataset a period, and the schedule the keys of the period: by"
        )

    def text(self, name: str, default: str | None = None) -> str:
        """The property ``name``, a text that is not empty. Raises ContextError if missing and without a default."""
        value = self.properties.get(name, default)
        if not isinstance(value, str) or not value:
            raise ContextError(self._no_property(name, "a text", value))
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """The property ``name``, a number; a text of one is a number, too, because run now sends texts."""
        value = self.properties.get(name, default)
        try:
            if not isinstance(value, bool) and isinstance(value, (int, float, str)):
                return float(value)
        except ValueError:
            pass
        raise ContextError(self._no_property(name, "a number", value))

    def _no_property(self, name: str, expected: str, value: Any) -> str:
        return (
            f"run {self.run_id}: expected the property {name!r} to be {expected}, got {_shown(value)}; "
            f"set it in the schedule's properties (there: {sorted(self.properties)})"
        )

    def partitions(self, dataset: str | None = None) -> tuple[Event, ...]:
        """The run's partition events; only those of ``dataset`` if given, by full name (``demo.flights_raw``) or last
        part."""
        return tuple(event for event in self.events if event.kind == "partition" and _is_of(event, dataset))

    def path(self, dataset: str | None = None) -> str:
        """The path of the run's only partition (of ``dataset``), with a closing slash. Raises ContextError
        otherwise."""
        paths = sorted({str(event.path).rstrip("/") + "/" for event in self.partitions(dataset)})
        if len(paths) != 1:
            raise ContextError(
                f"run {self.run_id}: expected one partition{f' of {dataset}' if dataset else ''} among its events, "
                f"got {', '.join(paths) or 'none'}; name the input's root in the schedule's properties instead"
            )
        return paths[0]

    def snapshots(self, dataset: str | None = None) -> tuple[Event, ...]:
        """The commits of Iceberg tables that triggered the run, each once, oldest first."""
        found: dict[str, Event] = {}
        for event in self.events:
            if _is_of(event, dataset) and event.snapshot is not None:
                found[event.snapshot["id"]] = event
        return tuple(sorted(found.values(), key=_committed))

    def increment(self, dataset: str | None = None) -> Increment:
        """The range of commits of one Iceberg table (``dataset``), from the first to the last of these commits."""
        found = self.snapshots(dataset)
        tables = sorted({str(event.dataset) for event in found})
        if len(tables) != 1:
            named = f" {dataset}" if dataset else ""
            raise ContextError(
                f"run {self.run_id}: expected snapshots of one table{named} among its events, "
                f"got {', '.join(tables) or 'none'}; name the dataset, or trigger the schedule by its snapshots"
            )
        first, last = found[0].snapshot or {}, found[-1].snapshot or {}
        return Increment(first["parent_id"], last["id"])

    def day(self) -> Day:
        """The run's only day: from its correlation, else from its events' partitions, else from upstream.

        Raises ContextError with what was found if none of them names a day, or if the events name several.
        """
        run: RunContext | None = self
        while run is not None:
            for source in ([run.correlation], [event.partition for event in run.events]):
                days = {day for keys in source if (day := _day(keys)) is not None}
                if len(days) == 1:
                    return days.pop()
                if days:
                    # Continuing upstream would silently choose one of several days.
                    raise ContextError(self._no_day(f"{len(days)} days"))
            run = run.upstream
        raise ContextError(self._no_day("none"))

    def _no_day(self, got: str) -> str:
        return (
            f"expected one day (year, month, day), got {got}: {self._searched()}; "
            "give the schedule `by: [year, month, day]`, or trigger it by a partition with these keys"
        )

    def _none_of(self, keys: tuple[str, ...], got: str) -> str:
        named, listed = (f" with {', '.join(keys)}", ", ".join(keys)) if keys else ("", "key")
        return (
            f"expected one partition{named}, got {got}: {self._searched()}; "
            f"give the schedule `by: [{listed}]`, or trigger it by a partition"
        )

    def _searched(self) -> str:
        searched, run = [], self
        while True:
            kinds = [f"{e.kind} {e.dataset or e.workflow or ''} {_spelled(e.partition)}" for e in run.events[:10]]
            searched.append(
                f"run {run.run_id} has correlation {_spelled(run.correlation)}, events [{'; '.join(kinds)}]"
            )
            if run.upstream is None:
                break
            run = run.upstream
        return "; upstream ".join(searched)

    def root(self, name: str, default: str | None = None) -> str:
        """The property ``name``, a path, with a closing slash. Raises ContextError if missing and without a default."""
        value = self.properties.get(name, default)
        if not isinstance(value, str) or not value:
            raise ContextError(
                f"run {self.run_id}: expected the property {name!r} to be a path such as s3://lake/{name}/, "
                f"got {_shown(value)}; set it in the schedule's properties (there: {sorted(self.properties)})"
            )
        return value.rstrip("/") + "/"


Work = Callable[["SparkSession", RunContext], dict[str, Any]]


def run_job(name: str, argv: list[str], work: Work) -> int:
    """Run ``work`` on the context named by ``--sluice-context``, and print its summary as one JSON line.

    Returns the exit code: 0 for success, 2 for a JobError, or if an input path does not exist. Other exceptions
    are raised: then Spark's trace is the best explanation, and the exit code is 1."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    uri = _context_of(name, argv)
    began = time.monotonic()
    spark = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        summary = work(spark, RunContext.load(spark, uri))
    except JobError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except AnalysisException as error:
        if error.getErrorClass() != "PATH_NOT_FOUND":
            raise
        reason = str(error).splitlines()[0]
        print(f"{name}: {reason} Expected input there; upload it, or correct the properties.", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    print(json.dumps({"job": name, **summary, "seconds": round(time.monotonic() - began, 2)}), flush=True)
    return 0


def _context_of(name: str, argv: list[str]) -> str:
    """The address of the context among the arguments of a program. Others are ignored: a job need not know all
    arguments of a workflow, and Glue adds some of its own."""
    parser = argparse.ArgumentParser(prog=name, allow_abbrev=False)
    parser.add_argument("--sluice-context", required=True, metavar="URI", help="the run's context, s3://...")
    return str(parser.parse_known_args(argv)[0].sluice_context)


# -- Progress and metrics -------------------------------------------------------------------------------------------

_metrics: dict[str, Any] = {}


def metric(name: str, value: float) -> None:
    """Report a number, such as the rows that a run has written. A later value of the same name replaces it.

    It is a JSON line in the run's log. Under ``sluice worker run`` the next heartbeat sends it, too, and the run shows
    it."""
    _metrics[name] = value
    _report({"metric": name, "value": value})


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Report how far a run is: ``done`` of ``total``, and what it does. Reported as `metric` is."""
    _metrics["done"] = done
    if total is not None:
        _metrics["total"] = total
    line = {"progress": done, "total": total, "message": message or None}
    _report({name: value for name, value in line.items() if value is not None})


def _report(line: Mapping[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    path = os.environ.get("SLUICE_METRICS_FILE")
    if path:
        _replace(path, json.dumps(_metrics))


# -- The result -----------------------------------------------------------------------------------------------------

MAX_RESULT = 10_000  # bytes of JSON without spaces
_loaded: list[tuple[SparkSession | None, RunContext]] = []  # the context that this process has loaded last


def result(value: Any) -> None:
    """Hand a small JSON value on to the runs after this one: ``result({"mode": "full", "files": ["a", "b"]})``.

    It counts if the run succeeds. A later call replaces it, and a retried attempt has its own. Of a larger value, put
    it into S3 and hand on its address: Sluice keeps at most 10,000 bytes of JSON, and says so on the run. Raises
    ResultError for a value that JSON cannot hold, and if there is nowhere to write it."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(f"expected a value that JSON can hold, got {_shown(value)} ({error}); convert it") from error
    if len(text) > MAX_RESULT:
        expected = f"expected a result of at most {MAX_RESULT:,} bytes of JSON, got {len(text):,}"
        print(f"{expected}; Sluice will not keep it: put it into S3, and hand on its address", file=sys.stderr)
    file = os.environ.get("SLUICE_RESULT_FILE")
    if file:
        _replace(file, text)
    elif _loaded and _loaded[0][1].result_uri is not None:
        _write(_loaded[0][0], _loaded[0][1].result_uri, text)
    else:
        got = "a context without result_uri" if _loaded else "no context"
        raise ResultError(f"expected a run of Sluice, got {got}; load the run's own context before, or use run_job")


def _write(spark: SparkSession | None, uri: str, text: str) -> None:
    """Write a small file to any place that Spark can write to; without Spark, into S3."""
    if spark is None:
        _put(uri, text)
        return
    jvm: Any = spark._jvm
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path, True)
        stream.write(bytearray(text.encode()))
        stream.close()
    except Exception as error:  # as in `_read`
        cause = getattr(error, "java_exception", None)
        raise ResultError(
            f"expected to write {uri}, got {cause.getMessage() if cause else error}; "
            "allow s3:PutObject, s3:GetObject and s3:ListBucket on results/ of the control bucket to the run's role"
        ) from error


def _put(uri: str, text: str) -> None:
    bucket, _, key = uri[len("s3://") :].partition("/")
    try:
        _s3().put_object(Bucket=bucket, Key=key, Body=text.encode())
    except Exception as error:  # botocore's types are not importable with the standard library alone
        what = "allow s3:PutObject on results/ of the control bucket to the role of the container"
        raise ResultError(f"expected to write {uri}, got {error}; {what}") from error


def _s3() -> Any:
    try:
        import boto3
    except ImportError:
        raise ContextError("expected boto3 in the image of the container, got none; add it to the image") from None
    return boto3.client("s3")


def _replace(path: str, text: str) -> None:
    """Write a file. It is renamed into place, since others may read it at any time."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


# -- Registration of partitions -------------------------------------------------------------------------------------

ATTEMPTS = 5
LATER = (429, 500, 502, 503, 504)
SECONDS = 30.0


def register_partition(
    dataset: str,
    partition: Mapping[str, str | int],
    url: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Register a partition of a dataset (``demo.flights``) as ready, where no S3 notification reaches Sluice.

    ``url`` is the address of the API, by default ``SLUICE_API_URL`` of the environment. The request is signed with the
    credentials of the environment or, where botocore is installed, of the run's role. The folder is the one to which
    Spark writes these values, such as ``at=07%3A00`` for ``07:00``. The partition counts once,
    however often it is registered. Raises RegistrationError if the API refuses it, or gives no answer."""
    namespace, _, name = dataset.partition(".")
    if not namespace or not name or "." in name:
        raise RegistrationError(f"expected a dataset as namespace.name, got {dataset!r}; such as demo.flights")
    base = url or os.environ.get("SLUICE_API_URL")
    if not base:
        raise RegistrationError(
            "expected the address of the API in SLUICE_API_URL, got nothing; for a job on EMR Serverless, set "
            "spark.emr-serverless.driverEnv.SLUICE_API_URL in the target's spark"
        )
    path = f"/v1/namespaces/{_quoted(namespace)}/datasets/{_quoted(name)}/partitions"
    where = base.rstrip("/")
    where = (where[: -len("/v1")] if where.endswith("/v1") else where) + path
    named = {key: _in_folder(value) if isinstance(value, str) else value for key, value in partition.items()}
    content = json.dumps({"partition": named}).encode()
    failed = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(0.5 * 2**attempt)
        request = urllib.request.Request(where, data=content, headers=_signed(where, content), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS):
                return
        except urllib.error.HTTPError as error:
            failed = _reason(error)
            if error.code not in LATER:
                break
        except (OSError, http.client.HTTPException) as error:
            failed = f"{type(error).__name__}: {error}"
    values = _spelled({key: str(value) for key, value in partition.items()})
    raise RegistrationError(f"expected {dataset} {values} to be registered at {where}, got {failed}")


def _reason(error: urllib.error.HTTPError) -> str:
    text = error.read().decode("utf-8", "replace")
    try:
        refusal = json.loads(text)["error"]
        return f"HTTP {error.code} {refusal['code']}: {refusal['message']}" + (
            f"; {refusal['hint']}" if refusal["hint"] else ""
        )
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}: {_shown(text)}"


def _signed(url: str, content: bytes) -> dict[str, str]:
    """The headers of a request with Signature Version 4 for API Gateway.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html"""
    key, secret, token = _credentials()
    parts = urllib.parse.urlsplit(url)
    at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"content-type": "application/json", "host": parts.netloc, "x-amz-date": at}
    if token:
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    lines = ["POST", urllib.parse.quote(parts.path, safe="/~-_."), parts.query]
    lines += [f"{name}:{headers[name]}" for name in sorted(headers)]
    lines += ["", names, hashlib.sha256(content).hexdigest()]
    scope = f"{at[:8]}/{_region(parts.netloc)}/execute-api/aws4_request"
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    derived = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        derived = _hmac(derived, part)
    signature = _hmac(derived, f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": credential}


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _credentials() -> tuple[str, str, str | None]:
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if key and secret:
        return key, secret, os.environ.get("AWS_SESSION_TOKEN")
    try:
        import botocore.session  # EMR has it; it knows how the run's role gives credentials
    except ImportError:
        botocore = None
    found = botocore.session.Session().get_credentials() if botocore else None
    if found is None:
        raise RegistrationError(
            "expected AWS credentials for signing the request, got none; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or install botocore, which takes those of the run's role"
        )
    frozen = found.get_frozen_credentials()
    return frozen.access_key, frozen.secret_key, frozen.token


def _region(host: str) -> str:
    named = re.search(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com", host)
    region = named.group(1) if named else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise RegistrationError("expected the region of the API in AWS_REGION, got nothing; such as us-east-1")
    return region


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


# -- Reading the documents ------------------------------------------------------------------------------------------

_RENDERED_BY = "Sluice writes this file before each start; do not edit it"


def _read(spark: SparkSession, uri: str) -> str:
    # An RDD instead of a DataFrame: a few hundred bytes need no query plan and compilation.
    try:
        found = spark.sparkContext.wholeTextFiles(uri, 1).collect()
    except Exception as error:  # py4j's error types are not importable with the standard library alone
        java = getattr(error, "java_exception", None)
        raise ContextError(
            f"expected to read {uri}, got {java.getMessage() if java else error}; "
            "check that the file exists and that the run's role may read it"
        ) from error
    if len(found) != 1:
        raise ContextError(f"expected one file at {uri}, got {len(found)}; pass the URI of a file")
    return str(found[0][1])


def _get(uri: str) -> str:
    """The text of an object in S3, read without Spark."""
    bucket, _, key = uri[len("s3://") :].partition("/")
    try:
        return str(_s3().get_object(Bucket=bucket, Key=key)["Body"].read().decode())
    except ContextError:
        raise
    except Exception as error:  # botocore's types are not importable with the standard library alone
        what = "allow s3:GetObject on context/ of the control bucket to the role of the container"
        raise ContextError(f"expected to read {uri}, got {error}; {what}") from error


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ContextError(f"{where}: expected JSON, got {_shown(text)} ({error}); {_RENDERED_BY}") from error


def _field(document: Mapping[str, Any], name: str, types: tuple[type, ...], where: str) -> Any:
    value = document.get(name)
    if name in document and isinstance(value, types) and not isinstance(value, bool):
        return value
    expected = " or ".join(_NAMES[kind] for kind in types)
    got = _shown(value) if name in document else "no such field"
    raise ContextError(f"{where}: expected {name} to be {expected}, got {got}; {_RENDERED_BY}")


def _optional(document: Mapping[str, Any], name: str, types: tuple[type, ...], where: str) -> Any:
    return _field(document, name, (*types, type(None)), where) if name in document else None


def _dag(document: Mapping[str, Any], where: str) -> DagRun | None:
    dag = _optional(document, "dag", (dict,), where)
    if dag is None:
        return None
    at = f"{where}: dag"
    name, run_id = (_field(dag, field, (str,), at) for field in ("name", "run_id"))
    return DagRun(name, run_id, _field(dag, "round", (int,), at), _field(dag, "node", (str, type(None)), at))


def _spread(document: Mapping[str, Any], where: str) -> Spread | None:
    spread = _optional(document, "spread", (dict,), where)
    if spread is None:
        return None
    return Spread(*(_field(spread, field, (int,), f"{where}: spread") for field in ("index", "count")))


def _each(document: Mapping[str, Any], where: str) -> Each | None:
    each = _optional(document, "each", (dict,), where)
    if each is None:
        return None
    index, count = (_field(each, field, (int,), f"{where}: each") for field in ("index", "count"))
    return Each(index, count, each.get("value"))


def _data(document: Mapping[str, Any], where: str) -> Data | None:
    data = _optional(document, "data", (dict,), where)
    if data is None:
        return None
    at = f"{where}: data"
    text, encoded, uri = (_optional(data, field, (str,), at) for field in ("text", "base64", "uri"))
    content = None if encoded is None else base64.b64decode(encoded)
    return Data(_field(data, "content_type", (str,), at), text, content, uri)


def _keys(document: Mapping[str, Any], name: str, where: str) -> dict[str, str] | None:
    keys: dict[str, str] | None = _field(document, name, (dict, type(None)), where)
    for value in (keys or {}).values():
        if not isinstance(value, str):
            raise ContextError(f"{where}: expected texts as values of {name}, got {_shown(keys)}; {_RENDERED_BY}")
    return keys


def _event(item: Any, where: str) -> Event:
    if not isinstance(item, dict):
        raise ContextError(f"{where}: expected a JSON object, got {_shown(item)}; {_RENDERED_BY}")
    kind = _field(item, "kind", (str,), where)
    # An unknown kind keeps its common fields: a job that does not use it need not know it.
    own = {name: _field(item, name, types, where) for name, types in _OWN.get(kind, {}).items()}
    partition = _keys(item, "partition", where) if kind == "partition" or "partition" in item else None
    identity = _field(item, "id", (str,), where)
    snapshot = _snapshot(item, where) if "snapshot" in item else None
    instant = _field(item, "instant", (int,), where)
    period = _period(item, where) if "period" in item else None
    more: dict[str, Any] = {"snapshot": snapshot, "period": period, "result": item.get("result")}
    return Event(kind, identity, instant, partition=partition, **more, **own)


def _period(item: Mapping[str, Any], where: str) -> Period:
    period, at = _field(item, "period", (dict,), where), f"{where}.period"
    name, label = (_field(period, field, (str,), at) for field in ("zone", "label"))
    instants = (_field(period, field, (int,), at) for field in ("start", "end"))
    rules = zone(name)
    start, end = (datetime.datetime.fromtimestamp(instant / 1000, rules) for instant in instants)
    return Period(start, end, name, label)


def _is_of(event: Event, dataset: str | None) -> bool:
    """Whether an event is of the dataset with this full name or last part of it; without a name, of any."""
    return dataset is None or dataset in (event.dataset, str(event.dataset).rpartition(".")[2])


def _snapshot(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    snapshot: dict[str, Any] = _field(item, "snapshot", (dict,), where)
    _field(snapshot, "id", (str,), f"{where}.snapshot")
    _field(snapshot, "parent_id", (str, type(None)), f"{where}.snapshot")
    _field(snapshot, "sequence_number", (int,), f"{where}.snapshot")
    return snapshot


def _committed(event: Event) -> tuple[int, int]:
    """The order of commits. Iceberg tables of format version 1 have no sequence numbers."""
    return (event.snapshot or {})["sequence_number"], event.instant


def _day(keys: Mapping[str, str] | None) -> Day | None:
    if keys is None or any(name not in keys for name in DAY_KEYS):
        return None
    try:
        date = datetime.date(*(int(keys[name]) for name in DAY_KEYS))
    except ValueError as error:
        raise ContextError(f"expected a calendar day, got {_spelled(keys)}: {error}; correct the partition") from error
    return Day(date.year, date.month, date.day)


def _in_folder(value: str) -> str:
    """A value as Spark writes it in the name of a folder. A value with an escape stands so in its folder."""
    return value if ESCAPE.search(value) else ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _spelled(keys: Mapping[str, str] | None) -> str:
    return "-" if keys is None else "/".join(f"{name}={value}" for name, value in keys.items())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_NAMES: dict[type, str] = {str: "a text", int: "an integer", dict: "an object", list: "a list", type(None): "null"}
_TEXT, _OBJECT = (str,), (dict,)
_OWN: dict[str, dict[str, tuple[type, ...]]] = {
    "partition": {"dataset": _TEXT, "path": _TEXT},
    "size": {"dataset": _TEXT, "path": _TEXT, "bytes": (int,)},
    "program_status": {"workflow": _TEXT, "run_id": _TEXT, "status": _TEXT},
    "event": {"type": _TEXT, "payload": _OBJECT},
    "cloudwatch_alarm": {
        "alarm": _TEXT,
        "arn": _TEXT,
        "state": _TEXT,
        "previous_state": (str, type(None)),
        "reason": _TEXT,
    },
}
