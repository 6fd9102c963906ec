"""The bodies that routes take, by the names that `routing.Takes` uses.

The bodies that pull workers send (W5).
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator

from chalicelib.core.backfills.request import Backfill
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Namespace, Workflow
from chalicelib.core.documents import Document, Name, Properties, Reference
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import parse_instant, parse_when
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.triggers.registry import AnyGiven

MAX_PAYLOAD = 10_000  # bytes: an event is stored once for each schedule that it touches


MAX_VALUE = 200  # characters of a partition key's value


END_OF_TIME = 253_370_764_800_000  # ms: the year 9999, whose last day lies beyond all calendars in zones ahead of UTC


def _check_instant(text: str, field: str = "") -> str:
    """RFC 3339, and of a year that calendars can reckon with in any zone."""
    if not 0 <= parse_instant(text, field) < END_OF_TIME:
        raise invalid(field, "an instant from the year 1970 to 9998", text)
    return text


Moment = Annotated[str, AfterValidator(_check_instant), WithJsonSchema({"type": "string", "format": "date-time"})]


def _check_later(text: str) -> str:
    if not 0 <= parse_when(text, 0, "") < END_OF_TIME:
        raise invalid("", "an instant from the year 1970 to 9998", text)
    return text


Later = Annotated[str, AfterValidator(_check_later)]


class RunNow(Document):
    """A run past the trigger. ``properties`` win over those of the schedule and the workflow; ``at`` is when it is due:
    an instant (RFC 3339), or a duration from now."""

    properties: Properties = Field(default_factory=dict)
    at: Later | None = None


class Verdict(Document):
    """What a person says of a job that waits for an approval (C16), and why."""

    reason: str = Field(default="", max_length=500)


class Pause(Document):
    """How a schedule is paused, and whether timeouts keep counting meanwhile (L4)."""

    mode: Literal["hold", "backlog", "drain"] = "hold"
    timeouts: Literal["count", "stop"] = "count"


class Occurrence(Document):
    """One fire of a schedule's times, by its nominal instant (RFC 3339)."""

    at: Moment


class DryRun(Document):
    """Events to play to a trigger, in the order of their instants."""

    events: tuple[AnyGiven, ...] = Field(max_length=1_000)

    @field_validator("events")
    @classmethod
    def _of_our_age(cls, events: tuple[AnyGiven, ...]) -> tuple[AnyGiven, ...]:
        for number, event in enumerate(events):
            if event.at is not None:
                _check_instant(event.at, f"{number}.at")
        return events


class NewEvent(Document):
    """A custom event: what happened, when (RFC 3339; now if left out), and what is to be known of it.

    ``id`` is the poster's own: the same type and id again are the same event."""

    type: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")
    timestamp: Moment | None = None
    payload: Properties = Field(default_factory=dict)
    id: str | None = Field(default=None, min_length=1, max_length=200)

    @field_validator("payload")
    @classmethod
    def _fits(cls, payload: Properties) -> Properties:
        size = len(json.dumps(payload).encode())
        if size > MAX_PAYLOAD:
            hint = "put large data into S3 and pass a reference"
            raise SluiceError("too_large", f"expected a payload of at most {MAX_PAYLOAD} bytes, got {size}", "", hint)
        return payload


class Events(Document):
    """Several custom events in one request."""

    events: tuple[NewEvent, ...] = Field(min_length=1, max_length=100)


class NewPartition(Document):
    """A partition that is ready: one value per partition key of the dataset."""

    partition: dict[str, str]

    @field_validator("partition", mode="before", json_schema_input_type=dict[str, str | int])
    @classmethod
    def _texts(cls, given: object) -> object:
        """Values are text, as in the folders of S3; a whole number is taken for its digits."""
        if not isinstance(given, dict):
            raise invalid("", "an object of partition keys and values", given)
        for key, value in given.items():
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise invalid(str(key), "text or a whole number", value)
            if not 0 < len(str(value)) <= MAX_VALUE or "/" in str(value) or not str(value).isprintable():
                raise invalid(str(key), f"1 to {MAX_VALUE} printable characters without '/'", value)
        return {key: str(value) for key, value in given.items()}


