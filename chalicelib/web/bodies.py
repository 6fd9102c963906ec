"""The models of request bodies, by the names that `table.Route.body` uses (`BODIES`).

The last group holds the bodies that pull workers send (W5).
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from chalicelib.core import results
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.grants import Grants
from chalicelib.core.access.roles import Access
from chalicelib.core.backfills.request import Backfill, Reprocess, Values
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.dataset import BUCKET, Dataset, Prefix
from chalicelib.core.definitions.each import MAX_ELEMENTS
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Namespace, Workflow
from chalicelib.core.documents import LINES, ONE_LINE, Document, EventType, Name, Properties, Reference, StoredReference
from chalicelib.core.errors import invalid
from chalicelib.core.events.cloudevents import CloudEvent
from chalicelib.core.instants import parse_instant, parse_when
from chalicelib.core.limits.policies import Policy
from chalicelib.core.limits.pools import Pool
from chalicelib.core.names import name_in
from chalicelib.core.partition_values import check_value
from chalicelib.core.quotas.document import Quotas
from chalicelib.core.results import Result
from chalicelib.core.triggers.event import Payload
from chalicelib.core.triggers.registry import AnyGiven

MAX_VALUE = 200  # characters of a partition key's value
MAX_OUTPUT = 16_000  # characters; a longer output loses its beginning
MAX_METRICS = 1_000  # bytes: every heartbeat writes them with the run's row
END_OF_TIME = 253_370_764_800_000  # ms: 9999; its last day is outside the calendar in time zones ahead of UTC


def _check_instant(text: str, field: str = "") -> str:
    """Check that a text is an RFC 3339 instant of a year that has a calendar in every time zone; return the text."""
    if not 0 <= parse_instant(text, field) < END_OF_TIME:
        raise invalid(field, "an instant from the year 1970 to 9998", text, "such as 2026-11-20T05:00:00Z")
    return text


Moment = Annotated[str, AfterValidator(_check_instant), WithJsonSchema({"type": "string", "format": "date-time"})]


def _check_later(text: str) -> str:
    if not 0 <= parse_when(text, 0, "") < END_OF_TIME:
        raise invalid("", "an instant from the year 1970 to 9998", text, "such as 2026-11-20T05:00:00Z")
    return text


Later = Annotated[str, AfterValidator(_check_later)]


class GivenPrefix(Document):
    """A prefix of a bucket that a namespace gets. ``nested``: also in a prefix of another namespace, or around one."""

    bucket: str = Field(pattern=BUCKET)
    prefix: Prefix
    nested: bool = False


class RunNow(Document):
    """A run that skips the trigger. ``properties`` override those of the schedule and the workflow. ``at`` is the
    start: an instant (RFC 3339), or a duration from now. ``partition`` are the values of the
    correlation keys of the run (T19), for a schedule with ``by``."""

    properties: Properties = Field(default_factory=dict)
    at: Later | None = None
    partition: Values | None = None


class Verdict(Document):
    """The comment of a person who approves or refuses a job that waits for an approval (C16)."""

    reason: Annotated[str, Field(max_length=500), LINES] = ""


class Pause(Document):
    """The mode in which a schedule is paused, and whether timeouts keep counting during the pause (L4)."""

    mode: Literal["hold", "backlog", "drain"] = "hold"
    timeouts: Literal["count", "stop"] = "count"


class Start(Document):
    """What starts again (L24): all that was stopped, or with ``tag`` what was stopped with this tag."""

    tag: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE] | None = None
    dry_run: bool = False


class NewStop(Start):
    """What is stopped, and why (L24). With ``tag`` (``team=a``, or ``team`` for any value) only what has this tag.
    ``timeouts`` is as for a pause."""

    reason: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE]
    timeouts: Literal["count", "stop"] = "count"


class Occurrence(Document):
    """One fire of a schedule's time trigger, by its nominal instant (RFC 3339)."""

    at: Moment


class DryRun(Document):
    """Events to apply to a trigger, in the order of their instants."""

    events: tuple[AnyGiven, ...] = Field(max_length=1_000)

    @field_validator("events")
    @classmethod
    def _of_our_age(cls, events: tuple[AnyGiven, ...]) -> tuple[AnyGiven, ...]:
        for number, event in enumerate(events):
            if event.at is not None:
                _check_instant(event.at, f"{number}.at")
        return events


