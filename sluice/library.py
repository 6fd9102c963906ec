"""Sluice for programs: deploy an app, run a schedule and wait for its end, explain a state, read lists item by item.

Example:

    client = Client()
    client.apply("app.yaml")
    work = client.run("demo.flights.clean", partition={"day": "2026-03-01"}, wait=True)
    for run in client.runs("demo.flights.clean", state="FAILED"):
        print(run.id, run.why)
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sluice import client as transport
from sluice import names, views
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.refusals import NotFound
from sluice.signing import SignedHttp

Bound = Mapping[str, str | int] | str | datetime  # of partitions, by their first keys, or an instant

# RETRYING is missing because another attempt follows it.
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")
FIRST_PAUSE, MAX_PAUSE = 0.25, 3.0  # seconds between two requests; the pause grows
# How many requests in a row must find neither job nor run before the work counts as gone. A lookup may miss a job that
# is becoming a run for a moment. If the API explains what happened to the job, two requests suffice.
MISSES, MISSES_WITH_WORD = 8, 2


class HasDocument(Protocol):
    """What makes an app document, such as `sluice.builder.App`."""

    def document(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a deployment: the created, replaced and deleted parts, each as ``kind name``. ``document`` is the
    whole answer of the API."""

    created: tuple[str, ...]
    replaced: tuple[str, ...]
    deleted: tuple[str, ...]
    document: Document

    @property
    def changed(self) -> bool:
        return bool(self.created or self.replaced or self.deleted)


@dataclass(frozen=True, slots=True)
class Work:
    """A job, or the run that it has become: both have the same id. ``why`` is the reason of the state, for people.

    ``document`` is the whole answer of the API."""

    id: str
    schedule: str
    state: str
    why: str
    document: Document

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def succeeded(self) -> bool:
        return self.state == "SUCCEEDED"

    @property
    def count(self) -> int:
        """How many events of a large fire wait, or were sent; 1 for any other work."""
        return int(self.document.get("count", 1))

    @property
    def fire(self) -> str | None:
        """The id of the large fire to which it belongs; None for any other work."""
        return self.document.get("fire")


@dataclass(frozen=True, slots=True)
class Why:
    """Why a schedule, a job or a run is in its state. ``waiting`` are the waiting jobs of a schedule."""

    state: str
    why: str
    waiting: tuple[Work, ...]
    document: Document


@dataclass(frozen=True, slots=True)
class Record:
    """Work that never became a run: its kind, such as ``ABORTED``, its reason, and when."""

    id: str
    schedule: str
    kind: str
    reason: str
    at: datetime
    document: Document

    @property
    def count(self) -> int:
        """How many fires, or events of a large fire, it stands for."""
        return int(self.document.get("count", 1))


@dataclass(frozen=True, slots=True)
class Step:
    """A schedule that a re-processing runs again, and why. A plan has no state yet."""

    schedule: str
    state: str | None
    why: str
    total: int


@dataclass(frozen=True, slots=True)
class Reprocessing:
    """Data, a run or fires that run again with everything downstream: ``done`` of ``total`` runs have ended. A dry run
    has neither ``id`` nor ``state``. ``document`` is the whole answer of the API."""

    id: str | None
    namespace: str
    state: str | None
    total: int
    done: int
    steps: tuple[Step, ...]
    document: Document

    @property
    def ended(self) -> bool:
        return self.state not in (None, "RUNNING")

    @property
    def succeeded(self) -> bool:
        return self.state == "DONE"


