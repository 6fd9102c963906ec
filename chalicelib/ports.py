"""The seams between flows and the world, as Protocols: `aws/` implements them, tests wrap them to crash.

The seam between flows and what they start: targets of every type, and what is measured or asked outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.definition import Definition, Listing, PrefixRow
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.event import CountedObject, Event, Partition, PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.request import Requested
from chalicelib.core.rows.run import DeadLetter, Offer, Output, Record, Run
from chalicelib.core.rows.schedule import ScheduleState, Subscription, Timer, Version
from chalicelib.core.rows.stamps import Stamp
from chalicelib.core.runs.metrics import Measure
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, RunUpdate
from chalicelib.core.writes import Conflict, Put, Write
from chalicelib.settings import Settings

T = TypeVar("T")


# A row that is wanted soon: its kind (gate, timer, version, workflow, job, run, record), and what names it.
RowRequest = tuple[str | int, ...]


Kind = Literal["namespace", "app", "workflow", "dataset", "policy", "pool", "dag"]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; ``cursor`` is opaque and None at the end."""

    items: tuple[T, ...]
    cursor: str | None = None


class Clock(Protocol):
    def now(self) -> Instant: ...

    def wait_until(self, instant: Instant) -> None: ...


class Ledger(Protocol):
    """The one place where anything is written to the tables."""

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """Carry out a plan in one piece, or nothing of it. Conflicts are retried; a refusal is an answer."""

    def number(self, limit_name: str) -> int:
        """The next number of a line, for whoever asks (H1). One that is not used is left out."""

    def put_all(self, writes: Sequence[Put]) -> None:
        """Put rows that are harmless to repeat, in batches, in no order."""


class Catalog(Protocol):
    """Definitions and what is derived from them. Reads are strongly consistent unless they say otherwise."""

    def schedule_state(self, schedule: str) -> ScheduleState | None: ...

    def version(self, schedule: str, version: int) -> Version | None: ...

    def versions(self, schedule: str) -> tuple[Version, ...]: ...

    def definition(self, kind: Kind, name: str) -> Definition | None: ...

    def definitions(self, kind: Kind, parent: str, limit: int, cursor: str | None) -> Page[Definition]: ...

    def schedules(self, app: str, limit: int, cursor: str | None, beginning: str = "") -> Page[str]: ...

    def messages(self, app: str, limit: int, cursor: str | None) -> Page[Listing]: ...

    def dataset_of(self, bucket: str, key: str) -> tuple[str, Dataset] | None:
        """The dataset with the longest prefix of an object key, with its full name."""

    def dataset_at(self, bucket: str, prefix: str) -> str | None: ...

    def prefix(self, bucket: str, prefix: str) -> PrefixRow | None: ...

    def subscriptions(self, event_key: str, limit: int, cursor: str | None) -> Page[Subscription]:
        """Index rows of a key, ordered by schedule; a page never splits a schedule."""

    def timer(self, schedule: str) -> Timer | None: ...

    def partition(self, dataset: str, values: tuple[str, ...]) -> Partition | None: ...

    def sized_object(self, dataset: str, object_key: str, etag: str) -> CountedObject | None:
        """An object that was counted; by its content as well (``etag``) where overwrites count."""

    def stored_object(self, dataset: str, digest: str) -> CountedObject | None:
        """An object that was counted, by the digest of its key."""

    def failures(self, schedule: str) -> int:
        """How many runs of a schedule have failed in a row."""

    def partitions(self, dataset: str, limit: int, cursor: str | None) -> Page[Partition]: ...


