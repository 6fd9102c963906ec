"""What is stored of work that never ran, and how a run is found again by its target's id.

The rows that only runs of pull workers have (W5): an offer in the queue of a pool, and the last lines of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import JobKind, Outcome, RunState

RecordKind = Literal["ABORTED", "DROPPED", "COALESCED", "SKIPPED", "EXPIRED", "LATE"]


@dataclass(frozen=True, slots=True)
class Record(StoredRow):
    """What became of work that never became a run, and why."""

    id: str
    kind: RecordKind
    schedule: str
    generation: int
    reason: str
    recorded_at: Instant
    created_at: Instant | None = None
    count: int = 1
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Pointer(StoredRow):
    """From the target's id of a run to ours."""

    target_id: str
    run_id: str
    attempt: int
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class Offer(StoredRow):
    """A run that a worker of this pool may take. ``rank`` sorts by inverse priority, latest start, age, and ends with
    the attempt. The run's own row decides: an offer whose run is not on offer is a ghost, and is swept up by whoever
    meets it. It has no end of its own: work may lie in its pool for as long as no worker comes."""

    pool: str
    rank: str
    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Output(StoredRow):
    """The last lines that a run has written, as its worker told them, and the exit code of its command."""

    run_id: str
    attempt: int
    text: str
    reported_at: Instant
    exit_code: int | None = None
    expires_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter(StoredRow):
    """One attempt to deliver an event that was given up. ``run_id`` is the id that the consumer was to see.

    ``size`` is that of what it carries, in bytes: its data, else its properties. A row per attempt: whoever removes
    the one that he read does not remove another that came meanwhile.
    """

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    target: str
    reason: str
    tries: int
    failed_at: Instant
    first_try_at: Instant | None = None
    nominal_at: Instant | None = None
    size: int = 0
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

    ``started_at`` and ``ended_at`` are the target's instants. ``state_at`` is ours: when the state was taken in, and so
    when its status was accepted as an event; ``running_seen_at`` is the same for STARTED, which may be told later.
    ``version`` is that of the schedule whose properties it carries. ``cancel`` says that its end is wanted: whoever
    attends to it asks the target for that, until it has ended. ``pause_after``: how many failures in a row its schedule
    bears. ``paced_from`` and ``paced_until``: a start call may begin between these instants with the permits of its
    paces; None once they are used up. While it queues for new ones, ``queued_in`` and ``rank`` are its place.
    ``due_at`` is when a fire was due, ``late`` that it was claimed only after the window that its events are spread
    over (E2).
    ``run_timeout`` is how long it may run (W12; 0: for ever); ``outcome`` says what a plain failure does not.
    ``lease`` counts the leases of a worker's run, ``metrics`` are what it told last (W5). ``number`` counts the runs of
    its workflow (H1), 0 where none is taken; ``waited_for`` is what it waited for last. ``billed`` is what its target
    has billed: vCPU-hours, GB-hours of memory and of storage, each in thousandths; ``bill_checks`` how often it was
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
    queued_in: str | None = None
    rank: str | None = None
    reason: str = ""
    announce: tuple[str, ...] = ()
    cursor: str | None = None
    leases: int = 0
    number: int = 0
    waited_for: str = ""
    billed: tuple[int, ...] = ()
    bill_checks: int = 0
    start_by: Instant | None = None
    end_by: Instant | None = None
    workflow_version: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def target_kind(self) -> str:
        """The type of the target that it goes to."""
        return str(self.request.target["type"])

    @property
    def lateness(self) -> Millis | None:
        """How much later than it was due a fire was started (T4); None for what no clock has started, or not yet."""
        due = self.due_at if self.due_at is not None else self.nominal_at
        if self.kind != "fire" or due is None or self.start_requested_at is None:
            return None
        return self.start_requested_at - due
