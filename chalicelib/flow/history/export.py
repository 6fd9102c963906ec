"""Export final rows, from the stream of the runs table, as lines of the history in the lake (H3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from chalicelib.core.history import audit, lines
from chalicelib.core.history.audit import NewRecord
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import Instant
from chalicelib.core.targets.bills import Prices
from chalicelib.log import logger


class Store(Protocol):
    """The store of exported audit records."""

    def put(self, part: Part) -> None: ...


class HistoryLake(Store, Protocol):
    """The store of history lines. Both methods are idempotent."""

    def tell_late(self, keys: Iterable[str]) -> None: ...


def land(lake: HistoryLake, changes: Sequence[Change], prices: Prices, now: Instant) -> tuple[str, ...]:
    """Put final rows into the lake, one object for each hour. Returns the sequence numbers of those that failed.

    Days with late lines are marked last, so that the job that compacts such a day again finds the lines.
    """
    landed, failed = _put(lake, lines.parts(changes, prices), "history not written")
    lake.tell_late(lines.late_days(landed, now))
    logger.info("lake", extra={"lines": sum(len(part.lines) for part in landed), "objects": len(landed)})
    return failed


def keep(log: Store, records: Sequence[NewRecord]) -> tuple[str, ...]:
    """Export audit records, one object for each hour. Returns the sequence numbers of those that failed."""
    return _put(log, audit.parts(records), "audit records not written")[1]


def _put(store: Store, parts: Iterable[Part], message: str) -> tuple[list[Part], tuple[str, ...]]:
    """The objects that were put, and the sequence numbers of the others."""
    landed: list[Part] = []
    failed: list[str] = []
    for part in parts:
        try:
            store.put(part)
        except Exception:  # one failure does not stop the other hours, and the stream delivers this one again
            logger.exception(message, extra={"key": part.key})
            failed += part.sequences
        else:
            landed.append(part)
    return landed, tuple(failed)
