"""The policy of deliveries: how often one is tried, how far apart, and when it is given up (E6).

A delivery that is refused or not answered is tried again. First come a few quick tries, ``delay`` apart: they outlast a
hiccup. Then those of the ``backoff``, if one is configured: they outlast an outage. After the last one the event goes
to the dead letters. An answer that says *never* gives it up at once, for another try would be told the same.

A target that says *not now* is there and busy, and it may well be us who keep it busy: such an answer is a try like any
other, but it is given up only after `PATIENCE` tries, which come ever more slowly. So a burst that meets the limits of
an account is delivered late, and not lost to the dead letters three seconds after it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, Instant, Millis, duration, format_duration
from chalicelib.core.targets import backoff as target_backoff
from chalicelib.core.targets.answers import Never, NoAnswer, NotNow

# With 1, 2, 4, ... seconds between them and at most 5 minutes, these span about 20 minutes.
PATIENCE = 12
MAX_PAUSE: Millis = DAY
# A target may ask for a later try (Retry-After), not for one that is never made.
MAX_ASKED_PAUSE: Millis = 6 * HOUR


class Backoff(Document):
    """The tries after the first, quick ones: ``tries`` more, ``delay`` apart, doubling up to ``most`` unless fixed."""

    tries: int = Field(default=5, ge=1, le=30)
    growth: Literal["exponential", "fixed"] = "exponential"
    delay: Duration = "10s"
    most: Duration = "1h"

    @model_validator(mode="after")
    def _is_bounded(self) -> Backoff:
        if not 1 <= duration(self.delay) <= MAX_PAUSE:
            raise invalid("delay", "a delay of at most 1d", self.delay)
        if not duration(self.delay) <= duration(self.most) <= MAX_PAUSE:
            raise invalid("most", f"a longest delay from {self.delay}, the first one, to 1d", self.most)
        return self

    def pause(self, number: int, salt: str) -> Millis:
        """Before its n-th try, from 1 on. Between half and all of the span, computed from the id: events that were
        refused together come back apart."""
        doubled = target_backoff.doubled(duration(self.delay), number) if self.growth == "exponential" else 0
        span = min(max(doubled, duration(self.delay)), duration(self.most))
        return target_backoff.scattered(span, number, salt)


class Delivery(Document):
    """``tries`` quick ones, ``delay`` apart, then those of the ``backoff``."""

    tries: int = Field(default=3, ge=1, le=10)
    delay: Duration = "1s"
    backoff: Backoff | None = None

    @model_validator(mode="after")
    def _is_quick(self) -> Delivery:
        if not 1 <= duration(self.delay) <= HOUR:
            raise invalid("delay", "a delay of at most 1h", self.delay, "what is to wait longer belongs to the backoff")
        return self

    @property
    def most(self) -> int:
        return self.tries + (self.backoff.tries if self.backoff else 0)


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again at this instant."""

    at: Instant
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further try: to the dead letters, with this reason."""

    why: str


def next_try(
    tries: int, answer: NotNow | NoAnswer | Never, policy: Delivery, salt: str, now: Instant
) -> Retry | GiveUp:
    """What follows the n-th try (from 1 on), given its answer. ``salt`` is the id of the event."""
    if isinstance(answer, Never):
        return GiveUp(answer.why)
    most = max(policy.most, PATIENCE) if isinstance(answer, NotNow) else policy.most
    if tries >= most:
        return GiveUp(f"not delivered in {tries} {'try' if tries == 1 else 'tries'}; the last answer: {answer.why}")
    pause = max(_pause(tries, answer, policy, salt), min(answer.retry_after or 0, MAX_ASKED_PAUSE))
    why = f"try {tries} of {most} was not taken, the next one in {format_duration(pause)}: {answer.why}"
    return Retry(now + pause, why)


def _pause(tries: int, answer: NotNow | NoAnswer, policy: Delivery, salt: str) -> Millis:
    if tries < policy.tries and not isinstance(answer, NotNow):
        return duration(policy.delay)
    if policy.backoff is not None and policy.tries <= tries < policy.most:
        return policy.backoff.pause(tries - policy.tries + 1, salt)
    return max(target_backoff.backoff(tries - 1, salt), duration(policy.delay))
