"""The signer of a request, as IAM has identified it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from chalicelib.core.errors import SluiceError

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
_SESSION = re.compile(
    r"arn:(?P<partition>[a-z-]+):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/(?P<session>.+)"
)
_IDENTITY = re.compile(r"arn:[a-z-]+:(?:iam|sts)::(?P<account>\d{12}):.+")


@dataclass(frozen=True, slots=True)
class Principal:
    """The signer of a request. ``arn`` is that of a user, or of a session of a role; ``member`` is that of the user or
    role. ``unique_id`` never belongs to a second user or role, even under the same name."""

    arn: str
    account: str
    member: str
    session: str = ""
    unique_id: str = ""
    source: str = ""
    request_id: str = ""


def identified(context: Mapping[str, Any]) -> Principal:
    """The signer in the request context of API Gateway. Raises ``forbidden`` if there is none: an unknown caller has no
    rights.

    The ARN of a session lacks the path of its role, so ``member`` lacks it, too.
    """
    identity: Mapping[str, Any] = context.get("identity") or {}
    arn = str(identity.get("userArn") or "")
    known = _IDENTITY.fullmatch(arn)
    if known is None:
        message = f"expected a request signed by an IAM user or role, got {arn!r} as its signer" if arn else _UNSIGNED
        hint = "sign the request with AWS credentials (Signature Version 4, service execute-api)"
        raise SluiceError("forbidden", message, None, hint)
    member, session = member_of(arn)
    return Principal(
        arn=arn,
        account=known["account"],
        member=member,
        session=session,
        unique_id=str(identity.get("user") or identity.get("caller") or ""),
        source=str(identity.get("sourceIp") or ""),
        request_id=str(context.get("requestId") or ""),
    )


def member_of(arn: str) -> tuple[str, str]:
    """The ARN of a session's role, without its path, and the name of the session. Any other ARN is its own member."""
    found = _SESSION.fullmatch(arn)
    if found is None:
        return arn, ""
    return f"arn:{found['partition']}:iam::{found['account']}:role/{found['role']}", found["session"]


def person_of(arn: str, personal_roles: Sequence[str]) -> str:
    """The person behind an ARN: a user, or a role with all its sessions.

    In a role that a pattern of ``personal_roles`` names, each session is a person of its own. Its name is that of the
    person in each of these roles: with IAM Identity Center, who has two permission sets has one session name.
    """
    member, session = member_of(arn)
    if session and any(fnmatchcase(member, pattern) for pattern in personal_roles):
        return f"session {session.casefold()}"
    return member


_UNSIGNED = "expected a signed request, got one without a signer"
