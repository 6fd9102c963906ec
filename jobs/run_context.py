"""The run context: the document that tells a run why it was started and on what data.

Standard library only, so that a job needs only ``--py-files run_context.py`` on a cluster.
``docs/run-context.md`` and ``docs/run-context.schema.json`` describe the document.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = 1
DAY_KEYS = ("year", "month", "day")


class ContextError(Exception):
    """The input of a job is missing or invalid; the text says expected, got, and what to do."""


class Day(NamedTuple):
    """A calendar day, as in the partition keys ``year``, ``month`` and ``day``."""

    year: int
    month: int
    day: int

    def under(self, root: str) -> str:
        """The day's partition below ``root``: ``<root>year=2013/month=1/day=1/``, numbers not padded."""
        return f"{root}year={self.year}/month={self.month}/day={self.day}/"

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


class Increment(NamedTuple):
    """A range of commits of an Iceberg table, for Spark's read options of the same names. The start is excluded; None
    means the beginning of the table."""

    start_snapshot_id: str | None
    end_snapshot_id: str


@dataclass(frozen=True)
class Event:
    """One event that contributed to the start of the run; ``instant`` in ms since 1970. Fields of other kinds are None.

    ``snapshot`` is the commit of an Iceberg table: ``id``, ``parent_id``, ``sequence_number``, ..."""

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


@dataclass(frozen=True)
class RunContext:
    """One run's context. ``logical_start_time`` in ms since 1970, UTC; ``upstream`` the run that triggered it."""

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    logical_start_time: int
    properties: Mapping[str, Any]
    correlation: Mapping[str, str] | None
    events: tuple[Event, ...]
    upstream: RunContext | None

    @classmethod
    def load(cls, spark: SparkSession, uri: str) -> RunContext:
        """Read the context at ``uri`` (any scheme that Spark can read) and its manifests.

        Raises ContextError if a text cannot be read, is not JSON, or is not a context of schema 1.
        """
        return cls.parse(_json(_read(spark, uri), uri), lambda manifest: _read(spark, manifest), uri)

    @classmethod
    def parse(cls, document: Any, read: Callable[[str], str], where: str = "run context") -> RunContext:
        """Build from a parsed document; ``read`` returns the text of a manifest. Unknown fields are ignored."""
        if not isinstance(document, dict):
            raise ContextError(f"{where}: expected a JSON object, got {_shown(document)}; {_RENDERED_BY}")
        if document.get("schema") != SCHEMA:
            raise ContextError(
                f"{where}: expected schema {SCHEMA}, got {_shown(document.get('schema'))}; "
                "use the run_context.py that belongs to the installed Sluice"
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
        )

    def partitions(self, dataset: str | None = None) -> tuple[Event, ...]:
        """The run's partition events; only those of ``dataset`` if given, by full name (``demo.flights_raw``) or last
        part."""
        found = (event for event in self.events if event.kind == "partition")
        return tuple(e for e in found if dataset is None or dataset in (e.dataset, str(e.dataset).rpartition(".")[2]))

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
            named = dataset is None or dataset in (event.dataset, str(event.dataset).rpartition(".")[2])
            if named and event.snapshot is not None:
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
        searched, run = [], self
        while True:
            kinds = [f"{e.kind} {e.dataset or e.workflow or ''} {_spelled(e.partition)}" for e in run.events[:10]]
            searched.append(
                f"run {run.run_id} has correlation {_spelled(run.correlation)}, events [{'; '.join(kinds)}]"
            )
            if run.upstream is None:
                break
            run = run.upstream
        return (
            f"expected one day (year, month, day), got {got}: {'; upstream '.join(searched)}; "
            "give the schedule `by: [year, month, day]`, or trigger it by a partition with these keys"
        )

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

    Returns the exit code: 0 for success, 2 if the context or an input path is not what the job needs. Other exceptions
    are raised: then Spark's trace is the best explanation, and the exit code is 1."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(prog=name, allow_abbrev=False)
    parser.add_argument("--sluice-context", required=True, metavar="URI", help="the run's context, s3://...")
    # Unknown arguments are ignored: a job need not know all arguments of a workflow.
    uri = parser.parse_known_args(argv)[0].sluice_context
    began = time.monotonic()
    spark = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        summary = work(spark, RunContext.load(spark, uri))
    except ContextError as error:
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
    own = {name: _field(item, name, (str,), where) for name in _OWN.get(kind, ())}
    partition = _keys(item, "partition", where) if kind == "partition" or "partition" in item else None
    identity = _field(item, "id", (str,), where)
    snapshot = _snapshot(item, where) if "snapshot" in item else None
    instant = _field(item, "instant", (int,), where)
    return Event(kind, identity, instant, partition=partition, snapshot=snapshot, **own)


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


def _spelled(keys: Mapping[str, str] | None) -> str:
    return "-" if keys is None else "/".join(f"{name}={value}" for name, value in keys.items())


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_NAMES: dict[type, str] = {str: "a text", int: "an integer", dict: "an object", list: "a list", type(None): "null"}
_OWN = {
    "partition": ("dataset", "path"),
    "size": ("dataset", "path"),
    "program_status": ("workflow", "run_id", "status"),
}
