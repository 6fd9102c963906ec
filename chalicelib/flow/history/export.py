"""Export final rows, from the stream of the runs table, as lines of the history in the lake (H3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from chalicelib.core.history import audit, lines
from chalicelib.core.history.audit import AuditPart, NewRecord
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import Instant
from chalicelib.core.runs.costs import Prices
from chalicelib.log import logger

P = TypeVar("P", Part, AuditPart)


class HistoryLake(Protocol):
    """The store of history lines. Both methods are idempotent."""

    def put(self, part: Part) -> None: ...

    def tell_late(self, keys: Iterable[str]) -> None: ...


class AuditLog(Protocol):
    """The store of exported audit records."""

    def put(self, part: AuditPart) -> None: ...


def land(lake: HistoryLake, changes: Sequence[Change], prices: Prices, now: Instant) -> tuple[str, ...]:
    """Put final rows into the lake, one object for each hour. Returns the sequence numbers of those that failed.

    Days with late lines are marked last, so that the job that compacts such a day again finds the lines.
    """
    landed, failed = _put(lines.parts(changes, prices), lake.put, "history not written")
    lake.tell_late(lines.late_days(landed, now))
    logger.info("lake", extra={"lines": sum(len(part.lines) for part in landed), "objects": len(landed)})
    return failed


def keep(log: AuditLog, records: Sequence[NewRecord]) -> tuple[str, ...]:
    """Export audit records, one object for each hour. Returns the sequence numbers of those that failed."""
    return _put(audit.parts(records), log.put, "audit records not written")[1]


def _put(parts: Iterable[P], put: Callable[[P], None], problem: str) -> tuple[list[P], tuple[str, ...]]:
    """Put the objects of all hours. Returns those that were put, and the sequence numbers of the others."""
    landed: list[P] = []
    failed: list[str] = []
    for part in parts:
        try:
            put(part)
        except Exception:  # one failure does not stop the other hours, and the stream delivers this one again
            logger.exception(problem, extra={"key": part.key})
            failed += part.sequences
        else:
            landed.append(part)
    return landed, tuple(failed)
