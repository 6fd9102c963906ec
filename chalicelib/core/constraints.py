"""Run constraints: conditions to be met before launch. Each says what an unmet one does (C1-C8, C15, C16).

Two kinds: `Delay`, `TimeWindow`, `Fresh`, `Load`, `Approval` and `Probe` are decided from the clock and from facts. The
others are held by a line, in the transaction that claims (C9): `Concurrency`, `SinceLastRun`, `Rate`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator, model_validator

from chalicelib.core import calendar, windows
from chalicelib.core.asked import Approval as Approval
from chalicelib.core.asked import Load as Load
from chalicelib.core.calendar import DAY, HOUR, SECOND, Millis, duration, spell_duration
from chalicelib.core.documents import Document, Duration, Name, Reference, by_type
from chalicelib.core.errors import invalid
from chalicelib.core.leaves import Day
from chalicelib.core.progress import count_of
from chalicelib.core.targets import CallTimeout, FunctionArn, SecretName
from chalicelib.core.web_addresses import Headers, Url

MOST_RATE = 500  # starts that a rate line remembers: its row is rewritten with every start
OnUnmet = Literal["abort", "wait"]


class Concurrency(Document):
    """Fewer than ``max`` active runs of the workflow, or of all runs that name the same ``group`` (C1)."""

    type: Literal["concurrency"]
    max: int = Field(ge=1, le=100_000)
    group: Name | None = None
    on_unmet: Literal["abort", "wait", "cancel_other"] = "abort"


class Delay(Document):
    """At least ``after`` since the job was created, or since its trigger was met (C2)."""

    type: Literal["delay"]
    after: Duration
    since: Literal["created", "met"] = "created"
    on_unmet: OnUnmet = "wait"

    @property
    def span(self) -> Millis:
        return duration(self.after)


class TimeWindow(Document):
    """Within ``[start, end)`` of the day in a zone, over midnight or not; ``days`` are those when it begins (C3)."""

    type: Literal["time_window"]
    start: str
    end: str
    zone: str | None = None
    days: tuple[Day, ...] = ()
    on_unmet: OnUnmet = "wait"

    @model_validator(mode="after")
    def _is_a_window(self) -> TimeWindow:
        windows.parse_clock(self.start, "start")
        windows.parse_clock(self.end, "end", is_end=True)
        calendar.zone(self.zone or "UTC")
        if self.start == self.end:
            raise invalid("end", "an end that differs from the start", self.end, "leave the window out for all day")
        return self

    @property
    def window(self) -> windows.Window:
        return windows.Window(self.start, self.end, self.zone or "UTC", self.days)


class SinceLastRun(Document):
    """``at_least`` since the last successful run of the workflow started; a run still going counts as one (C4)."""

    type: Literal["since_last_run"]
    at_least: Duration
    of: Literal["success", "any"] = "success"
    on_unmet: OnUnmet = "abort"

    @property
    def span(self) -> Millis:
        return duration(self.at_least)


class Rate(Document):
    """At most ``max`` runs of the workflow are claimed in any ``per``: hour, day, or a duration (C5)."""

    type: Literal["rate"]
    max: int = Field(ge=1, le=MOST_RATE)
    per: str
    on_unmet: OnUnmet = "wait"

    @field_validator("per")
    @classmethod
    def _is_a_span(cls, per: str) -> str:
        if per not in _NAMED_SPANS:
            duration(per, "")
        return per

    @property
    def span(self) -> Millis:
        return _NAMED_SPANS.get(self.per) or duration(self.per)


class Fresh(Document):
    """Each of ``workflows`` has succeeded ``within`` a span before now (C7). What an unmet one does must be said."""

    type: Literal["fresh"]
    workflows: tuple[Reference, ...] = Field(min_length=1, max_length=20)
    within: Duration
    on_unmet: OnUnmet

    @property
    def span(self) -> Millis:
        return duration(self.within)


class LambdaProbe(Document):
    """A Lambda function that is asked."""

    type: Literal["lambda"]
    function: FunctionArn


class HttpProbe(Document):
    """A web address that is asked by POST, signed if there is a ``secret``."""

    type: Literal["http"]
    url: Url
    headers: Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: SecretName | None = None


class Probe(Document):
    """The user's own check says whether to launch (C15). It is asked when all else is met, and again after ``retry``,
    or when it said so. Not met, it waits, or aborts; one that cannot be asked always waits."""

    type: Literal["probe"]
    target: Annotated[
        Annotated[LambdaProbe, Tag("@lambda")] | Annotated[HttpProbe, Tag("@http")], by_type(("lambda", "http"))
    ]
    retry: Duration = "1m"
    on_unmet: OnUnmet = "wait"

    @field_validator("retry")
    @classmethod
    def _is_bounded(cls, retry: str) -> str:
        if not 10 * SECOND <= duration(retry, "") <= DAY:
            raise invalid("", "a pause between two questions from 10s to 1d", retry)
        return retry

    @property
    def span(self) -> Millis:
        return duration(self.retry)


_NAMED_SPANS: dict[str, Millis] = {"hour": HOUR, "day": DAY}

AnyConstraint = Annotated[
    Annotated[Concurrency, Tag("@concurrency")]
    | Annotated[Delay, Tag("@delay")]
    | Annotated[TimeWindow, Tag("@time_window")]
    | Annotated[SinceLastRun, Tag("@since_last_run")]
    | Annotated[Rate, Tag("@rate")]
    | Annotated[Fresh, Tag("@fresh")]
    | Annotated[Load, Tag("@load")]
    | Annotated[Approval, Tag("@approval")]
    | Annotated[Probe, Tag("@probe")],
    by_type(("concurrency", "delay", "time_window", "since_last_run", "rate", "fresh", "load", "approval", "probe")),
]


def describe(constraint: AnyConstraint) -> str:
    """The constraint as a rule, in words."""
    return f"{_rule(constraint)}, else {constraint.on_unmet.replace('_', ' ')}"


def _rule(constraint: AnyConstraint) -> str:
    match constraint:
        case Concurrency():
            whose = f"of group {constraint.group}" if constraint.group else "of the workflow"
            return f"at most {count_of(constraint.max, 'run')} {whose} at a time"
        case Delay():
            event = "its trigger was met" if constraint.since == "met" else "the job was created"
            return f"{spell_duration(constraint.span)} after {event}"
        case TimeWindow():
            return windows.describe(constraint.window)
        case SinceLastRun():
            which = "" if constraint.of == "any" else "successful "
            return f"{spell_duration(constraint.span)} since the last {which}run started"
        case Rate():
            return f"at most {count_of(constraint.max, 'run')} per {constraint.per}"
        case Fresh():
            names = ", ".join(constraint.workflows)
            return f"{names} succeeded within {spell_duration(constraint.span)}"
        case Load() | Approval():
            return constraint.describe()
        case Probe():
            whom = constraint.target.function if isinstance(constraint.target, LambdaProbe) else constraint.target.url
            return f"the probe {whom} says that it may"
