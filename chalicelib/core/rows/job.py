"""The row of a job, the progress of its leaves, and the request that created it.

Instants are ints (ms). ``rev`` counts the writes of a row that is replaced whole. A write expects the revision that was
read, and fails if another write came first. ``wake_at`` puts a row into the sparse wake index: the row needs attention
from that instant on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.parts import Parts
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.states import TRAITS, JobKind, JobState, Traits
from chalicelib.core.why import NONE, Why


@dataclass(frozen=True, slots=True)
class Progress:
    """What one leaf has gathered: the number of events, when the first and last were accepted, and bytes (``amount``).
    ``parts`` has which parts of a period have come, if the leaf waits for all of them (T25). ``lacks`` names what an
    absence is about, in words, if that is one or more of several partitions (T29).

    ``unknown`` is what newer code has stored behind these; a write keeps it as it is (O11).
    """

    count: int
    first_at: Instant
    last_at: Instant
    amount: int = 0
    parts: Parts | None = None
    lacks: str = ""
    unknown: tuple[Any, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, numbers: Sequence[Any]) -> Progress:
        """Progress from its stored numbers, in order, and the text of its parts."""
        count, first_at, last_at, amount, *more = numbers
        parts = Parts.of_text(more[0]) if more and more[0] else None
        return cls(count, first_at, last_at, amount, parts, more[1] if more[1:] else "", tuple(more[2:]))

    @property
    def numbers(self) -> list[Any]:
        """The form in which a row stores the progress; `of` reads it."""
        more = [self.parts.text if self.parts is not None else "", self.lacks, *self.unknown]
        while more and more[-1] == "":
            more.pop()
        return [self.count, self.first_at, self.last_at, self.amount, *more]

    def plus(self, more: int, at: Instant, amount: int = 0) -> Progress:
        """Progress with ``more`` events, the last of them accepted at ``at``."""
        first, last = min(self.first_at, at), max(self.last_at, at)
        return Progress(self.count + more, first, last, self.amount + amount, self.parts, self.lacks, self.unknown)


@dataclass(frozen=True, slots=True)
class Job(StoredRow):
    """Work that becomes a run once its conditions are met.

    ``held`` are the permits that the job keeps while it queues, and ``units`` the units of its pool among them.
    ``backfill`` is the id of its backfill, and ``rerun_of`` the run whose arguments it carries. ``number`` is the
    number of the run that a retry continues (H1).

    ``tries`` counts the delivery attempts, ``first_try_at`` is the first one, and Sluice makes the next at ``retry_at``
    or later. ``priority`` is an inherited priority, and ``inherited`` its origin; a retry keeps that of its run.

    ``measured`` are the last load readings, and ``probed`` is the last answer of the probe. ``approvals`` has the users
    who approved, and when (None: nobody). ``nominal_at`` (None:
    ``due_at``) identifies a fire, ``index`` one of its several events. ``shape`` is their number and their window, in
    ms; empty for a fire of one event, and in a bundle, which has it in its plan. ``window_end`` is the end of the
    window; ``prepared_at`` is when the fire was written, if that was late. ``requested_by`` is the ARN of
    the signer who requested the job, or who posted the last of its events that a signer posted.

    A *bundle* stands for ``count`` events of a fire, those from number ``index`` on (`core/fires/bundles.py`). ``plan``
    says when each of them is due; only bundles have one. The first ``done`` of them are settled, and those ``ahead`` of
    these. Those with the numbers ``left`` are not in the bundle any more. ``due_at`` is the instant of the first one
    that is neither.

    ``element`` is that of a list for which a node of a DAG runs (W19): its ``index`` from 0 on, its ``value``, the
    ``count`` of elements, and ``of``, the id of the run of the node.
    """

    schedule: str
    generation: int
    sort_key: str
    job_id: str
    kind: JobKind
    state: JobState
    created_at: Instant
    rev: int = 1
    due_at: Instant | None = None
    nominal_at: Instant | None = None
    index: int = 0
    shape: tuple[int, ...] = ()
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
    queued_in: str | None = None
    rank: str | None = None
    reason: Why = NONE
    closed: bool = False
    backfill: str | None = None
    rerun_of: str | None = None
    number: int = 0
    count: int = 1
    plan: tuple[int, ...] = ()
    done: int = 0
    ahead: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    leases: int = 0
    tries: int = 0
    first_try_at: Instant | None = None
    retry_at: Instant | None = None
    probed: Mapping[str, Any] = field(default_factory=dict)
    priority: int | None = None
    inherited: Why = NONE
    measured: Mapping[str, Any] = field(default_factory=dict)
    approvals: Mapping[str, Any] | None = None
    requested_by: str | None = None
    element: Mapping[str, Any] | None = None
    wake_at: Instant | None = None
    expires_at: Instant | None = None

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    @property
    def is_bundle(self) -> bool:
        return bool(self.plan)

    @property
    def own_shape(self) -> tuple[int, ...]:
        """The number of events of its fire, and their window; empty if the row does not say it."""
        return self.plan[-2:] or self.shape

    @property
    def waiting(self) -> int:
        """How many events the job stands for that are not settled; 1 for any job but a bundle."""
        settled = self.index + self.done
        return self.count - self.done - len(self.ahead) - sum(number >= settled for number in self.left)

    @property
    def approved(self) -> dict[str, Any]:
        """The approvals that no later event has ended."""
        return {key: given for key, given in (self.approvals or {}).items() if given.get("of") != ""}


@dataclass(frozen=True, slots=True)
class Requested(StoredRow):
    """The job that a request created. ``id`` is a digest of the kind, the name and the request's own id. It does not
    depend on the generation: a repeated request finds the first job also after its schedule was replaced, or deleted
    and created again."""

    id: str
    job_id: str
    expires_at: Instant


def request_of(kind: str, name: str, request_id: str) -> str:
    """The id of a request of a kind (``run``, ``rerun``) that concerns a schedule or a run of this name."""
    return ids.digest(kind, name, request_id, length=40)
