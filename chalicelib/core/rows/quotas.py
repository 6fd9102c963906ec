"""The row of the quotas of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class QuotasRow(StoredRow):
    """The quotas of a namespace (`core/quotas/document.py`), and their version ``rev``."""

    namespace: str
    document: Mapping[str, Any]
    rev: int
    updated_at: Instant
    by: str