class Client(views.Views):
    """A client of one API: of ``SLUICE_API_URL``, or of ``url``. Names are full: ``namespace.app.name``.

    Raises a class of `sluice.refusals` for each code of the API, `NotReachable` if no API answers, and `WrongUsage` for
    wrong arguments, before anything is sent.
    """

    def __init__(
        self, url: str | None = None, http: SignedHttp | None = None, pause: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(transport.url_of(os.environ) if url is None else url, http, pause)

    def apply(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any] | HasDocument,
        values: Mapping[str, str] | None = None,
        dry_run: bool = False,
        update_schedules: bool | None = None,
        restart: bool = False,
    ) -> Report:
        """Deploy an app: a YAML or JSON file, whose placeholders ``values`` fill, a document, or a builder. Creates
        the namespace if it does not exist. A dry run checks and reports, and stores nothing. With ``restart``, each
        schedule that is replaced drops what has gathered and what waits."""
        from sluice import documents  # a YAML parser is slow to load

        if isinstance(source, str | os.PathLike):
            document, where = documents.load(os.fspath(source), values), str(source)
        else:
            document, where = dict(source if isinstance(source, Mapping) else source.document()), "document"
        namespace, app = (_name_in(document, field, where) for field in ("namespace", "app"))
        if not dry_run:
            self._ensure_namespace(namespace)
        query = {"dry_run": dry_run or None, "update_schedules": update_schedules, "restart": restart or None}
        report = self.put(names.path_of(names.APP, f"{namespace}.{app}"), document, query)
        return Report(_names(report, "created"), _names(report, "replaced"), _names(report, "deleted"), report)

    def run(
        self,
        schedule: str,
        properties: Mapping[str, Any] | None = None,
        partition: Mapping[str, str | int] | None = None,
        at: str | datetime | None = None,
        wait: bool = False,
        timeout: float | None = None,
        key: str | None = None,
    ) -> Work:
        """Run a schedule now, or ``at`` an instant. ``partition`` is the correlation of the run, for a schedule with
        ``by``; downstream schedules get it, too.

        ``wait`` waits until the run has ended, for at most ``timeout`` seconds; then check ``succeeded``. After a lost
        answer, the client repeats the request with the same idempotency key. Give a ``key`` of your own if your program
        may repeat the call: calls with the same key, also by other processes, start one run.
        """
        body: Document = {"properties": dict(properties or {})}
        if at is not None:
            body["at"] = _instant(at)
        if partition is not None:
            body["partition"] = dict(partition)
        path = names.path_of(names.SCHEDULE, _full(schedule))
        work = _work(self.post(f"{path}/run", body, key=key or uuid.uuid4().hex))
        return self.wait(work.id, timeout) if wait else work

    def reprocess(
        self,
        dataset: str | None = None,
        partition: Mapping[str, str | int] | None = None,
        run: str | None = None,
        schedule: str | None = None,
        since: Bound | None = None,
        until: Bound | None = None,
        only: bool = False,
        upto: str | None = None,
        concurrency: int = 1,
        properties: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        wait: bool = False,
        timeout: float | None = None,
        key: str | None = None,
    ) -> Reprocessing:
        """Run again, with everything downstream of it: partitions of a ``dataset``, a ``run``, or the fires of a
        ``schedule``. ``since`` and ``until`` bound partitions, both included, or fires, from an instant to another that
        is excluded. ``only`` runs nothing downstream; ``upto`` names the last workflow that runs.

        A dry run returns the plan and starts nothing. ``wait`` waits until the end, for at most ``timeout`` seconds;
        then check ``succeeded``. Calls with the same ``key`` begin one re-processing.
        """
        start = _start(dataset, partition, run, schedule, since, until)
        scope = "only" if only else "downstream"
        body = {**start, "scope": scope, "concurrency": concurrency, "properties": dict(properties or {})}
        if upto is not None:
            body["upto"] = names.full_name(names.WORKFLOW, upto, field="upto")
        if dry_run:
            body["dry_run"] = True
        namespace = (dataset or run or schedule or "").partition(".")[0]
        begun = _reprocessing(namespace, self.post(_reprocess_path(namespace), body, key=key or uuid.uuid4().hex))
        if begun.id is None or not wait:
            return begun
        for _ in self._pauses(timeout, f"the end of re-processing {begun.id}"):
            last = self.reprocessing(namespace, begun.id)
            if last.ended:
                return last
        raise AssertionError("unreachable: the pauses end with TimeoutError")

    def wait(self, work_id: str, timeout: float | None = None) -> Work:
        """The run of a job once it has ended, with all its retries. Raises TimeoutError after ``timeout`` seconds, and
        `NotFound`, with the reason, if the job ended without becoming a run."""
        misses = 0
        for _ in self._pauses(timeout, f"the end of {work_id}"):
            try:
                work = self.work(work_id)
            except NotFound as refused:
                misses += 1
                if misses >= (MISSES_WITH_WORD if refused.hint else MISSES):
                    raise
                continue
            misses = 0
            if work.ended:
                return work
        raise AssertionError("unreachable: the pauses end with TimeoutError")

    def work(self, work_id: str) -> Work:
        """The run with this id, or the job before it becomes a run. Raises `NotFound`, with a hint if work with this id
        is on record."""
        try:
            return _work(self.get(f"/v1/runs/{segment(work_id)}"))
        except NotFound:
            return _work(self.get(f"/v1/jobs/{segment(work_id)}/why"))

    def why(self, name: str) -> Why:
        """Why a schedule, or the work with an id, is in its state, as ``sluice why`` shows it."""
        if name.count(".") == 2:
            document = self.get(f"{names.path_of(names.SCHEDULE, _full(name))}/why")
        else:
            document = self._why_of_work(name)
        waiting = tuple(_work(job) for job in document.get("jobs") or ())
        return Why(str(document.get("state")), str(document.get("why")), waiting, document)

    def cancel(self, work_id: str) -> None:
        """Cancel a run, or a job before it becomes a run. The run ends when its target has ended it."""
        try:
            self.post(f"/v1/runs/{segment(work_id)}/cancel", repeatable=True)
        except NotFound:
            self.post(f"/v1/jobs/{segment(work_id)}/cancel", repeatable=True)

    def reprocessing(self, namespace: str, reprocess_id: str) -> Reprocessing:
        """The present progress of a re-processing."""
        return _reprocessing(namespace, self.get(f"{_reprocess_path(namespace)}/{segment(reprocess_id)}"))

    def cancel_reprocessing(self, namespace: str, reprocess_id: str, runs: bool = False) -> Reprocessing:
        """Start no more runs of a re-processing; ``runs`` also cancels the active ones."""
        path = f"{_reprocess_path(namespace)}/{segment(reprocess_id)}/cancel"
        query = {"runs": "cancel" if runs else None}
        return _reprocessing(namespace, self.request("POST", path, {}, query, repeatable=True).body)

    def reprocessings(self, namespace: str, most: int | None = None) -> Iterator[Reprocessing]:
        """The re-processings of a namespace, newest first."""
        return (_reprocessing(namespace, item) for item in self._items(namespace, "reprocess", {}, most))

    def runs(
        self, name: str, state: str | None = None, day: str | None = None, most: int | None = None
    ) -> Iterator[Work]:
        """The runs of a schedule, or of a namespace, newest first. The iterator reads each page when it needs it."""
        query = {"state": state, "day": day}
        return (_work(item) for item in self._items(name, "runs", query, most))

    def jobs(self, name: str, most: int | None = None) -> Iterator[Work]:
        """The waiting jobs of a schedule, or of a namespace."""
        return (_work(item) for item in self._items(name, "jobs", {}, most))

    def records(self, name: str, most: int | None = None) -> Iterator[Record]:
        """Work of a schedule, or of a namespace, that never became a run, newest first."""
        return (_record(item) for item in self._items(name, "records", {}, most))

    def _items(self, name: str, what: str, query: transport.Query, most: int | None) -> Iterator[Document]:
        kind = names.SCHEDULE if "." in name else names.NAMESPACE
        path = f"{names.path_of(kind, names.full_name(kind, name))}/{what}"
        for page in self.pages(path, query, most):
            yield from page.get("items", ())

    def _why_of_work(self, work_id: str) -> Document:
        try:
            return self.get(f"/v1/runs/{segment(work_id)}/why")
        except NotFound:
            return self.get(f"/v1/jobs/{segment(work_id)}/why")

    def _ensure_namespace(self, namespace: str) -> None:
        """Create the namespace if it does not exist. An existing one keeps its description."""
        path = names.path_of(names.NAMESPACE, namespace)
        try:
            self.get(path)
        except NotFound:
            self.put(path, {})

    def _pauses(self, timeout: float | None, what: str) -> Iterator[None]:
        """Yields at once, and then after each of the growing pauses. Raises TimeoutError after ``timeout`` seconds."""
        left, span = timeout, FIRST_PAUSE
        while True:
            yield
            if left is not None and left <= 0:
                raise TimeoutError(f"expected {what} within {timeout:g} seconds")
            rest = span if left is None else min(span, left)
            self._pause(rest)
            left = None if left is None else left - rest
            span = min(MAX_PAUSE, span * 1.3)


