"""What is stored, as values. One class per kind of row; `aws/keys.py` says under which key each one lives.

Instants are ints (ms). ``rev`` counts the writes of a row that is replaced whole: a write names the revision it read,
and loses if another came first. ``wake_at`` puts a row into the sparse wake index: it wants attention from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.backfill_rows import Backfill as Backfill
from chalicelib.core.backfill_rows import PlanPart as PlanPart
from chalicelib.core.calendar import DAY, Instant, Millis
from chalicelib.core.dag_rows import DagRun as DagRun
from chalicelib.core.documents_stored import Definition as Definition
from chalicelib.core.documents_stored import Listing as Listing
from chalicelib.core.documents_stored import PrefixRow as PrefixRow
from chalicelib.core.events import Event as Event
from chalicelib.core.events import Marker as Marker
from chalicelib.core.events import Outbox as Outbox
from chalicelib.core.events import Partition as Partition
from chalicelib.core.events import Posted as Posted
from chalicelib.core.events import Seen as Seen
from chalicelib.core.events import SizedObject as SizedObject
from chalicelib.core.history_rows import Pointer as Pointer
from chalicelib.core.history_rows import Record as Record
from chalicelib.core.history_rows import RecordKind as RecordKind
from chalicelib.core.notice_rows import Alert as Alert
from chalicelib.core.notice_rows import Note as Note
from chalicelib.core.notice_rows import Watch as Watch
from chalicelib.core.progress import Progress
from chalicelib.core.request_rows import Requested as Requested
from chalicelib.core.states import JobKind, JobState, Mode, Outcome, RunState
from chalicelib.core.stored_row import StoredRow
from chalicelib.core.worker_rows import Offer as Offer
from chalicelib.core.worker_rows import Output as Output

GATHERING = "PENDING"
WAKE = "~"  # the leaf of an index row that gathers nothing
HISTORY: Millis = 180 * DAY  # how long runs and records are kept (H1)


@dataclass(frozen=True, slots=True)
class Gate(StoredRow):
    """The small row that every claim checks: may this generation and version of a schedule be launched from?

    ``rev`` counts its changes. ``since`` is when the generation began to gather, ``mode_at`` when the mode began.
    ``pauses`` are the spans in which timeouts stood still, the last one open-ended while it lasts; ``skips`` the
    nominal instants that are left out. ``wake_at`` makes it an outbox: the jobs of the generation are to be looked at.
    ``expires_at``: a message's that is gone passes with its history. ``former``: earlier generations of a DAG's node.
    ``uncounted``: living runs may lack a permit of a group or pool that this version names (`core/counting.py`).
    """

    schedule: str
    generation: int
    version: int
    mode: Mode
    updated_at: Instant
    by: str = ""
    rev: int = 1
    since: Instant = 0
    pauses: tuple[tuple[Instant, Instant | None], ...] = ()
    skips: tuple[Instant, ...] = ()
    reason: str = ""
    mode_at: Instant = 0
    former: tuple[int, ...] = ()
    uncounted: bool = False
    wake_at: Instant | None = None
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Version(StoredRow):
    """One version of a schedule's definition. Never changed once written, so it may be cached for ever."""

    schedule: str
    version: int
    definition: Mapping[str, Any]
    created_at: Instant
    by: str = ""
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Subscription(StoredRow):
    """A row of the reverse index: events of this key, accepted at ``since`` or later, touch this leaf.

    The leaf `WAKE` gathers nothing: the event may meet a constraint, so the waiting jobs are looked at. ``apart``:
    a job whose trigger is met makes room for the next at once (C11: ``coalesce: false``, and the mode ``backlog``).
    """

    event_key: str
    schedule: str
    generation: int
    version: int
    leaf: str
    since: Instant
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Timer(StoredRow):
    """The next nominal instant of each timed leaf, and the anchor that ``@every`` counts from. A leaf that has none
    any more (its repeats are used up) is left out.
    ``fired`` is how often each leaf with ``repeats`` has fired. ``begun`` are the fires of which not every event is
    written yet (E2): nominal instant, the instant at which the first is due, and how many are written.
    """

    schedule: str
    generation: int
    version: int
    anchor: Instant
    next: Mapping[str, Instant]
    fired: Mapping[str, int] = field(default_factory=dict)
    begun: tuple[tuple[Instant, Instant, int], ...] = ()
    rev: int = 1
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Failures(StoredRow):
    """How many runs of a schedule have failed in a row (L19)."""

    schedule: str
    count: int