class JobTable(Protocol):
    def job(self, schedule: str, generation: int, sort_key: str) -> Job | None: ...

    def find(self, job_id: str) -> Job | None: ...

    def jobs(self, schedule: str, generation: int, limit: int, cursor: str | None) -> Page[Job]: ...

    def events_of(self, job: str, schedule: str, generation: int) -> tuple[Event, ...]:
        """The events applied to a job, read strongly through the local index."""

    def last_arrival(self, schedule: str, generation: int, leaf: str) -> Instant | None:
        """When the feed of an absent leaf came last."""

    def posted(self, event_id: str) -> PostedEvent | None: ...

    def requested(self, request: str) -> Requested | None:
        """The job that a request made, if it came before."""

    def backfill(self, schedule: str, backfill_id: str) -> Backfill | None: ...

    def backfills(self, schedule: str) -> tuple[Backfill, ...]:
        """All backfills of a schedule that are remembered, in no order."""

    def notice(self, workflow: str, what: str, notice_id: str) -> PendingNotice | None: ...

    def notices(self, workflow: str, limit: int) -> tuple[PendingNotice, ...]: ...

    def notice_window(self, workflow: str, channel: str) -> NoticeWindow | None:
        """What a target was told of a workflow lately."""

    def deadline(self, job_id: str) -> DeadlineWatch | None:
        """By when a job is to be started, and its run to end."""

    def delivery_leases(self, due: Instant) -> tuple[DeliveryLease, ...]:
        """The leases, expired ones too, under which jobs that are due at an instant are delivered."""

    def plan_part(self, plan: str, number: int) -> PlanPart | None:
        """A part of the entries of a backfill's plan, none if it is not there."""

    def limit_state(self, limit_name: str) -> LimitState: ...

    def head_of(self, limit_name: str, count: int) -> tuple[Waiter, ...]: ...

    def is_queued(self, waiter: Waiter) -> bool:
        """Whether this very row stands in its queue."""

    def offers(self, pool: str, count: int) -> tuple[Offer, ...]:
        """The runs that lie in a pool for workers to take, in their order."""


