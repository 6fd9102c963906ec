"""The decision of the step *complete*: what news about a run makes of it, and of the permits that it holds.

The decisions of the step *launch*: how a start call is put on record, and what each answer to it means.

complete: news about a run moves it forward, gives its permits back and announces its status, each exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.states import Outcome, RunState


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """What is known of a run: the state it reached, when the target says it did, the reason of a failure and, of which
    kind it was, its ``outcome`` (W1).

    ``billed`` is what the target has billed for it, as a run's row keeps it (H1); empty while it does not say.
    ``started_at`` is when it began, of one that has ended, for whoever has not heard of that. What a worker says is of
    its ``lease`` alone, and may carry ``metrics``.
    """

    state: RunState
    at: Instant
    reason: str = ""
    target_id: str | None = None
    _: KW_ONLY
    lease: int | None = None
    metrics: Mapping[str, Any] | None = None
    outcome: Outcome = "failed"
    billed: tuple[int, ...] = ()
    started_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The target took it. ``target_id`` is its own id of the run; ``done`` says that there is nothing to follow."""

    target_id: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class NotNow:
    """The target refused for the moment (throttled, at capacity): surely not started. ``retry_after``: not before so
    many ms have passed, if it said so. ``alone``: it refused this run for what it is, so nobody else is held back."""

    why: str
    retry_after: Millis | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing is known: it may have started. ``retry_after`` as above."""

    why: str
    retry_after: Millis | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """The target refused for good: this request can never succeed."""

    why: str


Answer = Started | NotNow | NoAnswer | Never


@dataclass(frozen=True, slots=True)
class StateChange:
    """What an event of EventBridge says of a run at its target.

    ``kind`` is the type of the target, ``state`` the state in the target's own words. ``update`` is None if that is
    nothing new to Sluice. ``run_name`` is ``<run id>-<attempt>``, if the event has it. ``complete``: the target would
    answer no more than the event says, so it is not asked.
    """

    kind: str
    target_id: str
    state: str
    update: RunUpdate | None
    run_name: str | None = None
    complete: bool = False
