"""What every target has in common: where a run goes. One with a lifecycle has runs that can be followed, cancelled and
counted; to the others a run is delivered, at least once and always under the same id (E5, E6).

A target is one file here, which holds its document and its rules, one adapter in `aws/targets/`, and one line in the
registry of each package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from chalicelib.core.documents import Document
from chalicelib.core.errors import invalid
from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets.answers import StateChange
from chalicelib.core.targets.logs import Log, NoLog
from chalicelib.core.targets.resources import Resources

# Two attempts of botocore with 3 s to connect and 10 s to read, and the pause between them (`aws/targets/clients.py`);
# a function that is waited for answers within 30 s.
MAX_AWS_CALL: Millis = 30 * SECOND


class Target(Document):
    """The document of a target. Class variables and methods hold what differs between the types, so that no other
    module asks for a type. What is asked about a run is a class method: a stored run has the fields of its target, and
    reading them as a document again would cost each look at a run its validation."""

    has_lifecycle: ClassVar[bool] = True  # it tells what becomes of a run, not only that it was delivered
    pulled: ClassVar[bool] = False  # workers come for its runs (W5); it is not called to start one
    listed: ClassVar[bool] = False  # silence says nothing of its runs: they are asked about, many at a time (W7)
    bills: ClassVar[bool] = False  # it tells what it has billed for a run (H1)
    batched_by: ClassVar[str | None] = None  # the field with the address to which one call takes many deliveries
    event_source: ClassVar[str | None] = None  # of the EventBridge events that say what becomes of its runs (W7)

    type: str

    @classmethod
    def pace(cls, stack: StartRate) -> Pace | None:
        """The pace that start calls of this target obey, if there is one; among `permits`."""
        del stack
        return None

    def permits(self, stack: StartRate, resources: Resources | None) -> tuple[PermitRequest, ...]:
        """What a start needs because of its target, besides what its schedule and its pool ask for."""
        del stack, resources
        return ()

    def queues(self, stack: StartRate, resources: Resources | None) -> tuple[str, ...]:
        """The limits at which jobs may wait because of their target, in their order; also one that is not set now."""
        del stack, resources
        return ()

    def with_resources(self, resources: Resources) -> Self:
        """The same target, told what its run is to have."""
        del resources
        return self

    def placed(self, stack: StartRate) -> Self:
        """The same target with all that it takes from the stack, as a start request keeps it."""
        del stack
        return self

    @classmethod
    def longest_call(cls, stored: Mapping[str, Any]) -> Millis:
        """How long one call of this target, as it is stored with a run, may take at the most."""
        del stored
        return MAX_AWS_CALL

    @classmethod
    def interpret(cls, run: Run, state: RunState) -> RunState:
        """What a state that the target tells of a run means for it."""
        del run
        return state

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """What an EventBridge event of its source says of a run. Raises KeyError for an event that lacks a part."""
        raise KeyError(f"expected an event of a target that sends some, got one of {event['source']}")

    @classmethod
    def log_of(cls, run: Run) -> Log:
        """Where the log of a run is."""
        return NoLog(f"runs at {run.target_kind} write no log here")


class Delivered(Target):
    """A target that tells nothing of what becomes of a run: it takes it, or it does not."""

    has_lifecycle: ClassVar[bool] = False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        kind = run.target_kind
        return NoLog(
            f"a delivery to {kind} writes no log here: what takes it has its own; its context tells what was sent"
        )


def require_lifecycle(
    target: Target, field: str, expected: str, got: str | None = None, hint: str | None = None
) -> None:
    """Refuse a target without a lifecycle at ``field``. By default ``got`` says that its runs have no end."""
    if not target.has_lifecycle:
        got = got or f"one for a {target.type} target, whose runs have no end that could be seen"
        raise invalid(field, expected, got, hint)
