"""Roles: the rights that they hold, the access document that gives them, and whether a request is allowed (O5).

Example:

    members:
      - member: arn:aws:iam::123456789012:role/data-platform
        roles: [admin]
      - member: arn:aws:iam::123456789012:role/analyst-*
        roles: [viewer, approver]
      - member: arn:aws:iam::210987654321:role/ingest
        roles: [producer]
        events: [sales.]
        datasets: [flights]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from chalicelib.core.access.principal import Principal
from chalicelib.core.documents import Document, Name
from chalicelib.core.errors import SluiceError, invalid

Right = Literal["read", "operate", "define", "administer", "produce", "work", "approve", "limit"]
Role = Literal["viewer", "operator", "author", "admin", "producer", "worker", "approver"]

ROLES: tuple[Role, ...] = get_args(Role)

# No role holds the right to limit a namespace: only administrators of the installation do.
# An approver is a duty beside the other roles: not even an administrator approves without it.
HELD: dict[Role, frozenset[Right]] = {
    "viewer": frozenset({"read"}),
    "operator": frozenset({"read", "operate"}),
    "author": frozenset({"read", "operate", "define", "produce"}),
    "admin": frozenset({"read", "operate", "define", "produce", "administer"}),
    "producer": frozenset({"produce"}),
    "worker": frozenset({"work"}),
    "approver": frozenset({"read", "approve"}),
}
MEANING: dict[Right, str] = {
    "read": "read definitions, jobs, runs, history and logs",
    "operate": "enable, pause, run, cancel, rerun, backfill and re-process",
    "define": "create, replace and delete definitions",
    "administer": "change who has access, and delete the namespace",
    "produce": "post events and register partitions",
    "work": "claim runs of a pool and report their ends",
    "approve": "approve or refuse jobs that wait for an approval",
    "limit": "change what the namespace may use",
}

MAX_MEMBERS = 200
# The account and the beginning of the name are literal, so that no pattern fits everybody.
_MEMBER = re.compile(
    r"arn:aws[a-z-]*:iam::[0-9]{12}:user/[A-Za-z0-9+=,.@_/-]+[A-Za-z0-9+=,.@_/*-]*"
    r"|arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_-]+[A-Za-z0-9+=,.@_*-]*"
    r"|[0-9]{12}"
)
_MEMBER_HINT = (
    "write the ARN of a user, the ARN of a role without its path, such as arn:aws:iam::123456789012:role/data-*, "
    "or the 12 digits of an account"
)


def roles_with(right: Right) -> tuple[Role, ...]:
    """The roles that hold a right, the least powerful first."""
    return tuple(sorted((role for role in ROLES if right in HELD[role]), key=lambda role: len(HELD[role])))


@dataclass(frozen=True, slots=True)
class Resource:
    """What a request is about, as far as roles are limited to it: event types, a dataset or a pool, by short names."""

    events: tuple[str, ...] = ()
    dataset: str | None = None
    pool: str | None = None


class Member(Document):
    """A member and its roles. ``member`` is the ARN of an IAM user or role, in which ``*`` stands for any text, or an
    account. A role is named without its path, because the sessions of AWS do not have it.

    ``events`` are prefixes of the event types, and ``datasets`` the datasets, that a producer is limited to; without
    both, it may post all. ``pools`` are those that a worker is limited to.
    """

    member: str
    roles: tuple[Role, ...] = Field(min_length=1)
    events: tuple[str, ...] = ()
    datasets: tuple[Name, ...] = ()
    pools: tuple[Name, ...] = ()

    @field_validator("member", mode="before", json_schema_input_type=str)
    @classmethod
    def _account_as_text(cls, member: object) -> object:
        """YAML reads the digits of an account as a number."""
        return str(member) if isinstance(member, int) and not isinstance(member, bool) else member

    @field_validator("member")
    @classmethod
    def _names_a_member(cls, member: str) -> str:
        if not _MEMBER.fullmatch(member):
            raise invalid("", "an IAM user or role of one account, or an account", member, _MEMBER_HINT)
        return member

    @model_validator(mode="after")
    def _limits_fit(self) -> Self:
        for role, field, given in (
            ("producer", "events", self.events),
            ("producer", "datasets", self.datasets),
            ("worker", "pools", self.pools),
        ):
            if given and role not in self.roles:
                raise invalid(field, f"this field only beside the role {role}", list(given), f"add the role {role}")
        return self

    @property
    def account(self) -> str:
        return self.member if self.member.isdigit() else self.member.split(":")[4]

    def includes(self, principal: Principal) -> bool:
        """Whether a principal is this member."""
        if self.member.isdigit():
            return principal.account == self.member
        return fnmatchcase(principal.member, self.member)

    def grants(self, right: Right, resource: Resource) -> bool:
        """Whether the roles of this member hold a right on a resource."""
        return any(right in HELD[role] and self._reaches(role, resource) for role in self.roles)

    def _reaches(self, role: Role, resource: Resource) -> bool:
        limit = {"producer": self._may_produce, "worker": self._may_work}.get(role)
        return limit is None or limit(resource)

    def _may_produce(self, resource: Resource) -> bool:
        if not self.events and not self.datasets:
            return True
        events = all(self.events and event.startswith(self.events) for event in resource.events)
        return events and (resource.dataset is None or resource.dataset in self.datasets)

    def _may_work(self, resource: Resource) -> bool:
        return not self.pools or resource.pool is None or resource.pool in self.pools


class Access(Document):
    """The access document of a namespace. At least one member has the role admin."""

    members: tuple[Member, ...] = Field(min_length=1, max_length=MAX_MEMBERS)

    @model_validator(mode="after")
    def _has_an_admin(self) -> Self:
        if not any("admin" in member.roles for member in self.members):
            raise invalid("members", "at least one member with the role admin", "none", "give a member the role admin")
        return self

    def unreachable(self, account: str, callers: Collection[str]) -> list[str]:
        """The accounts of members, besides that of the stack, whose requests API Gateway refuses, because they are not
        among the ``callers`` of its resource policy."""
        return sorted({member.account for member in self.members} - {account, *callers})

    def roles_of(self, principal: Principal) -> tuple[Role, ...]:
        """All roles of a principal, each once."""
        found = [role for member in self.members if member.includes(principal) for role in member.roles]
        return tuple(dict.fromkeys(found))

    def allows(self, principal: Principal, right: Right, resource: Resource) -> bool:
        """Whether a principal holds a right on a resource of the namespace."""
        return any(member.includes(principal) and member.grants(right, resource) for member in self.members)


ANY = Resource()


def is_administrator(principal: Principal, administrators: Sequence[str]) -> bool:
    """Whether a principal is an administrator of the installation, who creates namespaces and has every right in each
    but the duty to approve."""
    return any(fnmatchcase(principal.member, pattern) for pattern in administrators)


def is_allowed(
    principal: Principal, administrators: Sequence[str], access: Access | None, right: Right, resource: Resource = ANY
) -> bool:
    """Whether a principal may use a right in a namespace. ``access`` is None where the namespace has no members."""
    if is_administrator(principal, administrators) and right != "approve":
        return True
    return access is not None and access.allows(principal, right, resource)


def can_see(principal: Principal, administrators: Sequence[str], access: Access | None) -> bool:
    """Whether a principal may know that a namespace exists: it has any role there."""
    return is_administrator(principal, administrators) or bool(access and access.roles_of(principal))


UNSEEN_HINT = "check the name; if it is right, an admin of its namespace can give you a role"


def refused_events(principal: Principal, namespace: str, types: Sequence[str]) -> SluiceError:
    """The error for event types that a producer is not limited to."""
    listed = ", ".join(dict.fromkeys(types))
    message = f"expected event types that {principal.member} may post in namespace {namespace}, got {listed}"
    hint = f"an admin of {namespace} can add them: sluice access {namespace}"
    return SluiceError("forbidden", message, "events", hint)


def refused_installation(principal: Principal) -> SluiceError:
    """The error for a request that only administrators of the installation may make."""
    message = f"expected an administrator of the installation; {principal.member} is not one"
    hint = "the stack parameter Administrators lists them; for one namespace, send the request of that namespace"
    return SluiceError("forbidden", message, None, hint)


def refused(principal: Principal, namespace: str, right: Right) -> SluiceError:
    """The error for a right that a principal lacks in a namespace that it may see."""
    if not roles_with(right):
        message = f"expected an administrator of the installation, to {MEANING[right]}; {principal.member} is not one"
        return SluiceError("forbidden", message, None, "the stack parameter Administrators names them")
    expected = f"expected the role {' or '.join(roles_with(right))} in namespace {namespace}, to {MEANING[right]}"
    hint = f"an admin of {namespace} can give it: sluice access {namespace}"
    return SluiceError("forbidden", f"{expected}; {principal.member} does not have it", None, hint)
