"""The row of how the runs of a schedule's periods have ended (L23)."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class PeriodEnds(StoredRow):
    """What the attempts of a schedule say that were claimed from ``complete_from`` to before ``complete_to``, so that a
    view reads only later ones. ``by`` are the keys that name a period, as the schedule had them.

    ``ends`` is the text of `core/backfills/period_ends.py`. It leaves out the ``active`` attempts, each with its run id
    and its number: those of periods that were running. A view reads these again."""

    schedule: str
    by: tuple[str, ...]
    ends: str
    complete_from: Instant
    complete_to: Instant
    active: tuple[tuple[str, int], ...] = ()
    rev: int = 1
    expires_at: Instant | None = None
