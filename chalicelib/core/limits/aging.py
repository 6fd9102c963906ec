"""Aging: work that waits long in the queue of a pool or a policy becomes more urgent, so that no priority starves."""

from __future__ import annotations

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from chalicelib.core.documents import Described, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, SECOND, Millis, duration

LATER = ("aging", "margin")
LEAST, MOST = SECOND, 30 * DAY


class Aging(Described):
    """``aging``: each such span of waiting raises a job by one step of priority. Without it, the higher priority always
    goes first."""

    aging: Duration | None = None

    @model_serializer(mode="wrap")
    def _without_unused(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the fields of later releases that are not used. So stored documents stay as they are, and an earlier
        release reads them."""
        document: dict[str, Any] = plain(self)
        return {name: value for name, value in document.items() if value is not None or name not in LATER}

    @property
    def aging_span(self) -> Millis:
        """The span in ms; 0 without aging. Raises ``invalid`` if it is too short or too long."""
        span = duration(self.aging) if self.aging is not None else 0
        if self.aging is not None and not LEAST <= span <= MOST:
            raise invalid("aging", "a span from 1s to 30d", self.aging, "such as 30m")
        return span
