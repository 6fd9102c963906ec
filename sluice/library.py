"""Sluice for programs: deploy an app, run a schedule and wait for its end, ask why, read lists item by item.

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
from typing import Any

from sluice import client as transport
from sluice import names
from sluice.client import Document, segment
from sluice.errors import WrongUsage
from sluice.refusals import NotFound
from sluice.signing import SignedHttp

# Without RETRYING, which another attempt follows.
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")
FIRST_PAUSE, MAX_PAUSE = 0.25, 3.0  # seconds between two requests; the pause grows
# A lookup may miss work for a moment while it changes from a job to a run. After so many misses in a row it is gone;
# after two, if the API says what became of it.
MISSES, MISSES_WITH_WORD = 8, 2


@dataclass(frozen=True, slots=True)
class Report:
    """What a deployment did: the parts as ``kind name``, by what happened to them. ``document`` is the whole answer."""

    created: tuple[str, ...]
    replaced: tuple[str, ...]
    deleted: tuple[str, ...]
    document: Document

    @property
    def changed(self) -> bool:
        return bool(self.created or self.replaced or self.deleted)


@dataclass(frozen=True, slots=True)
class Work:
    """A job, or the run that it has become: both have one id. ``why`` is the reason of its state, in words.

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


@dataclass(frozen=True, slots=True)
class Why:
    """Why a schedule, a job or a run is in its state. ``waiting`` are the jobs of a schedule that wait."""

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


class Client(transport.Client):
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
        source: str | os.PathLike[str] | Mapping[str, Any],
        values: Mapping[str, str] | None = None,
        dry_run: bool = False,
        update_schedules: bool | None = None,
    ) -> Report:
        """Deploy an app: a YAML or JSON file, whose placeholders ``values`` fill, or a document. Creates the namespace
        if it does not exist. A dry run checks and reports, and stores nothing."""
        from sluice import documents  # a parser of YAML is slow to load

        given = isinstance(source, Mapping)
        document = dict(source) if isinstance(source, Mapping) else documents.load(os.fspath(source), values)
        where = "document" if given else str(source)
        namespace, app = (_name_in(document, field, where) for field in ("namespace", "app"))
        if not dry_run:
            self._ensure_namespace(namespace)
        query = {"dry_run": True if dry_run else None, "update_schedules": update_schedules}
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
    ) -> Work:
        """Run a schedule now, or ``at`` an instant. With ``partition``, run it for this partition of its dataset, as a
        backfill of one; the partition need not be registered.

        ``wait``: until the run has ended, at most ``timeout`` seconds. Check ``succeeded`` of the answer. A lost answer
        does no harm: the request is repeated under the same key.
        """
        path = names.path_of(names.SCHEDULE, _full(schedule))
        key = uuid.uuid4().hex
        if partition is None:
            body: Document = {"properties": dict(properties or {})}
            if at is not None:
                body["at"] = _instant(at)
            work = _work(self.post(f"{path}/run", body, key=key))
        elif at is not None:
            raise WrongUsage("expected at or partition, got both", "at", "a partition is run now")
        else:
            body = {"partitions": {"values": [dict(partition)]}, "properties": dict(properties or {})}
            backfill = self.post(f"{path}/backfills", body, key=key)
            work = self._handed_out(path, backfill)
        return self.wait(work.id, timeout) if wait else work

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
        """The run of this id, or the job if it is none yet. Raises `NotFound`, with what became of it."""
        try:
            return _work(self.get(f"/v1/runs/{segment(work_id)}"))
        except NotFound:
            return _work(self.get(f"/v1/jobs/{segment(work_id)}/why"))

    def why(self, name: str) -> Why:
        """Why a schedule, or the work of an id, is in its state: what ``sluice why`` shows."""
        if name.count(".") == 2:
            document = self.get(f"{names.path_of(names.SCHEDULE, _full(name))}/why")
        else:
            document = self._why_of_work(name)
        waiting = tuple(_work(job) for job in document.get("jobs") or ())
        return Why(str(document.get("state")), str(document.get("why")), waiting, document)

    def cancel(self, work_id: str) -> None:
        """Cancel a run, or the job if it is none yet. A run ends when its target has ended it."""
        try:
            self.post(f"/v1/runs/{segment(work_id)}/cancel", repeatable=True)
        except NotFound:
            self.post(f"/v1/jobs/{segment(work_id)}/cancel", repeatable=True)

    def runs(
        self, name: str, state: str | None = None, day: str | None = None, most: int | None = None
    ) -> Iterator[Work]:
        """The runs of a schedule, or of a namespace, newest first. Pages are read as they are needed."""
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

    def _handed_out(self, path: str, backfill: Document) -> Work:
        """The job of a backfill of one partition, or its run if that has ended already."""
        backfill_id = str(backfill["backfill_id"])
        for _ in self._pauses(60.0, f"the job of backfill {backfill_id}"):
            for entry in backfill.get("active") or ():
                return Work(str(entry["job_id"]), str(backfill["schedule"]), str(entry["state"]), "", backfill)
            if backfill.get("state") != "RUNNING":
                for item in self.pages(f"{path}/runs", most=transport.PAGE):
                    for run in item.get("items", ()):
                        if run.get("backfill") == backfill_id:
                            return _work(run)
            backfill = self.get(f"{path}/backfills/{segment(backfill_id)}")
        raise AssertionError("unreachable: the pauses end with TimeoutError")

    def _pauses(self, timeout: float | None, what: str) -> Iterator[None]:
        """One turn at once, and further ones after growing pauses. Raises TimeoutError at the end of the time."""
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
        if at.tzinfo is None:
            raise WrongUsage(f"expected an instant with its offset, got {at.isoformat()}", "at", "add tzinfo=UTC")
        return at.isoformat()
    return at


def _name_in(document: Mapping[str, Any], field: str, where: str) -> str:
    value = document.get(field)
    if not isinstance(value, str) or not value or "." in value:
        got = "nothing" if value is None else repr(value)
        hint = f"add `{field}: name` at the top of the document"
        raise WrongUsage(f"expected the name of its {field}, got {got}", f"{where}: {field}", hint)
    return value
