"""What targets report: updates of runs, and the answers to a start call or a delivery.

`core/runs/complete.py` applies updates, `core/runs/launch.py` and `core/targets/retries.py` decide on answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.results import NONE, Result
from chalicelib.core.states import FailureKind, RunState
from chalicelib.core.why import Why

# The reason of a failed run for which its target gave none, or none yet.
NOT_GIVEN = "the target gave no reason"
NOT_YET_GIVEN = "the target has not given the reason; see its log"


class SearchLimit(RuntimeError):
    """A target has so much that may be a run that a search for the run ends without having seen all of it. It does so
    again when it is repeated."""


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """A report about a run: its state, and the instant of that state by the target's clock. Of a failure it has the
    ``reason`` and the kind, ``outcome`` (W1). A reason that is a plain text is the target's own.

    ``billed`` is the target's bill, in the form of a run's row (H1); empty until the target has computed it.
    ``started_at`` is the start of a run that has ended, in case no update reported the start. A worker reports on its
    ``lease`` alone, and may add ``metrics``. The ``result`` counts if the run has succeeded (W18).
    """

    state: RunState
    at: Instant
    reason: Why | str = ""
    target_id: str | None = None
    _: KW_ONLY
    lease: int | None = None
    metrics: Mapping[str, Any] | None = None
    outcome: FailureKind = "failed"
    billed: tuple[int, ...] = ()
    started_at: Instant | None = None
    result: Result = NONE


@dataclass(frozen=True, slots=True)
class Started:
    """The target accepted the run. ``target_id`` is the target's id of it. ``done``: the run is complete at once, so
    there is nothing to follow; its answer is the ``result``. ``running``: it runs at once."""

    target_id: str
    done: bool = False
    running: bool = False
    result: Result = field(default=NONE, repr=False)  # answers are logged


@dataclass(frozen=True, slots=True)
class NotNow:
    """The target refused for now (throttled, at capacity); the run has certainly not started.

    ``retry_after``: the shortest pause in ms before the next call, if the target named one. ``alone``: the refusal
    concerns this run only, so it delays no other."""

    why: str
    retry_after: Millis | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No usable answer: the run may have started. ``retry_after`` is as for `NotNow`."""

    why: str
    retry_after: Millis | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """The target refused permanently: this request can never succeed."""

    why: str


Answer = Started | NotNow | NoAnswer | Never


@dataclass(frozen=True, slots=True)
class StateChange:
    """An EventBridge event about a run at its target.

    ``kind`` is the type of the target, ``state`` the target's name of the state. ``update`` is None if Sluice has no
    state for it. ``run_name`` is ``<run id>-<attempt>``, if the event has it. ``complete``: a poll of the target would
    return no more than the event contains, so Sluice does not poll. ``place`` is where the run is, as `Target.place_of`
    says it: a user who may start something in another place may give it the name of any run.
    """

    kind: str
    target_id: str
    state: str
    update: RunUpdate | None
    run_name: str | None = None
    complete: bool = False
    place: str | None = None
