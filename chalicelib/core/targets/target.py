"""The base classes of targets. Runs at a target with a lifecycle can be followed, cancelled and counted. To the other
targets Sluice delivers a run, at least once and always under the same id (E5, E6).

A target has a module here, with its document and its rules, and an adapter in `aws/targets/`. The registry of each
package has an entry for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.documents import Document, Duration, EventType, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, SECOND, Instant, Millis
from chalicelib.core.limits.permits import Pace, PermitRequest
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets.answers import StateChange
from chalicelib.core.targets.bills import Prices
from chalicelib.core.targets.resources import Resources

# Two attempts of botocore with 3 s to connect and 10 s to read, and the pause between them (`aws/targets/clients.py`);
# a synchronous call of a function ends within 30 s.
MAX_AWS_CALL: Millis = 30 * SECOND

# Parts of the regular expressions that check ARNs.
REGION = r"[a-z]{2}[a-z-]+-\d"
ARN = r"^arn:aws[a-z-]*:"

# Begins the names of all that Sluice starts. The rule and the roles of the template contain it, too.
PREFIX = "sluice-"
MAX_TAG = 256  # characters of a tag's value

Group = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]  # of messages of a FIFO queue or topic

# Sluice polls a target this often that also sends events about its runs (W6).
PollInterval = Annotated[
    Duration, spanning(MINUTE, DAY, "an interval from 1m to 1d", "leave it out: the target reports how a run ends")
]


@dataclass(frozen=True, slots=True)
class NoLog:
    """There is no log, and ``why``. ``never`` replaces ``why`` after the end of the run, if set."""

    why: str
    never: str | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker reports the last lines of its output, which Sluice keeps in a row of their own."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The target uploads each stream into ``folder`` of the control bucket, as ``<stream>.gz``. ``later`` is the text
    for a log that is not uploaded yet."""

    folder: str
    streams: tuple[str, ...]
    later: str


Log = NoLog | Reported | Uploaded  # where the log of a run is (W15)


class Target(Document):
    """The document of a target. Class variables and methods hold the differences between the types, so that no other
    module tests a type. Methods about a run are class methods. A stored run keeps the fields of its target. Building a
    document of them would cost a validation for each read of a run."""

    has_lifecycle: ClassVar[bool] = True  # the target reports the states of a run, not only its delivery
    has_token: ClassVar[bool] = True  # a repeated start call starts nothing more
    pulled: ClassVar[bool] = False  # workers claim its runs (W5); no call starts one
    inside: ClassVar[bool] = False  # Sluice itself carries out its runs: they are DAG runs (W4)
    listed: ClassVar[bool] = False  # Sluice polls silent runs, many of them in one call or round (W7)
    stores_result: ClassVar[bool] = False  # the program of a run writes its result into the control bucket (W18)
    bills: ClassVar[bool] = False  # the target reports what it has billed for a run (H1)
    of_elements: ClassVar[bool] = False  # a run stands for those of its elements, and needs no permit itself (W19)
    batched_by: ClassVar[str | None] = None  # the field with the address, if one call delivers many runs to it
    event_source: ClassVar[str | None] = None  # the source of the EventBridge events about its runs (W7)
    needs_role: ClassVar[bool] = False  # called with the target role of a namespace alone (O10)
    has_model: ClassVar[bool] = False  # the SDK's models check its document (`ports.Targets.check`)
    prices: ClassVar[Prices | None] = None  # list prices of what it bills; None: those of the stack's settings

    type: str

    @property
    def posts(self) -> bool:
        """Whether a delivery is a POST of a body to an address, as webhooks expect it."""
        return False

    @property
    def mails(self) -> bool:
        """Whether people may get a delivery as a mail."""
        return False

    @classmethod
    def pace(cls, stack: StartRate) -> Pace | None:
        """The pace of the start calls of this target, also among its `permits`; None if it has none."""
        return None

    def permits(self, stack: StartRate, resources: Resources | None) -> tuple[PermitRequest, ...]:
        """The permits that a start needs because of its target, in addition to those of its schedule and its pool."""
        return ()

    def queues(self, stack: StartRate, resources: Resources | None) -> tuple[str, ...]:
        """The limits in whose queues jobs may wait because of their target, in order, including those not set now."""
        return ()

    def with_resources(self, resources: Resources) -> Self:
        """The same target with these resources for its run."""
        return self

    def started_by(self, watches_end: bool) -> Self:
        """The same target for a run of a schedule that needs the end of its runs (``watches_end``), or does not."""
        return self

    def placed(self, stack: StartRate) -> Self:
        """The same target with the defaults of the stack filled in, as a start request keeps it."""
        return self

    @classmethod
    def with_lineage(cls, stored: Mapping[str, Any], properties: Mapping[str, str]) -> Mapping[str, Any]:
        """The stored fields of a target whose program reports its lineage below its run (H6). ``properties`` are those
        by which Spark knows the run."""
        return stored

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        """What the stored fields of a target name that an allow-list may limit (O10). The defaults of the stack are
        filled in. Raises ``invalid`` for fields that no call can carry safely."""
        return ()

    @classmethod
    def prices_of(cls, run: Run) -> Prices | None:
        """The list prices of what a run was billed for; None: those of the stack's settings."""
        return cls.prices

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        """Whether Sluice signs requests to AWS for a call of this target, and so needs a role for them."""
        return True

    @classmethod
    def reports_end(cls, stored: Mapping[str, Any]) -> bool:
        """Whether Sluice learns how a run ends. Only then nodes of a DAG may follow it, and it may have a result (W18).
        ``stored`` are its fields."""
        return cls.has_lifecycle

    @classmethod
    def returns(cls, stored: Mapping[str, Any]) -> bool:
        """Whether the answer to a delivery is the result of its run (W18)."""
        return False

    @classmethod
    def longest_call(cls, stored: Mapping[str, Any]) -> Millis:
        """The longest time in ms that one call of a target may take; ``stored`` are its fields in a run's row."""
        return MAX_AWS_CALL

    @classmethod
    def interpret(cls, run: Run, state: RunState) -> RunState:
        """The state that Sluice gives a run when the target reports ``state``."""
        return state

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """The state change of a run in an EventBridge event. Raises KeyError for an event that lacks a part."""
        raise KeyError(f"expected an event of a target that sends some, got one of {event['source']}")

    @classmethod
    def place_of(cls, stored: Mapping[str, Any]) -> str | None:
        """Where the runs of a target with these stored fields are, such as the name of a cluster. A run is found by a
        name in an event only if the event is of this place. None: events have no names."""
        return None

    @classmethod
    def log_folder(cls, namespace: str) -> str:
        """The folder below ``logs/`` to which runs of a namespace's workflows upload logs; empty: they upload none."""
        return ""

    @classmethod
    def log_of(cls, run: Run) -> Log:
        """Where the log of a run is."""
        return NoLog(f"runs at {run.target_kind} write no log here")

    @classmethod
    def wants_log(cls, reason: str) -> bool:
        """Whether the reason of a failed run lacks the error of its program, so that its log may have it."""
        return False

    @classmethod
    def reason_with_log(cls, reason: str, streams: Mapping[str, str]) -> str:
        """The reason of a failed run with the error of its program from its log."""
        return reason


