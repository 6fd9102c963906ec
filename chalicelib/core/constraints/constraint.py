"""Constraints whose answer comes from outside: how loaded something is (C6), and what a person says (C16).

Run constraints: conditions to be met before launch. Each says what an unmet one does (C1-C8, C15, C16).

Two kinds: `Delay`, `TimeWindow`, `Fresh`, `Load`, `Approval` and `Probe` are decided from the clock and from facts. The
others are held by a line, in the transaction that claims (C9): `Concurrency`, `SinceLastRun`, `Rate`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator, model_validator

from chalicelib.core import instants
from chalicelib.core.documents import Document, Duration, Name, Reference, by_type
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, SECOND, Millis, duration, spell_duration
from chalicelib.core.targets.http import CallTimeout, SecretName
from chalicelib.core.targets.lambda_function import FunctionArn
from chalicelib.core.targets.urls import Headers, Url
from chalicelib.core.text import count_of
from chalicelib.core.time import windows
from chalicelib.core.time.windows import Day

_PERSON = r"^arn:aws[a-z-]*:(iam|sts)::\d{12}:(user|role|assumed-role)/.{1,512}$"


class Metric(Document):
    """A metric of CloudWatch: its newest value, of so many seconds, by a statistic."""

    namespace: str = Field(pattern=r"^[!-~]{1,255}$")
    metric: str = Field(min_length=1, max_length=255)
    dimensions: dict[str, str] = Field(default_factory=dict, max_length=30)
    statistic: Literal["Average", "Sum", "Minimum", "Maximum", "SampleCount"] = "Average"
    period: Literal[10, 30, 60, 300, 900, 3600] = 60


class Measured(Document):
    """What is measured, one of: the share of a ``pool`` in use; the vCPUs in use of an EMR Serverless application, as a
    share of its maximum capacity, if it has one; a CloudWatch metric; the free addresses of a ``subnet``."""

    pool: Reference | None = None
    emr_application: str | None = Field(default=None, pattern=r"^[0-9a-z]{1,64}$")
    cloudwatch: Metric | None = None
    subnet: str | None = Field(default=None, pattern=r"^subnet-[0-9a-f]{8,17}$")

    @model_validator(mode="after")
    def _is_one(self) -> Measured:
        told = self.model_dump(exclude_none=True)
        if len(told) != 1:
            raise invalid("", "one of pool, emr_application, cloudwatch and subnet", sorted(told) or "none")
        return self

    def describe(self) -> str:
        if self.cloudwatch is not None:
            return f"{self.cloudwatch.metric} of {self.cloudwatch.namespace}"
        if self.subnet is not None:
            return f"the free addresses of {self.subnet}"
        if self.pool is not None:
            return f"the share of pool {self.pool} in use"
        return f"the capacity in use of EMR application {self.emr_application}"


class Load(Document):
    """What ``of`` tells is measured to be ``below`` a bound, or ``at_least`` one (C6). It is measured when all else is
    met but a probe, and again after ``recheck``; what cannot be measured always waits."""

    type: Literal["load"]
    of: Measured
    below: float | None = None
    at_least: float | None = None
    recheck: Duration = "1m"
    on_unmet: Literal["abort", "wait"] = "wait"

    @field_validator("recheck")
    @classmethod
    def _is_bounded(cls, recheck: str) -> str:
        if not 10 * SECOND <= duration(recheck, "") <= DAY:
            raise invalid("", "a pause between two measurements from 10s to 1d", recheck)
        return recheck

    @model_validator(mode="after")
    def _has_one_bound(self) -> Load:
        if (self.below is None) == (self.at_least is None):
            raise invalid("", "either below or at_least", "both" if self.below is not None else "neither")
        return self

    @property
    def span(self) -> Millis:
        return duration(self.recheck)

    def holds(self, value: float) -> bool:
        if self.below is not None:
            return value < self.below
        return self.at_least is not None and value >= self.at_least

    def describe(self) -> str:
        bound = f"below {self.below:g}" if self.below is not None else f"at least {self.at_least or 0:g}"
        return f"{self.of.describe()} is {bound}"


Person = Annotated[str, Field(pattern=_PERSON)]


def _role_of(caller: str) -> str | None:
    """The ARN of the role that a caller has: a session is told as ``assumed-role/<role>/<session>``, without a path."""
    found = re.fullmatch(r"(arn:aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.+", caller)
    if found is not None:
        return f"{found[1]}:iam::{found[2]}:role/{found[3]}"
    return caller if re.match(r"arn:aws[a-z-]*:iam::\d{12}:role/", caller) else None


class Approval(Document):
    """Somebody approves of this very job: who has the IAM ``role``, or is one of ``people`` (ARNs of users and roles).
    A refusal aborts it, and so does a ``timeout`` after its trigger was met, if there is one (C16)."""

    type: Literal["approval"]
    role: str | None = Field(default=None, pattern=r"^[\w+=,.@-]{1,64}$")
    people: tuple[Person, ...] = Field(default=(), max_length=50)
    timeout: Duration | None = None
    on_unmet: Literal["wait"] = "wait"

    @model_validator(mode="after")
    def _names_somebody(self) -> Approval:
        if self.role is None and not self.people:
            raise invalid("", "a role, people, or both", "neither", "say who may approve")
        return self

    @property
    def key(self) -> str:
        """What it is called in a job, beside other approvals that this may want."""
        return self.role or self.people[0]

    def may_be_given_by(self, caller: str) -> bool:
        """Whether a caller, by the ARN that signed the request, may approve or refuse."""
        role = _role_of(caller)
        if self.role is not None and role is not None and role.rpartition("/")[2] == self.role:
            return True
        return any(person in (caller, role) for person in self.people)

    def describe(self) -> str:
        whom = [f"a {self.role}"] if self.role is not None else []
        limit = f" within {spell_duration(duration(self.timeout))}" if self.timeout is not None else ""
        return f"approved by {' or '.join([*whom, *self.people])}{limit}"


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
        instants.zone(self.zone or "UTC")
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


_NAMED_SPANS: dict[str, Millis] = {"hour": HOUR, "day": DAY}


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
