"""Which person a signer is, where one person must not do what another person has to do."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from chalicelib.core.access.principal import member_of


def person_of(arn: str, personal_roles: Sequence[str]) -> str:
    """The person behind an ARN: a user, or a role with all its sessions.

    In a role that a pattern of ``personal_roles`` names, each session is a person of its own. Its name is that of the
    person in each of these roles: with IAM Identity Center, who has two permission sets has one session name.
    """
    member, session = member_of(arn)
    if session and any(fnmatchcase(member, pattern) for pattern in personal_roles):
        return f"session {session.casefold()}"
    return member
