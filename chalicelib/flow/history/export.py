"""lake: final rows out of the stream of the runs table become lines of the lake of history (H3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from chalicelib.core.history import lines
from chalicelib.core.history.lines import Change, Part
from chalicelib.core.instants import Instant
from chalicelib.core.runs.costs import Prices
from chalicelib.log import logger


class HistoryLake(Protocol):
    """Where the lines go. Both are harmless to repeat."""

    def put(self, part: Part) -> None: ...

    def tell_late(self, keys: Iterable[str]) -> None: ...


def land(lake: HistoryLake, changes: Sequence[Change], prices: Prices, now: Instant) -> tuple[str, ...]:
    """Put what is final into the lake, an object for each hour. Returns the changes of those that could not be put.

    What comes late is told last, so that whoever settles the day again finds it there.
    """
    landed: list[Part] = []
    failed: list[str] = []
    for part in lines.parts(changes, prices):
        try:
            lake.put(part)
        except Exception:  # whatever it is, the other hours go on and the stream brings this one back
            logger.exception("history not written", extra={"key": part.key})
            failed += part.sequences
        else:
            landed.append(part)
    lake.tell_late(lines.late_days(landed, now))
    logger.info("lake", extra={"lines": sum(len(part.lines) for part in landed), "objects": len(landed)})
    return tuple(failed)
