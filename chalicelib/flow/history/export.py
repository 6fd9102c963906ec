"""Export final rows, from the stream of the runs table, as lines of the history in the lake (H3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from chalicelib.core.history import audit, lines
from chalicelib.core.history.audit import AuditPart, NewRecord
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import Instant
from chalicelib.core.runs.costs import Prices
from chalicelib.log import logger


class HistoryLake(Protocol):
    """The store of history lines. Both methods are idempotent."""

    def put(self, part: Part) -> None: ...

    def tell_late(self, keys: Iterable[str]) -> None: ...


def land(lake: HistoryLake, changes: Sequence[Change], prices: Prices, now: Instant) -> tuple[str, ...]:
    """Put final rows into the lake, one object for each hour. Returns the sequence numbers of those that failed.

    Days with late lines are marked last, so that the job that compacts such a day again finds the lines.
    """
    landed: list[Part] = []
    failed: list[str] = []
    for part in lines.parts(changes, prices):
        try:
            lake.put(part)
        except Exception:  # one failure does not stop the other hours, and the stream delivers this one again
            logger.exception("history not written", extra={"key": part.key})
            failed += part.sequences
        else:
            landed.append(part)
    lake.tell_late(lines.late_days(landed, now))
    logger.info("lake", extra={"lines": sum(len(part.lines) for part in landed), "objects": len(landed)})
    return tuple(failed)


class AuditLog(Protocol):
    """The store of exported audit records."""

    def put(self, part: AuditPart) -> None: ...


def keep(log: AuditLog, records: Sequence[NewRecord]) -> tuple[str, ...]:
    """Export audit records, one object for each hour. Returns the sequence numbers of those that failed."""
    failed: list[str] = []
    for part in audit.parts(records):
        try:
            log.put(part)
        except Exception:  # one failure does not stop the other hours, and the stream delivers this one again
            logger.exception("audit records not written", extra={"key": part.key})
            failed += part.sequences
    return tuple(failed)
