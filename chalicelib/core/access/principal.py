"""The signer of a request, as IAM has identified it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
        raise SluiceError(
            "forbidden",
            f"expected a request signed by an IAM user or role, got {arn!r} as its signer" if arn else _UNSIGNED,
            None,
            "sign the request with AWS credentials (Signature Version 4, service execute-api)",
        )
    of_session = _SESSION.fullmatch(arn)
    member, session = arn, ""
    if of_session is not None:
        member = f"arn:{of_session['partition']}:iam::{of_session['account']}:role/{of_session['role']}"
        session = of_session["session"]
    return Principal(
        arn=arn,
        account=known["account"],
        member=member,
        session=session,
        unique_id=str(identity.get("user") or identity.get("caller") or ""),
        source=str(identity.get("sourceIp") or ""),
        request_id=str(context.get("requestId") or ""),
    )


_UNSIGNED = "expected a signed request, got one without a signer"
