"""The kinds of stored definitions, and to which kind each belongs."""

from __future__ import annotations

from typing import Literal

DefinitionKind = Literal["namespace", "app", "workflow", "dataset", "policy", "pool", "calendar", "dag"]

# A definition is named `<parent>.<name>`.
PARENTS: dict[DefinitionKind, DefinitionKind | None] = {
    "namespace": None,
    "app": "namespace",
    "workflow": "app",
    "dataset": "namespace",
    "policy": "namespace",
    "pool": "namespace",
    "calendar": "namespace",
    "dag": "app",
}


def children(parent: DefinitionKind) -> list[DefinitionKind]:
    return [kind for kind, over in PARENTS.items() if over == parent]


def plural(kind: str) -> str:
    """The word for several definitions of a kind: in commands, and as a field of an app's document."""
    return "policies" if kind == "policy" else f"{kind}s"