class RunTable(Protocol):
    def run(self, run_id: str, attempt: int) -> Run | None: ...

    def several(self, names: Sequence[tuple[str, int]]) -> tuple[Run, ...]:
        """Those of these attempts that there are, a hundred to a call."""

    def attempts(self, run_id: str) -> tuple[Run, ...]: ...

    def record(self, job_id: str) -> Record | None: ...

    def output(self, run_id: str, attempt: int) -> Output | None:
        """The last lines of an attempt, if its worker has told them."""

    def dag_run(self, run_id: str) -> DagRun | None:
        """The re-runs of a DAG's run, if there were any."""

    def by_target_id(self, target_id: str) -> tuple[str, int] | None: ...

    def runs(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Run]:
        """History, newest first: ``scope`` is ``workflow``, ``schedule`` or ``day`` (``<namespace>#<yyyy-mm-dd>``)."""

    def records(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Record]:
        """Records, newest first: ``scope`` is ``schedule`` or ``day``."""

    def dead_letters(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[DeadLetter]:
        """Dead letters, newest first: ``scope`` is ``schedule`` or ``namespace``."""

    def has_dead_letter(self, schedule: str) -> bool:
        """Whether a schedule has any dead letter, read strongly: a list may be late."""

    def dead_letter(self, run_id: str) -> DeadLetter | None:
        """That of the latest attempt to deliver this event."""


class Wakes(Protocol):
    def overdue(self, table: Literal["catalog", "jobs", "runs"], until: Instant, limit: int) -> tuple[Ref, ...]:
        """What the wake index of a table yields up to an instant, oldest first. Eventually consistent: rumours."""

    def each_overdue(self, table: Literal["catalog", "jobs", "runs"], until: Instant) -> Iterator[Ref]:
        """All of it, oldest first, read page by page as it is asked for."""

    def upcoming(self, since: Instant, until: Instant, limit: int) -> tuple[tuple[Ref, Instant], ...]:
        """The jobs whose ``wake_at`` lies in a span, but for prepared fires, which have been hinted already."""


class Lake(Protocol):
    """What stands in the buckets of datasets, read as it is at this moment."""

    def text(self, bucket: str, key: str) -> str | None:
        """A small object's content, or None if there is none."""

    def content(self, bucket: str, key: str, most: int) -> bytes | None:
        """An object's bytes, or None if there is none. Raises ValueError for more than ``most``."""

    def metadata_location(self, table: str) -> str | None:
        """Where the Glue catalog says that the metadata of an Iceberg table (``database.table``) lies; None if it has
        no such table."""

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        """The keys of all objects under a prefix."""


class Hints(Protocol):
    """Prompts without a promise: a lost one is found by the sweep, a doubled one changes nothing."""

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None: ...

    def send_all(
        self,
        hints: Sequence[tuple[Instant, Sequence[Ref]]],
        now: Instant,
        patient: bool = False,
        ahead: bool = False,
        must: bool = False,
    ) -> None:
        """The same for several instants. ``patient``: it may take a second, if that makes it cheaper to receive them;
        only for what is due in some seconds. ``ahead``: they are sent ahead of writes to their rows, so they arrive two
        seconds later. ``must``: it raises if the queue does not answer, for the caller would otherwise put its rows off
        for nothing."""


class Payloads(Protocol):
    """Documents in the control bucket. Keys follow from ids and content from stored rows: harmless to repeat."""

    def context_uri(self, run_id: str) -> str: ...

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None: ...

    def context(self, run_id: str) -> Mapping[str, Any] | None: ...

    def log(self, key: str) -> str | None:
        """A log in the control bucket, unpacked, of a large one the end; None if there is none."""

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        """Write a list of events as JSON lines and return its URI."""

    def deployment_uri(self, app: str, digest: str) -> str: ...

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        """Write the document that an app was deployed with, under the digest of it."""

    def put_data(self, uri: str, content: bytes, content_type: str) -> None:
        """Write what a schedule carries and is too large to stand with it. Refused where the bucket does not let us."""


class Metrics(Protocol):
    """Measurements of this invocation (O2). No measurement may fail what is measured: this never raises."""

    def add(self, measure: Measure, value: float, reason: str = "") -> None: ...


class TargetAdapter(Protocol):
    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        """Ask for a start, repeatably: the same attempt again is the same start. Never raises for a refusal."""

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """The same for many, in the target's own batches: an answer to each, in the order given."""

    def ask(self, run: Run) -> RunUpdate | None:
        """The state of a run as the target tells it: None while it has not begun, FAILED if it knows it no more."""

    def ask_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        """The same of many, at a lower cost where the target has one: an answer to each, in the order given."""

    def find(self, run: Run) -> str | None:
        """The target's id of a run with this run's name, if there is one."""

    def cancel(self, run: Run) -> None: ...

    def run_name(self, target_id: str) -> str | None:
        """Which run the target keeps under this id, as ``<run id>-<attempt>``; None if it is none of ours."""


class Targets(Protocol):
    def of(self, kind: str) -> TargetAdapter: ...

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        """Ask a function or a web address and wait: what it says, or why it says nothing (C15)."""

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        """The value of what a load constraint measures outside, or why there is none (C6)."""


class NoMetrics:
    """Where nothing is measured."""

    def add(self, measure: Measure, value: float, reason: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a flow may reach for. ``ends_at`` is when the runtime stops this invocation, None if never."""

    clock: Clock
    ledger: Ledger
    catalog: Catalog
    jobs: JobTable
    runs: RunTable
    wakes: Wakes
    hints: Hints
    targets: Targets
    payloads: Payloads
    lake: Lake
    settings: Settings
    prefetch: Prefetch
    ends_at: Instant | None = None
    metrics: Metrics = field(default_factory=NoMetrics)

    def has_time(self, span: Millis) -> bool:
        """Whether something that takes so long ends before the runtime stops this invocation."""
        return self.ends_at is None or self.clock.now() + span <= self.ends_at


class Prefetch(Protocol):
    def read(self, ports: Ports, wanted: Sequence[RowRequest]) -> Ports:
        """The same ports, knowing these rows as they are at this moment: read strongly, a hundred to a call."""

    def stamps(self, wanted: Sequence[RowRequest]) -> Mapping[RowRequest, Stamp]:
        """The stamps of gates and jobs at this moment, likewise. Rows that do not exist are left out."""


# Losing this many races in a row for one row means that something else is wrong.
MAX_RACES = 25


# How long a hint may be held back in the queue (SQS: 900 s at most); one that is due later is sent again.
MAX_DELAY: Millis = 900_000
