"""Refuse a Lambda what its role does not allow, as ministack does for its services, and a key that nobody knows
everything.

Users and the root may do everything: users have the keys of a developer with all permissions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.local import refusals
from infra.local.callers import Callers
from infra.local.permissions import Place, Policy, needs

from . import errors

_KEY = re.compile(r"Credential=([^/]+)/")
_REMEMBERED_S = 5.0  # a deployment of the stack may change a role


class Permissions:
    """`statements` returns the policy statements of a role by its name; `directory` is that of the local cloud."""

    def __init__(
        self,
        statements: Callable[[str], Sequence[Mapping[str, Any]]],
        directory: Path,
        place: Place,
        root_key: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._statements, self._place, self._clock = statements, place, clock
        self._callers, self._root_key = Callers(directory / "callers.json"), root_key
        self._refusals = directory / "refusals.jsonl"
        self._known: dict[str, tuple[float, Policy]] = {}

    def admit(self, authorization: str, operation: str, parameters: Mapping[str, Any]) -> None:
        """Raise AccessDeniedException for a request that the caller's role does not allow, and
        UnrecognizedClientException for one that is signed with no known key. The signature was verified before."""
        key = _KEY.search(authorization)
        if key and key[1] == self._root_key:
            return
        found = self._callers.get(key[1]) if key else None
        if found is None:
            raise errors.unknown_key()
        if found.role is None:
            return
        caller, policy = found.arn, self._policy(found.role)
        for need in needs("emr-serverless", operation, parameters, self._place):
            if not policy.allows(need):
                refusals.note(self._refusals, caller, need.action, need.resource)
                message = f"User: {caller} is not authorized to perform: {need.action} on resource: {need.resource}"
                raise errors.access_denied(
                    f"{message} because no identity-based policy allows the {need.action} action"
                )

    def _policy(self, role: str) -> Policy:
        read_at, policy = self._known.get(role, (None, None))
        if policy is None or read_at is None or self._clock() - read_at > _REMEMBERED_S:
            policy = Policy(self._statements(role))
            self._known[role] = self._clock(), policy
        return policy


def statements_of(iam: Any) -> Callable[[str], list[Mapping[str, Any]]]:
    """A function that reads the policies of a role with an IAM client."""

    def statements(role: str) -> list[Mapping[str, Any]]:
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        documents = [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names]
        return [statement for document in documents for statement in document["Statement"]]

    return statements
