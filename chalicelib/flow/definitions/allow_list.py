"""Read and replace the allow-list of a namespace (O10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from chalicelib.core import errors
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.instants import Instant
from chalicelib.core.rows.access import AllowedRow
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.store import Change
from chalicelib.flow.lookup import require
from chalicelib.ports import Ports


def get(ports: Ports, namespace: str) -> AllowedRow:
    """The allow-list of a namespace. Raises ``not_found`` if the namespace does not exist, or has no list."""
    require(ports, "namespace", namespace)
    found = ports.rows.get(AllowedRow, namespace)
    if found is None:
        hint = (
            "without one, the namespace may use what the parameters of the stack allow, and beside other namespaces "
            f"what holds its name; this proposes one: sluice allowed {namespace} --propose"
        )
        raise errors.not_found("allow-list of namespace", namespace, hint)
    return found


def put(ports: Ports, namespace: str, document: Allowed, by: str, if_match: int | None = None) -> Change:
    """Replace the allow-list of a namespace (`of_namespace.put`). Raises ``invalid`` for a target role that the stack
    may not assume."""
    _check_role(document.target_role, ports.settings.target_role_arns)
    content = document.model_dump(mode="json", exclude_defaults=True)
    return of_namespace.put(ports, ALLOWED, namespace, content, by, if_match)


def _check_role(arn: str | None, patterns: Sequence[str]) -> None:
    if arn is None or any(fnmatchcase(arn, pattern) for pattern in patterns):
        return
    hint = "name the role, or a pattern of its ARN, in the stack parameter TargetRoleArns: make deploy PARAMETERS=..."
    expected = f"a role that TargetRoleArns of the stack names ({', '.join(patterns) or 'none'})"
    raise errors.invalid("target_role", expected, arn, hint)


def _next(namespace: str, old: AllowedRow | None, document: Mapping[str, Any], now: Instant, by: str) -> AllowedRow:
    new = AllowedRow(namespace, document, 1, now, by)
    return replace(new, rev=old.rev + 1, unknown=old.unknown) if old is not None else new


ALLOWED: of_namespace.DocumentOfNamespace[AllowedRow] = of_namespace.DocumentOfNamespace(
    "the allow-list", lambda ports, name: ports.rows.get(AllowedRow, name), _next, lambda row: row.rev
)
