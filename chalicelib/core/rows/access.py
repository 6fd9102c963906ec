"""The rows of the members of a namespace and their roles, and of its allow-list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class AccessRow(StoredRow):
    """The access document of a namespace (`core/access/roles.py`), and its version ``rev``."""

    namespace: str
    document: Mapping[str, Any]
    rev: int
    updated_at: Instant
    by: str


@dataclass(frozen=True, slots=True)
class AllowedRow(StoredRow):
    """The allow-list of a namespace (`core/access/allowed.py`), and its version ``rev``."""

    namespace: str
    document: Mapping[str, Any]
    rev: int
    updated_at: Instant
    by: str