class Glance(Document):
    """The schedules of a glance, as ``app.name`` or by their full names."""

    schedules: tuple[str, ...] = Field(min_length=1, max_length=50)

    def of(self, namespace: str) -> list[str]:
        """Their full names, each once. Raises ``invalid`` for one of another namespace."""
        found: dict[str, None] = {}
        for number, name in enumerate(self.schedules):
            full = name_in(namespace, name)
            if full is None:
                hint = "write flights.clean, or the full name"
                raise invalid(f"schedules.{number}", f"app.name of {namespace}", name, hint)
            found[full] = None
        return list(found)


class NewEvent(Document):
    """A custom event: its type, its instant (RFC 3339; by default now), and its payload.

    ``id`` is chosen by the sender. A second event with the same type and id is the same event, and counts once."""

    type: EventType
    timestamp: Moment | None = None
    payload: Payload = Field(default_factory=dict)
    id: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE] | None = None


class Events(Document):
    """Several custom events in one request."""

    events: tuple[NewEvent, ...] = Field(min_length=1, max_length=100)


class NewPartition(Document):
    """A partition that is ready: one value for each partition key of the dataset."""

    partition: dict[str, str]

    @field_validator("partition", mode="before", json_schema_input_type=dict[str, str | int])
    @classmethod
    def _texts(cls, given: object) -> object:
        """Return the values as text, as S3 folders have them. A whole number becomes its digits."""
        if not isinstance(given, dict):
            raise invalid("", "an object of partition keys and values", given, 'such as {"day": "2026-11-20"}')
        for key, value in given.items():
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise invalid(str(key), "text or a whole number", value, "quote the value")
            if not 0 < len(str(value)) <= MAX_VALUE or "/" in str(value) or not str(value).isprintable():
                raise invalid(
                    str(key),
                    f"1 to {MAX_VALUE} printable characters without '/'",
                    value,
                    "write the value as it stands in the folder, such as 2026-01-31",
                )
            check_value(str(value), str(key))
        return {key: str(value) for key, value in given.items()}


class Redrive(Document):
    """The dead letters to deliver again: the newest ``limit`` of a schedule (``app.name`` or its full name)."""

    schedule: StoredReference
    limit: int = Field(default=100, ge=1, le=100)


class Rerun(Document):
    """The part of a DAG run to run again (W4): ``from`` a node with all that follows it, ``only`` one node, or
    ``all``. Of a node with each, ``elements`` are those that run again, by their indexes, or ``failed`` for all that
    failed; the others keep their ends (W19)."""

    from_: Name | None = Field(default=None, alias="from")
    only: Name | None = None
    all: bool = False
    elements: Literal["failed"] | tuple[Annotated[int, Field(ge=0, lt=MAX_ELEMENTS)], ...] | None = None

    @field_validator("from_", "only", mode="before")
    @classmethod
    def _names_no_element(cls, given: object, info: ValidationInfo) -> object:
        """``load[3,17]`` is how the command line names elements. Here they have a field of their own."""
        found = re.fullmatch(r"([^\[\]]+)\[(failed|\d+(?:,\d+)*)\]", given) if isinstance(given, str) else None
        if found is None:
            return given
        node, which = found.groups()
        field = "from" if info.field_name == "from_" else "only"
        own = which if which == "failed" else [int(index) for index in which.split(",")]
        hint = f"send {json.dumps({field: node, 'elements': own})}"
        raise invalid("", "the name of a node, with its elements in a field of their own", given, hint)

    @model_validator(mode="after")
    def _says_which(self) -> Rerun:
        given = [self.from_ is not None, self.only is not None, self.all]
        if sum(given) != 1:
            got = "several" if any(given) else "none"
            raise invalid("", "exactly one of from (a node), only (a node) and all: true", got, "keep one of the three")
        if self.elements is not None and self.all:
            raise invalid("elements", "elements of one node", "all: true", "name the node by from or only")
        if self.elements == ():
            raise invalid("elements", "at least one index, or failed", [], "leave it out: the node runs again whole")
        return self

    @property
    def what(self) -> Literal["from", "only", "all"]:
        return "from" if self.from_ is not None else "only" if self.only is not None else "all"

    @property
    def node(self) -> str | None:
        return self.from_ if self.from_ is not None else self.only


