"""approval: a person says that this job may run (C16). What has been approved of a job, and by whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.constraints.constraint import Condition, Constraint, Situation
from chalicelib.core.documents import Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import duration, format_duration, iso
from chalicelib.core.states import WaitReason

_PERSON = r"^arn:aws[a-z-]*:(iam|sts)::\d{12}:(user|role|assumed-role)/.{1,512}$"

Person = Annotated[str, Field(pattern=_PERSON)]


def _role_of(caller: str) -> str | None:
    """The ARN of the role that a caller has: a session is told as ``assumed-role/<role>/<session>``, without a path."""
    found = re.fullmatch(r"(arn:aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.+", caller)
    if found is not None:
        return f"{found[1]}:iam::{found[2]}:role/{found[3]}"
    return caller if re.match(r"arn:aws[a-z-]*:iam::\d{12}:role/", caller) else None


class Approval(Constraint):
    """Somebody approves of this very job: who has the IAM ``role``, or is one of ``people`` (ARNs of users and roles).
    A refusal aborts it, and so does a ``timeout`` after its trigger was met, if there is one (C16)."""

    wait_reason: ClassVar[WaitReason] = "approval"
    decidable_ahead: ClassVar[bool] = False
    by_person: ClassVar[bool] = True
    survives_timeout: ClassVar[bool] = True
    for_backfill: ClassVar[bool] = True

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
        limit = f" within {format_duration(duration(self.timeout))}" if self.timeout is not None else ""
        return f"approved by {' or '.join([*whom, *self.people])}{limit}"

    def evaluate(self, s: Situation) -> Condition:
        """Given to this job, or to an earlier attempt of its run."""
        said = s.job.approvals.get(self.key)
        if said is not None or s.job.kind == "retry":
            return self.met(told(said) if said else "for an earlier attempt")
        ends = None if self.timeout is None else s.met_at + duration(self.timeout)
        if ends is not None and s.now >= ends:
            return self.unmet(f"nobody did until {iso(ends)}", ends, abort=True)
        return self.unmet("waits for that", ends)

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        approvals = [each.key for each in approvals_of(same)]
        if len(set(approvals)) < len(approvals):
            raise invalid("constraints", "one approval for each role", approvals)


def approvals_of(constraints: Iterable[Constraint]) -> list[Approval]:
    return [each for each in constraints if isinstance(each, Approval)]


def told(said: Mapping[str, Any]) -> str:
    """Who approved, when, and with which words."""
    words = f": {said['why']}" if said.get("why") else ""
    return f"by {said['by']} at {iso(said['at'])}{words}"


def words_of(approvals: Mapping[str, Mapping[str, Any]]) -> str:
    """All of a job's, behind what fired it."""
    return "".join(f"; approved {told(approvals[key])}" for key in sorted(approvals))
