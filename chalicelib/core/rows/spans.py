"""The fields of a run that show when it waited and when it ran: what views of many runs read of each row."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.states import TRAITS, JobKind, RunState, Traits


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
    ended_at: Instant | None = None
    state_at: Instant | None = None

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    def took(self, is_over: bool) -> Millis | None:
        """How long in ms from the claim to the end; None for an attempt that is not over. The clock of a target may be
        behind, so the end is not before the claim."""
        end = self.ended_at if self.ended_at is not None else self.state_at
        return max(0, end - self.claimed_at) if is_over and end is not None else None


def ready_at(work: Job | Run | RunSpan) -> Instant | None:
    """The instant from which work waits: its last event, or without events its due instant. A retry waits from its due
    instant, since the time before belongs to the first attempt."""
    return work.accepted_at if work.accepted_at is not None and not work.traits.retries else work.due_at