class Bulk(Document):
    """One action on many schedules of an app: those of ``names``, those that match every filter, or ``all`` of them.

    ``tag`` is ``team=a``, or ``team`` for any value of the tag. ``workflow`` is the workflow that the schedules run.
    ``mode`` and ``timeouts`` are those of a pause; by default its mode is ``hold``, and timeouts count.
    """

    action: Literal["enable", "disable", "pause", "resume"]
    names: tuple[StoredReference, ...] | None = Field(default=None, min_length=1, max_length=100)
    tag: str | None = None
    workflow: Reference | None = None
    state: Literal["enabled", "hold", "backlog", "drain", "completed", "disabled"] | None = None
    all: bool = False
    mode: Literal["hold", "backlog", "drain"] | None = None
    timeouts: Literal["count", "stop"] | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _says_which(self) -> Bulk:
        """Require names, a filter or ``all``, so that a forgotten filter does not select every schedule."""
        filtered = any(given is not None for given in (self.tag, self.workflow, self.state))
        if self.names is not None and (filtered or self.all):
            raise invalid("names", "either names or filters", "both", "remove the filters, or the names")
        if self.names is None and filtered == self.all:
            hint = "add a filter, or all: true for every schedule of the app"
            got = "both" if filtered else "neither"
            raise invalid("all", "either a filter (tag, workflow, state) or all: true", got, hint)
        for field in ("mode", "timeouts"):
            if getattr(self, field) is not None and self.action != "pause":
                raise invalid(field, f"{field} with the action pause only", self.action, f"remove {field}")
        return self


ShortText = Annotated[str, Field(max_length=500)]
Metrics = dict[str, float | int | str | bool]
Worker = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$")]


class _Measured(Document):
    """A body with a small map of metrics."""

    metrics: Metrics = Field(default_factory=dict, max_length=20)

    @field_validator("metrics")
    @classmethod
    def _is_small(cls, metrics: Metrics) -> Metrics:
        if (size := len(json.dumps(metrics).encode())) > MAX_METRICS:
            hint = "send fewer or shorter metrics"
            raise invalid("", f"metrics of at most {MAX_METRICS} bytes", f"{size} bytes", hint)
        return metrics


class Report(_Measured):
    """The end of an attempt. ``output`` holds the last lines that the attempt printed. ``result`` is the JSON value
    that it hands on if it succeeded; ``result_text`` is the same as a JSON text, as a program has written it. A result
    that is refused does not change the end."""

    worker: Worker
    state: Literal["succeeded", "failed"]
    exit_code: int | None = Field(default=None, ge=-1_000, le=1_000)
    message: ShortText = ""
    output: str = Field(default="", max_length=100_000)
    result: Any = None
    result_text: str | None = None

    @field_validator("output")
    @classmethod
    def _its_end(cls, output: str) -> str:
        return output[-MAX_OUTPUT:]

    @property
    def handed_on(self) -> Result:
        return results.of_text(self.result_text) if self.result_text is not None else results.of_value(self.result)


class Claim(Document):
    """A worker's request for runs: its id, how many runs it can take, and how many seconds the request may wait if
    there are none. It waits at most the ``wait`` seconds of an answer, or one second if ``wait`` is less."""

    worker: Worker
    capacity: int = Field(default=1, ge=1, le=10)
    wait: float = Field(default=20, ge=0, le=20)


class Heartbeat(_Measured):
    """A heartbeat of a worker. The first heartbeat of a run reports that the work has started."""

    worker: Worker
    message: ShortText = ""


class Release(Document):
    """The return of a run that the worker has not started."""

    worker: Worker
    message: ShortText = ""


# The models by the names that `table.Route.body` uses.
BODIES: dict[str, type[Document]] = {
    model.__name__: model
    for model in (
        *(Access, Allowed, App, Backfill, Bulk, Claim, CloudEvent, Dataset, DryRun, Events, GivenPrefix, Glance),
        *(Grants, Heartbeat, HolidayCalendar, Message, Namespace, NewDag, NewPartition, NewSchedule),
        *(Occurrence, Pause, Policy, Pool, Quotas, Redrive, Release, Report, Reprocess, Rerun, RunNow),
        *(NewStop, Start, Verdict, Workflow),
    )
}
