"""The rows of runs: the run itself with its start request, the pointer from the target's id, and dead letters.

Also the record of work that never ran. Pull workers have two rows (W5): the offer of a run in its pool, and the last
lines of its output. `RunSpan` has the fields that views of many runs read of each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import TRAITS, FailureKind, JobKind, RunState, Traits
from chalicelib.core.why import NONE, Why

RecordKind = Literal["ABORTED", "DROPPED", "COALESCED", "SKIPPED", "EXPIRED", "LATE"]


@dataclass(frozen=True, slots=True)
class Record(StoredRow):
    """How work that never became a run ended, and why. ``count`` is how many fires, or events of a fire, it stands for.
    ``rev`` counts its versions: events of a bundle that were sent all the same leave it."""

    id: str
    kind: RecordKind
    schedule: str
    generation: int
    reason: Why
    recorded_at: Instant
    created_at: Instant | None = None
    count: int = 1
    rev: int = 1
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Fire(StoredRow):
    """The bundles of a fire (`core/fires/bundles.py`). It finds the bundle of an event, and never wakes.

    ``starts`` are the numbers of the first events of its bundles; each bundle ends where the next one begins, the last
    one before ``written``. ``left`` are the numbers of the events that left their bundle before they were due.
    """

    id: str
    schedule: str
    generation: int
    nominal_at: Instant
    starts: tuple[int, ...]
    written: int
    left: tuple[int, ...] = ()
    rev: int = 1
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Pointer(StoredRow):
    """Maps the target's id of a run to the run id of Sluice."""

    target_id: str
    run_id: str
    attempt: int
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class Offer(StoredRow):
    """A run that a worker of this pool may claim. ``rank`` sorts by falling priority, latest start and age, and ends
    with the attempt. The run's own row decides: a worker that finds an offer whose run is no longer on offer deletes
    it. An offer never expires: work may wait in its pool for as long as no worker comes."""

    pool: str
    rank: str
    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Output(StoredRow):
    """The last lines of a run's output, as its worker reported them, and the exit code of its command."""

    run_id: str
    attempt: int
    text: str
    reported_at: Instant
    exit_code: int | None = None
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter(StoredRow):
    """An attempt to deliver an event that failed for good. ``run_id`` is the id that the consumer would have seen.

    ``size`` is the size in bytes of its data, or else of its properties. Each attempt has its own row, so that the
    deletion of a row that was read does not delete one that was written since.
    """

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    target: str
    reason: Why
    tries: int
    failed_at: Instant
    first_try_at: Instant | None = None
    nominal_at: Instant | None = None
    size: int = 0
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StartRequest(StoredRow):
    """The arguments of the start call, fixed at the claim, so that a repeated call is the same call.

    ``data`` is the data that a delivery carries instead of the run context. It has a ``content_type``, and its content
    as ``text``, as ``base64``, or by reference as ``uri``. ``logs`` is the folder below ``logs/`` to which the target
    uploads logs, such as ``demo/``.
    """

    target: Mapping[str, Any]
    properties: Mapping[str, Any]
    context_uri: str
    client_token: str
    name: str
    data: Mapping[str, Any] | None = None
    logs: str = ""


