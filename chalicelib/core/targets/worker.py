"""Pull workers as a target (W5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from chalicelib.core.documents import Duration, Name, spanning
from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets.target import Log, Reported, Target

HeartbeatInterval = Annotated[
    Duration,
    spanning(10 * SECOND, HOUR, "a heartbeat from 10s to 1h", "Sluice notices a dead worker after about one heartbeat"),
]


class WorkerTarget(Target):
    """A pool of pull workers (W5). A worker claims the run and keeps it by heartbeats, at most ``heartbeat`` apart.

    The command of the worker gets ``arguments``. The pool belongs to the namespace of the workflow.
    """

    pulled: ClassVar[bool] = True

    type: Literal["worker"]
    pool: Name
    arguments: tuple[Annotated[str, Field(max_length=4_000)], ...] = Field(default=(), max_length=100)
    heartbeat: HeartbeatInterval = "1m"

    @classmethod
    def interpret(cls, run: Run, state: RunState) -> RunState:
        """The state after a report of a worker. Workers report no cancels: a failed run with a cancel is CANCELLED."""
        return "CANCELLED" if run.cancel and state == "FAILED" else state

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        return False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        return Reported()
