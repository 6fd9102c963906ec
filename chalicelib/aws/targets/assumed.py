"""Credentials of the roles with which Sluice calls the targets of namespaces (O10), kept in this process.

`renew` calls STS, before a start is prepared. Calls of targets read the credentials from here, so no call of STS comes
between the last check of a start and its call. Credentials are renewed long before they expire, and used while they are
valid: an outage of STS that is shorter than that delays nothing in a process that has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of
from chalicelib.aws.targets.clients import MakeClient, MakeClientAs, Now
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.targets import denials
from chalicelib.log import logger

# A role that another one assumes has sessions of at most an hour, which every role allows.
SESSION: Millis = 60 * MINUTE
RENEWED_BEFORE: Millis = 15 * MINUTE  # the end of the credentials
# The least time for which credentials that are in use must be valid: a start waits at most two minutes for its instant.
NEEDED: Millis = 5 * MINUTE
# A refusal is remembered for so long, so that the deliveries of a burst do not repeat the call of STS one by one.
REMEMBERED: Millis = 5 * SECOND
CALL: dict[str, Any] = {
    "connect_timeout": 2,
    "read_timeout": 3,
    "retries": {"mode": "standard", "total_max_attempts": 2},
}
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html#API_AssumeRole_Errors
_DENIED = ("AccessDenied", "ValidationError", "MalformedPolicyDocument", "PackedPolicyTooLarge", "RegionDisabled")
_MAX_NAME = 64  # characters of the name of a session


@dataclass(frozen=True, slots=True)
class _Session:
    credentials: ReadOnlyCredentials
    until: Instant


class AssumedRoles:
    """The sessions of roles. ``sts`` returns a client of STS, made with the options `CALL`; ``make_as`` makes a client
    with given credentials. ``stage`` is that of the stack."""

    def __init__(self, sts: Callable[[], Any], make_as: MakeClientAs, now: Now, stage: str) -> None:
        self._sts, self._make_as, self._now, self._stage = sts, make_as, now, stage
        self._sessions: dict[TargetRole, _Session] = {}
        self._refused: dict[TargetRole, tuple[Instant, NotAssumed]] = {}

    def renew(self, role: TargetRole) -> NotAssumed | None:
        """Make sure that the credentials of a role are valid for the next minutes, by a call of STS if need be. Returns
        why they are not."""
        session, now = self._sessions.get(role), self._now()
        left = session.until - now if session is not None else 0
        if left >= RENEWED_BEFORE:
            return None
        is_valid = left >= NEEDED
        refused_at, refused = self._refused.get(role, (0, None))
        if refused is not None and 0 <= now - refused_at < REMEMBERED:
            return None if is_valid and not refused.denied else refused
        try:
            self._sessions[role] = self._assume(role)
        except ClientError as error:
            refused, why = self._refusal(role, code_of(error), message_of(error)), message_of(error)
        except BotoCoreError as error:
            whose, why = f"the target role of namespace {role.namespace}", str(error)
            refused = NotAssumed(f"STS gave no answer for {whose}: {error}", denied=False)
        else:
            self._refused.pop(role, None)
            return None
        logger.warning("target role not assumed", extra={"namespace": role.namespace, "role": role.arn, "why": why})
        self._refused[role] = now, refused
        return None if is_valid and not refused.denied else refused

    def maker(self, role: TargetRole) -> MakeClient:
        """What makes clients that sign with the present credentials of a role."""
        return partial(self._make_as, _Present(lambda: self.present(role)))

    def present(self, role: TargetRole) -> ReadOnlyCredentials:
        """The credentials that `renew` got last. Raises KeyError if it never got any."""
        return self._sessions[role].credentials

    def _assume(self, role: TargetRole) -> _Session:
        answer = self._sts().assume_role(
            RoleArn=role.arn,
            RoleSessionName=session_name(role.namespace),
            ExternalId=external_id(self._stage, role.namespace),
            DurationSeconds=SESSION // SECOND,
        )
        made = answer["Credentials"]
        frozen = ReadOnlyCredentials(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
        return _Session(frozen, round(made["Expiration"].timestamp() * 1000))

    def _refusal(self, role: TargetRole, code: str, message: str) -> NotAssumed:
        """The reason names the namespace, not the role: its reader may lack the right to read the allow-list."""
        whose = f"the target role of namespace {role.namespace}"
        if not code.startswith(_DENIED):
            return NotAssumed(f"STS refused {whose} for now: {code}", denied=False)
        external = external_id(self._stage, role.namespace)
        hint = (
            f"an administrator of the installation finds it by: sluice allowed {role.namespace}; it must trust the "
            f"roles of the Lambdas check and run_state with the external id {external}, "
            "and TargetRoleArns of the stack must name it"
        )
        denial = denials.read(message)
        by = f"; the denial comes from {denial.place}" if denial and denial.policy else ""
        return NotAssumed(f"Sluice may not assume {whose} ({code}): {hint}{by}", denied=True)


class _Present(Credentials):  # type: ignore[misc]
    """Credentials that a client reads anew for each request."""

    def __init__(self, read: Callable[[], ReadOnlyCredentials]) -> None:
        super().__init__("", "")
        self._read = read

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._read()


def session_name(namespace: str) -> str:
    """The name of a session, as CloudTrail shows it."""
    return f"sluice-{re.sub(r'[^A-Za-z0-9_=,.@-]', '-', namespace)}"[:_MAX_NAME]


def external_id(stage: str, namespace: str) -> str:
    """The external id that the trust policy of a role asks for, so that no other namespace or stack uses the role."""
    return f"sluice/{stage}/{namespace}"