class Delivered(Target):
    """A target without a lifecycle: it accepts or refuses a delivery and reports nothing afterwards."""

    has_lifecycle: ClassVar[bool] = False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        kind = run.target_kind
        return NoLog(f"a delivery to {kind} writes no log here; see its receiver's log; the context shows the data")


class Formatted(Delivered):
    """A delivery with the context or the data of its run. ``format``: deliveries are CloudEvents (E11), of the type
    ``event_type``."""

    # Left out unless they are given: older code refuses a field that it does not know.
    format: Literal["cloudevents"] | None = Field(default=None, exclude_if=lambda given: given is None)
    event_type: EventType | None = Field(default=None, exclude_if=lambda given: given is None)

    @model_validator(mode="after")
    def _types_cloudevents(self) -> Self:
        if self.event_type is not None and self.format is None:
            raise invalid("event_type", "an event_type with format: cloudevents", "no format", "add the format")
        return self


def attempt_name(run: Run, most_of_schedule: int) -> str:
    """``sluice-<schedule>-<token>``, the name of an attempt at a target that finds a run by its name. It never changes,
    so a search finds what an unanswered call has started. CloudWatch Logs accepts all its characters, too."""
    label = re.sub(r"[^0-9A-Za-z_-]", "-", run.schedule.rpartition(".")[2])[:most_of_schedule]
    return f"{PREFIX}{label}-{run.request.client_token}"


def first_call(run: Run) -> Instant:
    """When the first start call of an attempt began, or the run was claimed."""
    return run.start_requested_at if run.start_requested_at is not None else run.claimed_at


def tag_value(name: str) -> str:
    """A name as the value of a tag. A tag allows all characters of names but the tilde, which names of messages and of
    nodes of DAGs have. It becomes `@`, which no name contains.

    https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html: `[A-Za-z0-9 /_.:=+@-]*`"""
    return name.replace("~", "@")[:MAX_TAG]


def require_lifecycle(
    target: Target, field: str, expected: str, got: str | None = None, hint: str | None = None
) -> None:
    """Raises ``invalid`` for ``field`` if the target has no lifecycle. The default of ``got`` gives the cause."""
    if not target.has_lifecycle:
        got = got or f"one for a {target.type} target, whose runs have no end that Sluice can see"
        raise invalid(field, expected, got, hint)


def check_group(group: str | None, name: str, what: str) -> None:
    """Raises ``invalid`` for a message group on a standard queue or topic. ``what`` is ``queue`` or ``topic``."""
    if group is not None and not name.endswith(".fifo"):
        raise invalid("group", f"a group only for a FIFO {what}, whose name ends with .fifo", group, "leave it out")
