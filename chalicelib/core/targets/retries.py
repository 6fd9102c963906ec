"""Retries: after which failures another attempt follows, how many, and after which delay (W1)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.states import FailureKind
from chalicelib.core.targets import backoff as target_backoff


class Retries(Document):
    """How many attempts a run has in all, and how long after a failure the next attempt is due.

    With ``backoff`` exponential, ``delay`` doubles with each attempt, up to ``max_delay``. With ``jitter``, the delay
    is between half of that and all of it. Sluice retries the outcomes in ``on``. It never retries a run that cannot
    start or was cancelled.
    """

    attempts: int = Field(default=1, ge=1, le=20)
    delay: Duration = "30s"
    backoff: Literal["fixed", "exponential"] = "fixed"
    max_delay: Duration = "1h"
    jitter: bool = False
    on: tuple[FailureKind, ...] = Field(default=("failed", "timed_out", "lost"), min_length=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Retries:
        if len(set(self.on)) < len(self.on):
            raise invalid("on", "distinct outcomes", list(self.on))
        if self.backoff == "exponential" and duration(self.max_delay) < duration(self.delay):
            raise invalid("max_delay", f"at least the first delay, {self.delay}", self.max_delay)
        return self

    def delay_after(self, attempt: int, run_id: str) -> Millis:
        """The delay in ms from the end of an attempt to the next. It follows from the arguments alone, so each
        computation gives the same."""
        span = duration(self.delay)
        if self.backoff == "exponential":
            span = min(target_backoff.doubled(span, attempt), duration(self.max_delay))
        return target_backoff.scattered(span, attempt, run_id) if self.jitter else span
