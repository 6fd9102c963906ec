"""Whether a request is allowed, and the error for one that is not."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from chalicelib.core.access.document import Access, Resource
from chalicelib.core.access.principal import Principal
from chalicelib.core.access.rights import MEANING, Right, roles_with
from chalicelib.core.errors import SluiceError

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
    return SluiceError(
        "forbidden",
        f"expected event types that {principal.member} may post in namespace {namespace}, got {listed}",
        "events",
        f"an admin of {namespace} can add them: sluice access {namespace}",
    )


def refused_installation(principal: Principal) -> SluiceError:
    """The error for a request that only administrators of the installation may make."""
    return SluiceError(
        "forbidden",
        f"expected an administrator of the installation; {principal.member} is not one",
        None,
        "the stack parameter Administrators lists them; for one namespace, send the request of that namespace",
    )


def refused(principal: Principal, namespace: str, right: Right) -> SluiceError:
    """The error for a right that a principal lacks in a namespace that it may see."""
    if not roles_with(right):
        return SluiceError(
            "forbidden",
            f"expected an administrator of the installation, to {MEANING[right]}; {principal.member} is not one",
            None,
            "the stack parameter Administrators names them",
        )
    roles = " or ".join(roles_with(right))
    return SluiceError(
        "forbidden",
        f"expected the role {roles} in namespace {namespace}, to {MEANING[right]}; {principal.member} does not have it",
        None,
        f"an admin of {namespace} can give it: sluice access {namespace}",
    )
