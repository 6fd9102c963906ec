"""The ports: Protocols for the tables, queues, buckets, targets and the clock that the steps use.

`aws/` implements them. Tests wrap them, for example to crash after each write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from chalicelib.core.audit.author import Author
from chalicelib.core.definition_kinds import DefinitionKind
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition, Listing, PrefixRow
from chalicelib.core.rows.delivery_lease import ClosingCount, DeliveryLease
from chalicelib.core.rows.event import AppliedEvent, Event, ManifestRow, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key, Part, Stamp, TableName
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import DeadLetter, Offer, Record, Run, RunSpan
from chalicelib.core.rows.schedule import Subscription, Version
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.runs.metrics import Measure
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, RunUpdate
from chalicelib.core.writes import Conflict, Put, Write
from chalicelib.settings import Settings

T = TypeVar("T")
R = TypeVar("R", bound=StoredRow)


Kind = DefinitionKind


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list. ``cursor`` is opaque, and None on the last page."""

    items: tuple[T, ...]
    cursor: str | None = None


def every_page(read: Callable[[int, str | None], Page[T]], size: int, cursor: str | None = None) -> Iterator[Page[T]]:
    """The pages of a list of at most ``size`` items each, from ``cursor`` on. A page is read when the caller is done
    with the page before it."""
    while True:
        page = read(size, cursor)
        yield page
        if page.cursor is None:
            return
        cursor = page.cursor


@dataclass(frozen=True, slots=True)
class Soonest:
    """Refs with their ``wake_at``, in its order. ``complete_to``: after this instant others may be missing (None: these
    are all)."""

    refs: tuple[tuple[Ref, Instant], ...]
    complete_to: Instant | None = None


class Clock(Protocol):
    """The clock of an invocation, in ms since 1970."""

    def now(self) -> Instant: ...

    def wait_until(self, instant: Instant) -> None: ...


class Ledger(Protocol):
    """All writes to the tables."""

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """Carry out a plan in one transaction. Returns None, or the conflict with the writes whose conditions failed.

        Collisions with concurrent transactions are retried. A plan that closes something is counted before
        (`core/schedules/closings.py`).
        """

    def count_closing(self, namespace: str) -> None:
        """Count a closing that is about to be committed, so that deliveries in progress read their rows again."""

    def number(self, limit_name: str) -> int:
        """The next run number of a limit (H1). A number that the caller does not use is skipped."""

    def put_all(self, writes: Sequence[Put]) -> None:
        """Put rows without conditions, in batches, in no order. Only for rows whose repeated put is idempotent."""


class Rows(Protocol):
    """Single rows, by strongly consistent reads (`core/rows/kinds.py`)."""

    def get(self, row: type[R], *values: Part) -> R | None:
        """The row of this class that has these values in the fields of its key; None if it does not exist."""

    def of(self, ref: Ref) -> Any:
        """The row that a ref names; None if it does not exist, or the ref names no single row."""


