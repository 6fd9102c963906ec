"""Constraints whose answer comes from outside: how loaded something is (C6), and what a person says (C16)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from chalicelib.core.calendar import DAY, SECOND, Millis, duration, spell_duration
from chalicelib.core.documents import Document, Duration, Reference
from chalicelib.core.errors import invalid

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


def _role_of(caller: str) -> str | None:
    """The ARN of the role that a caller has: a session is told as ``assumed-role/<role>/<session>``, without a path."""
    found = re.fullmatch(r"(arn:aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.+", caller)
    if found is not None:
        return f"{found[1]}:iam::{found[2]}:role/{found[3]}"
    return caller if re.match(r"arn:aws[a-z-]*:iam::\d{12}:role/", caller) else None