@dataclass(frozen=True, slots=True)
class Job(StoredRow):
    """Work that wants to become a run. ``place`` is its sort key; ``held`` are permits it keeps while it queues;
    ``backfill`` is the one that it is a part of, ``rerun_of`` the run whose arguments it carries, ``number`` that of
    the run which a retry goes on with (H1).
    ``tries`` counts the deliveries that were tried, from ``first_try_at`` on; the next is not made before ``retry_at``.
    ``units`` is what it holds of its pool. ``priority`` is what it has beyond its own, and ``lent`` says from whom.
    ``measured`` are the loads as they were seen last, ``approvals`` who approved of it, and when; ``probed`` is what
    its probe said last. A fire is called by ``nominal_at`` (None: ``due_at``) and, of several events, by its ``index``;
    ``window_end`` is when the window ends of its events, ``prepared_at`` when it was written, if that was too late.
    """

    schedule: str
    generation: int
    place: str
    job_id: str
    kind: JobKind
    state: JobState
    created_at: Instant
    rev: int = 1
    due_at: Instant | None = None
    nominal_at: Instant | None = None
    index: int = 0
    window_end: Instant | None = None
    prepared_at: Instant | None = None
    leaves: Mapping[str, Progress] = field(default_factory=dict)
    met_at: Instant | None = None
    accepted_at: Instant | None = None
    correlation: Mapping[str, str] | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    leaf: str | None = None
    event: Event | None = None
    held: tuple[str, ...] = ()
    units: int = 0
    waits_at: str | None = None
    rank: str | None = None
    reason: str = ""
    closed: bool = False
    backfill: str | None = None
    rerun_of: str | None = None
    number: int = 0
    leases: int = 0
    tries: int = 0
    first_try_at: Instant | None = None
    retry_at: Instant | None = None
    probed: Mapping[str, Any] = field(default_factory=dict)
    priority: int | None = None
    lent: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    wake_at: Instant | None = None
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StartRequest(StoredRow):
    """Exactly what the target is asked to start, fixed at the claim, so that a repeated call is the same call.

    ``data`` is what a delivery carries instead of the run context: its ``content_type``, and its content as ``text``,
    as ``base64``, or by reference as ``uri``.
    """

    target: Mapping[str, Any]
    properties: Mapping[str, Any]
    context_uri: str
    client_token: str
    name: str
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Run(StoredRow):
    """One attempt of a run: outbox while STARTING, then history. ``permits`` are given back when it ends, to its pool
    ``units`` of them. ``latest_start`` is when it must start to meet its deadline.

    ``started_at`` and ``ended_at`` are the target's instants. ``moved_at`` is ours: when the state was taken in, and so
    when its status was accepted as an event; ``running_at`` is the same for STARTED, which may be told later.
    ``version`` is that of the schedule whose properties it carries. ``cancel`` says that its end is wanted: whoever
    attends to it asks the target for that, until it has ended. ``pause_after``: how many failures in a row its schedule
    bears. ``paced_from`` and ``paced_until``: a start call may begin between these instants with the permits of its
    paces; None once they are used up. While it queues for new ones, ``waits_at`` and ``rank`` are its place.
    ``due_at`` is when a fire was due, ``late`` that it was claimed only after the window that its events are spread
    over (E2).
    ``run_timeout`` is how long it may run (W12; 0: for ever); ``outcome`` says what a plain failure does not.
    ``lease`` counts the leases of a worker's run, ``metrics`` are what it told last (W5). ``number`` counts the runs of
    its workflow (H1), 0 where none is taken; ``waited_for`` is what it waited for last. ``billed`` is what its target
    has billed: vCPU-hours, GB-hours of memory and of storage, each in thousandths; ``bill_looks`` how often it was
    asked for that after the end. ``start_by`` and ``end_by`` are its deadline, if it has one (H5).
    ``workflow_version`` is that of the workflow's definition at the claim (T10); 0 if it has none.
    """

    run_id: str
    attempt: int
    schedule: str
    generation: int
    workflow: str
    state: RunState
    request: StartRequest
    permits: tuple[str, ...]
    fired_by: str
    claimed_at: Instant
    created_at: Instant
    priority: int
    attempts: int
    kind: JobKind
    version: int = 0
    rev: int = 1
    nominal_at: Instant | None = None
    due_at: Instant | None = None
    late: bool = False
    accepted_at: Instant | None = None
    start_requested_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    moved_at: Instant | None = None
    running_at: Instant | None = None
    correlation: Mapping[str, str] | None = None
    partition: Mapping[str, str] | None = None
    event: Event | None = None
    target_id: str | None = None
    calls: int = 0
    lease_until: Instant | None = None
    unknown_answer: bool = False
    cancel: bool = False
    pause_after: int | None = None
    backfill: str | None = None
    rerun_of: str | None = None
    run_timeout: Millis | None = None
    outcome: Outcome | None = None
    lease: int = 0
    metrics: Mapping[str, Any] | None = None
    units: int = 0
    latest_start: Instant | None = None
    paced_from: Instant | None = None
    paced_until: Instant | None = None
    waits_at: str | None = None
    rank: str | None = None
    reason: str = ""
    announce: tuple[str, ...] = ()
    cursor: str | None = None
    leases: int = 0
    number: int = 0
    waited_for: str = ""
    billed: tuple[int, ...] = ()
    bill_looks: int = 0
    start_by: Instant | None = None
    end_by: Instant | None = None
    workflow_version: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def lateness(self) -> Millis | None:
        """How much later than it was due a fire was started (T4); None for what no clock has started, or not yet."""
        due = self.due_at if self.due_at is not None else self.nominal_at
        if self.kind != "fire" or due is None or self.start_requested_at is None:
            return None
        return self.start_requested_at - due
