"""The row that counts closings: changes after which something that was to be sent must not be sent any more (C13)."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class ClosingCount(StoredRow):
    """The number of closings in a namespace so far, and the instant at which the last one was counted. Another number
    says that a schedule or a fire may have been closed since; it does not say which."""

    namespace: str
    closings: int
    at: Instant
