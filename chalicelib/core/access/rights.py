"""The rights that routes need, and the roles that hold them."""

from __future__ import annotations

from typing import Literal, get_args

Right = Literal["read", "operate", "define", "administer", "produce", "work", "approve", "limit"]
Role = Literal["viewer", "operator", "author", "admin", "producer", "worker", "approver"]

RIGHTS: tuple[Right, ...] = get_args(Right)
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


def roles_with(right: Right) -> tuple[Role, ...]:
    """The roles that hold a right, the least powerful first."""
    return tuple(sorted((role for role in ROLES if right in HELD[role]), key=lambda role: len(HELD[role])))