def _work(document: Document) -> Work:
    work_id = document.get("run_id") or document.get("job_id")
    why = document.get("why") or document.get("reason") or ""
    return Work(str(work_id), str(document.get("schedule", "")), str(document.get("state", "")), str(why), document)


def _reprocess_path(namespace: str) -> str:
    return f"{names.path_of(names.NAMESPACE, namespace)}/reprocess"


def _reprocessing(namespace: str, document: Document) -> Reprocessing:
    """A re-processing, or the plan of one, as the API returns it."""
    done = sum(int(document.get(count, 0)) for count in ("succeeded", "failed", "cancelled"))
    steps = tuple(
        Step(str(step["schedule"]), step.get("state"), str(step.get("reason") or step["why"]), int(step["total"]))
        for step in document["steps"]
    )
    found_id, state = document.get("reprocess_id"), document.get("state")
    return Reprocessing(found_id, namespace, state, int(document["total"]), done, steps, document)


def _start(
    dataset: str | None,
    partition: Mapping[str, str | int] | None,
    run: str | None,
    schedule: str | None,
    since: Bound | None,
    until: Bound | None,
) -> Document:
    """The start of a re-processing, as the API takes it. Raises `WrongUsage` unless it is exactly one."""
    starts = {"dataset": dataset, "run": run, "schedule": schedule}
    given = [name for name, start in starts.items() if start is not None]
    if len(given) != 1:
        raise WrongUsage(f"expected one of dataset, run and schedule, got {' and '.join(given) or 'none'}", "dataset")
    bounds = {name: bound for name, bound in (("from", since), ("to", until)) if bound is not None}
    if schedule is not None:
        instants = {name: _instant(bound) for name, bound in bounds.items() if not isinstance(bound, Mapping)}
        if len(instants) != 2:
            raise WrongUsage("expected since and until of a schedule as instants, got something else", "since")
        return {"fires": {"schedule": _full(schedule), **instants}}
    if run is not None:
        if bounds or partition is not None:
            raise WrongUsage("expected since and until of a dataset or a schedule, got them with a run", "since")
        return {"run": run}
    values = {name: dict(bound) for name, bound in bounds.items() if isinstance(bound, Mapping)}
    if len(values) != len(bounds):
        raise WrongUsage("expected since and until of a dataset as partitions, got an instant", "since")
    return {"dataset": dataset, **({"partition": dict(partition)} if partition is not None else {}), **values}


def _names(report: Document, change: str) -> tuple[str, ...]:
    return tuple(str(part) for part in report.get(change) or ())


def _record(document: Document) -> Record:
    return Record(
        str(document["id"]),
        str(document["schedule"]),
        str(document["kind"]),
        str(document["reason"]),
        datetime.fromisoformat(str(document["at"])),
        document,
    )


def _full(schedule: str) -> str:
    return names.full_name(names.SCHEDULE, schedule, field="schedule")


def _instant(at: str | datetime) -> str:
    if isinstance(at, datetime):
        return views.instant_of(at, "at")
    return at


def _name_in(document: Mapping[str, Any], field: str, where: str) -> str:
    value = document.get(field)
    if not isinstance(value, str) or not value or "." in value:
        got = "nothing" if value is None else repr(value)
        hint = f"add `{field}: name` at the top of the document"
        raise WrongUsage(f"expected the name of its {field}, got {got}", f"{where}: {field}", hint)
    return value