class Catalog(Protocol):
    """Lists of the catalog table: definitions, schedules, subscriptions, prefixes and partitions.

    Reads are strongly consistent unless their docstring names another consistency.
    """

    def versions(self, schedule: str, limit: int, before: int | None = None) -> tuple[Version, ...]:
        """The newest versions of a schedule, newest first; with ``before`` only those with a lower number."""

    def allowed_lately(self, namespace: str, now: Instant) -> AllowedRow | None:
        """The allow-list of a namespace, as this process has read it in the last seconds before ``now``."""

    def is_shared(self, joining: str = "") -> bool:
        """Whether the installation has more than one namespace, besides that of Sluice's own app. With ``joining`` as
        if that namespace existed."""

    def is_shared_lately(self, now: Instant) -> bool:
        """Whether it has, as this process has read it in the last seconds before ``now``."""

    def accesses(self, limit: int, cursor: str | None) -> Page[AccessRow]: ...

    def definitions(self, kind: Kind, parent: str, limit: int, cursor: str | None) -> Page[Definition]: ...

    def schedules(self, app: str, limit: int, cursor: str | None, beginning: str = "") -> Page[str]: ...

    def listings(self, app: str, limit: int, cursor: str | None) -> Page[Listing]:
        """The entries in the list of an app's schedules."""

    def count(self, kind: Kind, parent: str) -> int:
        """How many definitions of a kind a namespace or an app has, by eventually consistent reads."""

    def schedules_after(self, app: str, after: str, limit: int) -> Page[str]:
        """The full names of an app's schedules that follow the short name ``after``. The cursor is a short name."""

    def messages(self, app: str, limit: int, cursor: str | None) -> Page[Listing]: ...

    def dataset_of(self, bucket: str, key: str) -> tuple[str, Dataset] | None:
        """The full name and the definition of the dataset that gets an object: of the namespace to which the innermost
        folder of its key belongs, the dataset with the longest prefix."""

    def prefixes_around(self, bucket: str, prefix: str) -> tuple[PrefixRow, ...]:
        """The rows of a prefix and of the folders around it, the outermost first."""

    def prefixes_in(self, bucket: str, prefix: str, limit: int, cursor: str | None) -> Page[PrefixRow]:
        """The rows of a prefix and of all folders inside it; of the whole bucket if it is empty."""

    def subscriptions(self, event_key: str, limit: int, cursor: str | None) -> Page[Subscription]:
        """The subscriptions of an event key, ordered by schedule. A page never splits a schedule."""

    def manifests(self, dataset: str, limit: int) -> tuple[ManifestRow, ...]:
        """The manifests of a dataset that were checked, the last partitions first."""

    def partitions(
        self,
        dataset: str,
        limit: int,
        cursor: str | None,
        forward: bool = True,
        beginning: str = "",
        since: str = "",
    ) -> Page[Partition]:
        """The partitions whose values, joined by ``/``, start with ``beginning``, in the order of this text. With
        ``since``, those from this text on."""


class JobTable(Protocol):
    """Lists of the jobs table: jobs, events, limits, waiters, offers, backfills and notices."""

    def find(self, job_id: str) -> Job | None: ...

    def jobs(
        self, schedule: str, generation: int, limit: int, cursor: str | None, first: str = sort_keys.FIRST_JOB
    ) -> Page[Job]:
        """The jobs of a generation in the order of their sort keys, from the sort key ``first`` on."""

    def events_of(self, job: str, schedule: str, generation: int, most: int | None = None) -> tuple[Event, ...]:
        """The events applied to a job, by a strong read of the local index; with ``most`` only that many."""

    def applied(self, places: Sequence[tuple[str, int, str]]) -> tuple[AppliedEvent, ...]:
        """The applied events that exist of these schedules, generations and event ids, read a hundred per call."""

    def backfills(self, schedule: str) -> tuple[Backfill, ...]:
        """All stored backfills of a schedule, in no order."""

    def reprocesses(self, namespace: str) -> tuple[Reprocess, ...]:
        """The re-processings of a namespace, in no order."""

    def notices(self, workflow: str, limit: int) -> tuple[PendingNotice, ...]: ...

    def delivery_leases(self, due: Instant, singles: Collection[str] | None = None) -> tuple[DeliveryLease, ...]:
        """The delivery leases on jobs that are due at an instant, including expired ones. With ``singles``, those of
        batches, and of single jobs those on the jobs with these marks."""

    def closings(self, namespaces: Collection[str]) -> dict[str, ClosingCount | None]:
        """The counts of closings of these namespaces; None if nothing was closed in one so far."""

    def limit_state(self, limit_name: str) -> LimitState: ...

    def head_of(self, limit_name: str, count: int) -> tuple[Waiter, ...]: ...

    def limit_states(self, limit_names: Sequence[str]) -> tuple[LimitState, ...]:
        """The states of these limits in the given order, read a hundred per call."""

    def queue(self, limit_name: str, limit: int, cursor: str | None) -> Page[Waiter]:
        """The queue of a limit, in the order in which it is served."""

    def is_queued(self, waiter: Waiter) -> bool:
        """Whether this waiter exists in its queue."""

    def offers(self, pool: str, count: int) -> tuple[Offer, ...]:
        """The offers of a pool to workers, the most urgent first."""


