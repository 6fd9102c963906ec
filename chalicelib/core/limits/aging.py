"""Aging: work that waits long in the queue of a pool or a policy becomes more urgent, so that no priority starves."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from chalicelib.core.documents import Described, Duration, Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, SECOND, Millis, duration

LEAST, MOST = SECOND, 30 * DAY


class Aging(Described, Sparse):
    """``aging``: each such span of waiting raises a job by one step of priority. Without it, the higher priority always
    goes first."""

    omitted: ClassVar[Collection[str]] = ("aging",)

    aging: Duration | None = None

    @property
    def aging_span(self) -> Millis:
        """The span in ms; 0 without aging. Raises ``invalid`` if it is too short or too long."""
        span = duration(self.aging) if self.aging is not None else 0
        if self.aging is not None and not LEAST <= span <= MOST:
            raise invalid("aging", "a span from 1s to 30d", self.aging, "such as 30m")
        return span
