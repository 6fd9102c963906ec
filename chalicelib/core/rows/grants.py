"""The row of what a namespace grants to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class GrantsRow(StoredRow):
    """The grants document of a namespace (`core/access/grants.py`). ``version`` counts its changes, ``rev`` the writes
    of the row. ``wake_at`` makes the row an outbox: Sluice has to check the jobs that wait for a grant."""

    namespace: str
    document: Mapping[str, Any]
    version: int
    updated_at: Instant
    by: str
    rev: int = 1
    wake_at: Instant | None = None


def waiters_key(owner: str) -> str:
    """The event key under which the reverse index lists the schedules whose jobs wait for a grant of a namespace."""
    return f"grants:{owner}"