class RunTable(Protocol):
    """Lists of the runs table: runs, records and dead letters."""

    def several(self, names: Sequence[tuple[str, int]], strong: bool = True) -> tuple[Run, ...]:
        """The attempts with these run ids and numbers that exist, read a hundred per call. ``strong`` is as for
        `Prefetch.read`."""

    def attempts(self, run_id: str) -> tuple[Run, ...]: ...

    def runs(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Run]:
        """History, newest first: ``scope`` is ``workflow``, ``schedule`` or ``day`` (``<namespace>#<yyyy-mm-dd>``)."""

    def spans(self, scope: str, names: Sequence[str], since: Instant, until: Instant, most: int) -> tuple[RunSpan, ...]:
        """The newest ``most`` attempts that were claimed in ``[since, until)``, newest first, by eventually consistent
        reads. ``scope`` is as in `runs`; of several names, each has newer attempts than the next."""

    def claimed(self, namespace: str, since: Instant, until: Instant, most: int) -> tuple[tuple[str, int], ...]:
        """The run ids and numbers of the newest ``most`` attempts of a namespace that were claimed in ``[since,
        until)``, newest first, by eventually consistent reads."""

    def attempts_between(self, schedule: str, since: Instant, until: Instant, most: int) -> tuple[Run, ...]:
        """The newest ``most`` attempts of a schedule that were claimed in ``[since, until)``, read as in `spans`."""

    def records_between(self, schedule: str, since: Instant, until: Instant, most: int) -> tuple[Record, ...]:
        """The newest ``most`` records of a schedule from ``[since, until)``, read as in `spans`."""

    def records(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Record]:
        """Records, newest first: ``scope`` is ``schedule`` or ``day``."""

    def dead_letters(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[DeadLetter]:
        """Dead letters, newest first: ``scope`` is ``schedule`` or ``namespace``."""

    def has_dead_letter(self, schedule: str) -> bool:
        """Whether a schedule has a dead letter, by a strong read; ``dead_letters`` may return stale lists."""

    def dead_letter(self, run_id: str) -> DeadLetter | None:
        """The dead letter of the latest attempt to deliver an event."""

    def audit(self, namespace: str, since: Instant, until: Instant, limit: int, cursor: str | None) -> Page[AuditRow]:
        """The audit records of a namespace from ``[since, until)``, newest first, by strong reads."""

    def audit_of_all(self, since: Instant, until: Instant, limit: int, cursor: str | None) -> Page[AuditRow]:
        """The audit records of all namespaces from ``[since, until)``, newest first."""


class Wakes(Protocol):
    """The wake indexes: refs of rows by their ``wake_at``. Reads are eventually consistent."""

    def overdue(self, table: TableName, until: Instant, limit: int) -> tuple[Ref, ...]:
        """The refs of a table with a ``wake_at`` up to an instant, oldest first. Re-read each row before acting."""

    def due(
        self, table: TableName, shard: int, until: Instant, limit: int, cursor: str | None
    ) -> Page[tuple[Ref, Instant]]:
        """The refs of one shard with a ``wake_at`` up to an instant, and that instant; oldest first. A page reads at
        most ``limit`` rows of the index. Raises ``bad_cursor``."""

    def upcoming(self, since: Instant, until: Instant) -> tuple[tuple[Ref, Instant], ...]:
        """All jobs with a ``wake_at`` in an interval, without prepared fires, which have already been hinted."""

    def soonest(
        self, table: TableName, since: Instant, until: Instant, limit: int
    ) -> Soonest:  # fmt: skip
        """The refs of a table with a ``wake_at`` in an interval, the ``limit`` earliest ones."""

    def waking(self, table: TableName, until: Instant, limit: int, cursor: str | None) -> Page[tuple[Ref, Instant]]:
        """The refs of a table with a ``wake_at`` up to an instant, and that instant; oldest first in each shard. A page
        reads at most ``limit`` rows of the index."""

    def listed(self, group: Literal["waits", "paused"], namespace: str, limit: int, cursor: str | None) -> Page[Ref]:
        """The rows of a namespace that need no attention at any instant, oldest first in each shard. The group
        ``waits`` has the jobs that an event, a person or a resume wakes and that stand in no queue. ``paused`` has the
        schedules on pause."""


class Lake(Protocol):
    """The objects in the buckets of datasets. Reads are strongly consistent."""

    def text(self, bucket: str, key: str) -> str | None:
        """The content of a small object, or None if it does not exist."""

    def content(self, bucket: str, key: str, most: int) -> bytes | None:
        """The bytes of an object, or None if it does not exist. Raises ValueError for more than ``most`` bytes."""

    def stored(self, bucket: str, key: str, most: int) -> StoredObject | None:
        """An object as it is now; as `content`."""

    def metadata_location(self, table: str) -> str | None:
        """The metadata location of an Iceberg table (``database.table``) in the Glue catalog; None if it has no such
        table."""

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        """The keys of all objects under a prefix."""


class Hints(Protocol):
    """Hints: messages that make a step run soon. The sweep replaces lost hints, and a repeated hint changes nothing."""

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None: ...

    def send_all(
        self,
        hints: Sequence[tuple[Instant, Sequence[Ref]]],
        now: Instant,
        *,
        patient: bool = False,
        ahead: bool = False,
        must: bool = False,
        crowd: int = 0,
    ) -> None:
        """Send hints for several instants.

        ``patient``: the call may take a second if that makes the hints cheaper to receive; only for refs that are due
        in some seconds. ``ahead``: the rows are written after the hints, so these arrive two seconds later. ``must``:
        raise if the queue does not answer, so that the caller does not postpone its rows. ``crowd``: about how many
        rows are due at an instant in all, if these are a part of them.
        """

    def keep_warm(self) -> None:
        """Send a hint without rows, unless a hint that is no part of a burst was sent since the last call. It keeps one
        environment of the Lambda for such hints, so that the next job does not wait for a cold start."""


class Payloads(Protocol):
    """Documents in the control bucket. Keys derive from ids and content from stored rows, so writes are idempotent."""

    def context_uri(self, run_id: str) -> str: ...

    def put_context(self, run_id: str, context: Mapping[str, Any]) -> None: ...

    def context(self, run_id: str) -> Mapping[str, Any] | None: ...

    def result_uri(self, run_id: str, attempt: int) -> str:
        """Where the program of an attempt writes its result (W18)."""

    def result(self, run_id: str, attempt: int, most: int) -> bytes | None:
        """What it has written there; of more than ``most`` bytes the first, one more than these. None: nothing."""

    def log(self, key: str) -> str | None:
        """A log in the control bucket, unpacked; only the end of a large one; None if it does not exist."""

    def put_manifest(self, run_id: str, events: Sequence[Mapping[str, Any]]) -> str:
        """Write a list of events as JSON lines and return its URI."""

    def manifest(self, run_id: str) -> list[dict[str, Any]] | None:
        """The events of the manifest of a run; None if it has none."""

    def deployment_uri(self, app: str, digest: str) -> str: ...

    def put_deployment(self, app: str, digest: str, document: Mapping[str, Any]) -> None:
        """Write the document of a deployment under its digest."""

    def deployment(self, app: str, digest: str) -> Mapping[str, Any] | None:
        """The document of a deployment; None if it is gone."""

    def upload_url(self, app: str, upload: str, seconds: int) -> str:
        """A URL to which a client may put the document of an app, for so many seconds."""

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        """An uploaded document; None if there is none. Of a document of more than ``most`` bytes, the first ones and at
        least one more."""

    def put_seen(self, app: str, upload: str, stamps: Mapping[str, str]) -> str:
        """Write what the deployment of an upload saw at its acceptance, and return the digest that names it."""

    def seen(self, app: str, upload: str, digest: str) -> Mapping[str, str] | None: ...

    def put_data(self, uri: str, content: bytes, content_type: str) -> None:
        """Write large data of a schedule or message. Raises SluiceError if the bucket denies the write."""


class Metrics(Protocol):
    """Measurements of this invocation (O2). ``add`` never raises, so no measurement makes a step fail."""

    def add(self, measure: Measure, value: float, reason: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The content of an object, and when it was put, in whole seconds."""

    content: bytes
    at: Instant
    etag: str


class TargetAdapter(Protocol):
    """The calls to targets of one type."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        """Start a run, idempotently: a repeated call for an attempt is the same start. A refusal is an answer."""

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Start several runs, in batches of the target. Returns an answer for each, in the given order."""

    def status(self, run: Run) -> RunUpdate | None:
        """The state of a run at the target. None if it has not begun or the target throttles; FAILED if it is lost."""

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        """The states of several runs, at lower cost if the target allows that, in the given order."""

    def find(self, run: Run) -> str | None:
        """The target's id of the run with this run's name, or None."""

    def cancel(self, run: Run) -> None: ...

    def run_name(self, target_id: str) -> str | None:
        """The run with this id at the target, as ``<run id>-<attempt>``; None if Sluice did not start it."""


class Targets(Protocol):
    """The target adapters by type, and calls to systems outside of Sluice."""

    def of(self, kind: str, role: TargetRole | None = None) -> TargetAdapter:
        """The adapter of a type of target. With a ``role``, it calls AWS with the credentials that `assume` has got for
        it, and gets none itself."""

    def assume(self, kind: str, role: TargetRole) -> NotAssumed | None:
        """Get credentials of a role that are valid for the next minutes, unless there are some, and build the adapter.
        Returns why there are none."""

    def check(self, target: Mapping[str, Any]) -> None:
        """Raise ``invalid`` for the document of a target that no call can carry, by the models of the SDK (W22). Only
        for types with ``has_model``."""

    def probe(
        self, target: Mapping[str, Any], question: Mapping[str, Any], role: TargetRole | None = None
    ) -> bytes | Never | NoAnswer:
        """Call a function or a web address and return its answer, or why there is none (C15). ``role`` is as in
        `of`."""

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        """The value of the external metric of a load constraint, or why there is none (C6)."""


class Over:
    """A port over another one: it answers some calls by itself, and passes all others on."""

    def __init__(self, below: Any) -> None:
        self._below = below

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)


class NoMetrics:
    """Metrics that discard every measurement."""

    def add(self, measure: Measure, value: float, reason: str = "") -> None: ...


def unnamed(author: Author) -> AbstractContextManager[None]:
    """Names no author: no audit record is written."""
    return nullcontext()


def no_author() -> Author | None:
    """The author of work that no request asks for, such as the prepared fires of a timer: None."""
    return None


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a step may use. ``ends_at`` is when the runtime stops this invocation, or None if never.

    ``author`` returns the author of the request in progress; None outside of requests. In the block of ``acting`` this
    is another one: a request that is worked off later."""

    clock: Clock
    ledger: Ledger
    rows: Rows
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
    author: Callable[[], Author | None] = no_author
    acting: Callable[[Author], AbstractContextManager[None]] = unnamed

    @property
    def requester(self) -> str | None:
        """The ARN of the signer of the request in progress; None outside of requests, or if no signer is known."""
        author = self.author()
        return author.arn or None if author is not None else None

    @property
    def member(self) -> str | None:
        """The user or role that signs the request in progress, without its session; None as for ``requester``."""
        author = self.author()
        return author.member or None if author is not None else None

    def has_time(self, span: Millis) -> bool:
        """Whether work of ``span`` ms ends before the runtime stops this invocation."""
        return self.ends_at is None or self.clock.now() + span <= self.ends_at


class Prefetch(Protocol):
    """Reads of many rows, a hundred per call."""

    def read(self, ports: Ports, wanted: Sequence[Key], strong: bool = True) -> Ports:
        """The ports with these rows read ahead, as they are now. Unless ``strong``, as they were a moment ago: enough
        for a view whose rows an index names, at half the cost."""

    def stamps(self, wanted: Sequence[Key]) -> Mapping[Key, Stamp]:
        """The present stamps of schedule states and jobs. Rows that do not exist are left out."""


# After so many conflicts in a row, concurrent writes are not the cause.
MAX_CONFLICTS = 25


# The maximum delay of a message in SQS, 900 s. A hint that is due later is sent again.
MAX_DELAY: Millis = 900_000


def too_many_conflicts(what: str, then: str) -> RuntimeError:
    """The error of work of which every attempt met a concurrent write: ``what`` it was, and ``then`` what follows."""
    return RuntimeError(f"{what}: {MAX_CONFLICTS} attempts met a concurrent write; {then}")
