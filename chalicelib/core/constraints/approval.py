"""approval: a user with the right role approves of a job before it runs (C16)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from chalicelib.core.access.principal import member_of
from chalicelib.core.constraints.constraint import Condition, Constraint, Situation
from chalicelib.core.documents import Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import duration, format_duration, iso
from chalicelib.core.states import WaitReason
from chalicelib.core.why import Mention

_PERSON = r"^arn:aws[a-z-]*:(iam|sts)::\d{12}:(user|role|assumed-role)/.{1,512}$"

Person = Annotated[str, Field(pattern=_PERSON)]


def _role_of(caller: str) -> str | None:
    """The ARN of a caller's role; None for a user."""
    member, _ = member_of(caller)
    return member if re.match(r"arn:aws[a-z-]*:iam::\d{12}:role/", member) else None


class Approval(Constraint):
    """A user approves of this job: one with the IAM ``role``, or one of ``people`` (ARNs of users and roles). A refusal
    aborts the job; so does the end of ``timeout``, which counts from the instant at which its trigger was met (C16)."""

    wait_reason: ClassVar[WaitReason] = "approval"
    decidable_ahead: ClassVar[bool] = False
    by_person: ClassVar[bool] = True
    once: ClassVar[bool] = True
    survives_timeout: ClassVar[bool] = True
    for_backfill: ClassVar[bool] = True

    type: Literal["approval"]
    role: str | None = Field(default=None, pattern=r"^[\w+=,.@-]{1,64}$")
    people: tuple[Person, ...] = Field(default=(), max_length=50)
    timeout: Duration | None = None
    on_unmet: Literal["wait"] = "wait"

    @model_validator(mode="after")
    def _names_approvers(self) -> Approval:
        if self.role is None and not self.people:
            raise invalid("", "a role, people, or both", "neither", "say who may approve")
        return self

    @property
    def key(self) -> str:
        """The key of this approval in a job, which may need several."""
        return self.role or self.people[0]

    def may_be_given_by(self, caller: str) -> bool:
        """Whether a caller, by the ARN that signed the request, may approve or refuse."""
        role = _role_of(caller)
        if self.role is not None and role is not None and role.rpartition("/")[2] == self.role:
            return True
        return any(person in (caller, role) for person in self.people)

    def place(self, job: str) -> str:
        """A name in the namespace where a person needs the duty to give this approval of a job, by the job's id."""
        return job

    def describe(self) -> str:
        whom = [f"a {self.role}"] if self.role is not None else []
        limit = f" within {format_duration(duration(self.timeout))}" if self.timeout is not None else ""
        return f"approved by {' or '.join([*whom, *self.people])}{limit}"

    def evaluate(self, s: Situation) -> Condition:
        """Met once a user has approved of this job as it is. A retry carries the approvals of its run."""
        approval = (s.job.approvals or {}).get(self.key)
        if approval is not None and not holds(approval, s.content):
            change = "what it runs has changed" if approval["of"] else "another event came"
            return self.unmet(f"waits for approval again: {change} since it was approved {approved_by(approval)}")
        if approval is not None:
            return self.met(approved_by(approval))
        if s.job.traits.retries and s.job.approvals is None:
            return self.met("approved for an earlier attempt")
        ends = None if self.timeout is None else s.met_at + duration(self.timeout)
        if ends is not None and s.now >= ends:
            return self.unmet(f"not approved by {iso(ends)}", ends, abort=True)
        return self.unmet("waits for approval", ends)

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        approvals = [each.key for each in approvals_of(same)]
        if len(set(approvals)) < len(approvals):
            raise invalid("constraints", "one approval for each role", approvals, "keep one approval for each role")


class WorkflowApproval(Approval):
    """The approval that a workflow asks for: each job that runs ``workflow``, its full name, waits for it, whichever
    schedule has made it. Who gives it needs the duty in the namespace of the workflow. It counts for this workflow
    alone, so that an approval of a schedule with the same role does not replace it."""

    workflow: str

    @property
    def key(self) -> str:
        return f"{super().key} for {self.workflow}"

    def describe(self) -> str:
        return f"{super().describe()} for workflow {self.workflow}"

    def place(self, job: str) -> str:
        return self.workflow

    def mention(self, key: str) -> Mention:
        return Mention(self.rule, "approval", self.workflow)


def of_workflow(approval: Approval | None, workflow: str) -> tuple[Constraint, ...]:
    """The approval that a workflow asks for, as a constraint of each job that runs it; empty without one."""
    return (WorkflowApproval(**dict(approval), workflow=workflow),) if approval is not None else ()


def waiters_key(workflow: str) -> str:
    """The event key under which the reverse index lists the schedules whose jobs wait for the approval of a
    workflow."""
    return f"approval:{workflow}"


def approvals_of(constraints: Iterable[Constraint]) -> list[Approval]:
    """The approvals among these constraints."""
    return [each for each in constraints if isinstance(each, Approval)]


def approved_by(approval: Mapping[str, Any]) -> str:
    """The user who approved, the instant and the reason, as text for users."""
    reason = f": {approval['why']}" if approval.get("why") else ""
    return f"by {approval['by']} at {iso(approval['at'])}{reason}"


def holds(approval: Mapping[str, Any], content: str) -> bool:
    """Whether a stored approval is one of this content."""
    return bool(approval.get("of", content) == content)


def outdated(approvals: Mapping[str, Any]) -> dict[str, Any]:
    """The approvals of a job that has counted a further event, of which they are none: they hold no longer."""
    return {key: {**given, "of": ""} for key, given in approvals.items()}


def words_of(approvals: Mapping[str, Any], former: Mapping[str, Any] | None = None) -> str:
    """The approvals of a job that are not among the ``former`` ones, as text that follows the reason of its start."""
    new = [given for key, given in sorted(approvals.items()) if given != (former or {}).get(key)]
    return "".join(f"; approved {approved_by(given)}" for given in new)