class Redrive(Document):
    """Which dead letters are delivered again: the newest ``limit`` of a schedule (``app.name`` or its full name)."""

    schedule: Reference
    limit: int = Field(default=100, ge=1, le=100)


class Rerun(Document):
    """What of a DAG's run is run again (W4): ``from`` a node and all that follows it, ``only`` one node, or ``all``."""

    from_: Name | None = Field(default=None, alias="from")
    only: Name | None = None
    all: bool = False

    @model_validator(mode="after")
    def _says_which(self) -> Rerun:
        given = [self.from_ is not None, self.only is not None, self.all]
        if sum(given) != 1:
            got = "several" if any(given) else "none"
            raise invalid("", "one of from (a node), only (a node) and all: true", got)
        return self

    @property
    def what(self) -> Literal["from", "only", "all"]:
        return "from" if self.from_ is not None else "only" if self.only is not None else "all"

    @property
    def node(self) -> str | None:
        return self.from_ if self.from_ is not None else self.only


class Bulk(Document):
    """One action on many schedules of an app: those that every filter fits, or ``all`` of them.

    ``tag`` is ``team=a``, or ``team`` for any value of it; ``workflow`` is what they run.
    """

    action: Literal["enable", "disable", "pause", "resume"]
    tag: str | None = None
    workflow: Reference | None = None
    state: Literal["enabled", "hold", "backlog", "drain", "completed", "disabled"] | None = None
    all: bool = False

    @model_validator(mode="after")
    def _says_which(self) -> Bulk:
        """A filter that was forgotten must not mean everything."""
        filtered = any(given is not None for given in (self.tag, self.workflow, self.state))
        if filtered == self.all:
            hint = "add a filter, or all: true for every schedule of the app"
            got = "both" if filtered else "neither"
            raise invalid("all", "either a filter (tag, workflow, state) or all: true", got, hint)
        return self


ShortText = Annotated[str, Field(max_length=500)]


MAX_OUTPUT = 16_000  # characters of the last lines; what is longer loses its beginning


MAX_METRICS = 1_000  # bytes: they are written with the run's row at every heartbeat


Metrics = dict[str, float | int | str | bool]


class _Measured(Document):
    """What carries a small map of metrics."""

    metrics: Metrics = Field(default_factory=dict, max_length=20)

    @field_validator("metrics")
    @classmethod
    def _is_small(cls, metrics: Metrics) -> Metrics:
        if (size := len(json.dumps(metrics).encode())) > MAX_METRICS:
            raise invalid("", f"metrics of at most {MAX_METRICS} bytes", f"{size} bytes", "send fewer, or shorter ones")
        return metrics


Worker = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$")]


class Report(_Measured):
    """The end of an attempt. ``output`` are the last lines of what was written."""

    worker: Worker
    state: Literal["succeeded", "failed"]
    exit_code: int | None = Field(default=None, ge=-1_000, le=1_000)
    message: ShortText = ""
    output: str = Field(default="", max_length=100_000)

    @field_validator("output")
    @classmethod
    def _its_end(cls, output: str) -> str:
        return output[-MAX_OUTPUT:]


class Claim(Document):
    """A worker asks for work: who it is, how many runs it has room for, and for how many seconds it waits if there
    are none. It waits no longer than the answer's ``wait`` says, or a second if it asks for more."""

    worker: Worker
    capacity: int = Field(default=1, ge=1, le=10)
    wait: float = Field(default=20, ge=0, le=20)


class Heartbeat(_Measured):
    """A worker lives and works on. The first one says that it has begun."""

    worker: Worker
    message: ShortText = ""


class Release(Document):
    """A run goes back unstarted."""

    worker: Worker
    message: ShortText = ""


# The models by the names that `routing.Takes` uses.
BODIES: dict[str, type[Document]] = {
    model.__name__: model
    for model in (
        App,
        Backfill,
        Bulk,
        Claim,
        Dataset,
        DryRun,
        Events,
        Heartbeat,
        Message,
        Namespace,
        NewDag,
        NewPartition,
        NewSchedule,
        Occurrence,
        Pause,
        Policy,
        Pool,
        Redrive,
        Release,
        Report,
        Rerun,
        RunNow,
        Verdict,
        Workflow,
    )
}
