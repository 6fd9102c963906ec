"""Retries: which failures are followed by another attempt, how often, and after how long (W1)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.states import Outcome
from chalicelib.core.targets import backoff as target_backoff


class Retries(Document):
    """How often a run is attempted in all, and how long after a failure the next attempt is due.

    ``backoff`` exponential doubles ``delay`` with each attempt, to ``max_delay`` at most; with ``jitter`` the next one
    comes after between half of that and all of it. ``on`` names the outcomes that are tried again. What can never
    start, and what was cancelled, is not.
    """

    attempts: int = Field(default=1, ge=1, le=20)
    delay: Duration = "30s"
    backoff: Literal["fixed", "exponential"] = "fixed"
    max_delay: Duration = "1h"
    jitter: bool = False
    on: tuple[Outcome, ...] = Field(default=("failed", "timed_out", "lost"), min_length=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Retries:
        if len(set(self.on)) < len(self.on):
            raise invalid("on", "distinct outcomes", list(self.on))
        if self.backoff == "exponential" and duration(self.max_delay) < duration(self.delay):
            raise invalid("max_delay", f"at least the first delay, {self.delay}", self.max_delay)
        return self

    def delay_after(self, attempt: int, run_id: str) -> Millis:
        """How long after the end of an attempt the next is due: computed, so that whoever repeats it finds the same."""
        span = duration(self.delay)
        if self.backoff == "exponential":
            span = min(target_backoff.doubled(span, attempt), duration(self.max_delay))
        return target_backoff.scattered(span, attempt, run_id) if self.jitter else span
