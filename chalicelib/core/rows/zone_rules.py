"""The row that says by which rules of time zones the stored instants of an installation were computed."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class ZoneRules(StoredRow):
    """``version`` are the rules that the ticks bring the stored instants to, from ``since`` on. A pass over all of them
    began at ``began``, and has come to the shard number ``part`` and to ``cursor`` in it; None: the next pass has not
    begun. ``done``: all follow these rules."""

    version: str
    since: Instant
    began: Instant | None = None
    part: int = 0
    cursor: str | None = None
    done: bool = False
