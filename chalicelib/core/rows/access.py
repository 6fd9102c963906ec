"""The rows of documents that a namespace has once: its members and their roles, its allow-list, and its quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class RowOfNamespace(StoredRow):
    """A document of a namespace, and its version ``rev``."""

    namespace: str
    document: Mapping[str, Any]
    rev: int
    updated_at: Instant
    by: str

    @property
    def version(self) -> int:
        return self.rev


@dataclass(frozen=True, slots=True)
class AccessRow(RowOfNamespace):
    """The access document of a namespace (`core/access/roles.py`)."""


@dataclass(frozen=True, slots=True)
class AllowedRow(RowOfNamespace):
    """The allow-list of a namespace (`core/access/allowed.py`)."""


@dataclass(frozen=True, slots=True)
class QuotasRow(RowOfNamespace):
    """The quotas of a namespace (`core/quotas/document.py`)."""