@dataclass(frozen=True, slots=True)
class Run(StoredRow):
    """One attempt of a run: an outbox while STARTING, then history.

    The end of the run releases ``permits``, of its pool ``units``. ``latest_start`` is when it must start to meet its
    deadline, and ``start_by`` and ``end_by`` are the deadline itself, if it has one (H5). ``due_at`` is when a fire was
    due. ``late``: the fire was claimed after the window over which its events are spread (E2).

    ``started_at`` and ``ended_at`` are the target's instants. ``state_at`` is when Sluice recorded the state, by its
    own clock, and so when the status was accepted as an event; while STARTING, when it recorded the target's id.
    ``running_seen_at`` is the same for STARTED, which may reach Sluice later. ``run_timeout`` (ms) is how long the
    attempt may run (W12; 0: without a bound), and ``start_timeout`` how long it may take from the start request until
    it runs (W21; None: without a bound).

    ``version`` is that of the schedule whose properties the run carries, and ``workflow_version`` that of the
    workflow's definition at the claim (T10; 0 if it has none). ``cancel``: Sluice requests the cancel from the target
    until the run has ended. ``pause_after`` is the number of failures in a row that pause its schedule. ``recovers``:
    its success may end an incident that a notice has opened (W9). ``outcome`` is the kind of a failure other than a
    plain one.

    ``paced_from`` and ``paced_until``: with the permits of its paces a start call may begin between these instants;
    None once the permits are used up. While the run queues for new ones, ``queued_in`` and ``rank`` are its limit and
    rank.

    ``lease`` counts the leases of a worker's run, and ``metrics`` are those that the worker reported last (W5).
    ``number`` counts the runs of its workflow (H1); 0 if the run has none. ``waited_for`` is the last reason why its
    job waited. ``billed`` is the target's bill, in thousandths of vCPU-hours, GB-hours of memory and GB-hours of
    storage. ``bill_checks`` counts the checks of the bill after the end. ``uses`` is what the run uses of other
    namespaces (O9).

    ``target_role`` is the ARN of the role with which its target was called last (O10); None for that of the Lambda.

    ``named`` are the events that it got with its own ``event``: data and upstream runs with its values, as they were
    at its claim. None for a run that names no values.

    ``dropped_at`` is the instant of the record that its job was dropped, if the run was sent all the same and has
    replaced the record.

    ``approvals`` are those of its job, for its next attempt; None if no other may follow.

    ``spread`` has the number of its event and how many events its fire has, if these are several. The run of a bundle
    stands for the ``count`` events from that number on, without those in ``left``, and for those ``ahead`` of them.
    ``plan`` says when each of them was due (`core/fires/bundles.py`). ``sends`` has its first and its last send and how
    late they were (`core/runs/sends.py`). The run of one of these events has the ``plan``, but no ``sends``.

    ``registers`` are the datasets of which its success registers a partition, by its workflow at the claim (L22), and
    ``registered`` are these partitions, or why there is none: ``dataset``, ``partition`` and ``why``.
    ``period_parts`` has, for each leaf of its job that waited for the partitions of a period, which these are and which
    had come (T25). The first attempt has them, and its events follow from them.

    ``result`` is the JSON value that it has handed on when it succeeded (W18), and ``result_refused`` says why there is
    none although its program gave one.

    ``element`` is that of its job (W19). ``elements`` is the list of a run that stands for its elements, from its start
    on.

    ``requested_by`` is that of its job. ``leased_by`` is the user or role to which the lease of a worker is bound, and
    ``lease_key`` the digest of the lease's token.
    """

    run_id: str
    attempt: int
    schedule: str
    generation: int
    workflow: str
    state: RunState
    request: StartRequest
    permits: tuple[str, ...]
    fired_by: Why
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
    state_at: Instant | None = None
    running_seen_at: Instant | None = None
    correlation: Mapping[str, str] | None = None
    partition: Mapping[str, str] | None = None
    event: Event | None = None
    target_id: str | None = None
    calls: int = 0
    lease_until: Instant | None = None
    unknown_answer: bool = False
    cancel: bool = False
    pause_after: int | None = None
    recovers: bool | None = None
    backfill: str | None = None
    rerun_of: str | None = None
    run_timeout: Millis | None = None
    start_timeout: Millis | None = None
    outcome: FailureKind | None = None
    lease: int = 0
    metrics: Mapping[str, Any] | None = None
    units: int = 0
    latest_start: Instant | None = None
    paced_from: Instant | None = None
    paced_until: Instant | None = None
    queued_in: str | None = None
    rank: str | None = None
    reason: Why = NONE
    announce: tuple[str, ...] = ()
    cursor: str | None = None
    leases: int = 0
    number: int = 0
    waited_for: Why = NONE
    billed: tuple[int, ...] = ()
    bill_checks: int = 0
    start_by: Instant | None = None
    end_by: Instant | None = None
    workflow_version: int = 0
    uses: tuple[str, ...] = ()
    requested_by: str | None = None
    leased_by: str | None = None
    lease_key: str | None = None
    target_role: str | None = None
    named: tuple[Event, ...] | None = None
    dropped_at: Instant | None = None
    approvals: Mapping[str, Any] | None = None
    spread: tuple[int, ...] = ()
    count: int = 1
    ahead: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    plan: tuple[int, ...] = ()
    sends: Mapping[str, Any] | None = None
    registers: tuple[str, ...] = ()
    registered: tuple[Mapping[str, Any], ...] = ()
    period_parts: Mapping[str, Parts] | None = None
    result: Any = None
    result_refused: str = ""
    element: Mapping[str, Any] | None = None
    elements: Sequence[Any] | None = None
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    @property
    def target_kind(self) -> str:
        """The type of its target, such as ``emr_serverless``."""
        return str(self.request.target["type"])

    @property
    def lateness(self) -> Millis | None:
        """How many ms after its due instant a fire was started (T4); of a bundle the largest of its events. None for
        other kinds, before the start call, and for one event of a bundle: its own send is not on record."""
        if self.plan:
            return int(self.sends["max"]) if self.sends is not None else None
        due = self.due_at if self.due_at is not None else self.nominal_at
        if not self.traits.timed or due is None or self.start_requested_at is None:
            return None
        return self.start_requested_at - due

    @property
    def events(self) -> int:
        """How many sent events the run of a bundle stands for; 1 for any other run."""
        return self.count - len(self.left) + len(self.ahead)


@dataclass(frozen=True, slots=True)
class RunSpan:
    """One attempt of a run. The fields are those of `Run`."""

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    state: RunState
    kind: JobKind
    claimed_at: Instant
    created_at: Instant
    accepted_at: Instant | None = None
    due_at: Instant | None = None
    start_requested_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    state_at: Instant | None = None
    count: int = 1
    ahead: tuple[int, ...] = ()
    left: tuple[int, ...] = ()

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    @property
    def events(self) -> int:
        """As that of `Run`."""
        return self.count - len(self.left) + len(self.ahead)


def ready_at(work: Job | Run | RunSpan) -> Instant | None:
    """The instant from which work waits: its last event, or without events its due instant. A retry waits from its due
    instant, since the time before belongs to the first attempt."""
    return work.accepted_at if work.accepted_at is not None and not work.traits.retries else work.due_at
