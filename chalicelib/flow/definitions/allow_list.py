"""Read and replace the allow-list of a namespace (O10)."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from chalicelib.core import errors
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.rows.access import AllowedRow
from chalicelib.flow.definitions import of_namespace
from chalicelib.flow.definitions.of_namespace import DocumentOfNamespace
from chalicelib.flow.definitions.store import Change
from chalicelib.ports import Ports

ALLOWED = DocumentOfNamespace(
    AllowedRow,
    "the allow-list",
    "allow-list",
    "without one, the namespace may use what the parameters of the stack allow, and beside other namespaces what holds "
    "its name; this proposes one: sluice allowed {} --propose",
)
get = ALLOWED.get


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
