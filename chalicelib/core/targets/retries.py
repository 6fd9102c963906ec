"""How often Sluice tries again, and how long it pauses before: attempts of runs (W1), and deliveries (E6).

Sluice repeats a delivery that is refused or not answered. A few quick tries, ``delay`` apart, outlast a short failure.
The tries of the ``backoff``, if one is configured, outlast an outage. After the last try the event becomes a dead
letter. After the answer `Never` it becomes one at once, because another try would get the same answer.

A target that answers `NotNow` is available but busy, perhaps because of Sluice. Such an answer counts as a try, but
Sluice gives up only after `PATIENCE` tries, with growing pauses. So a burst that exceeds the limits of an account is
delivered late, and does not become dead letters three seconds after it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from chalicelib.core import ids
from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, Millis, duration, format_duration
from chalicelib.core.states import FailureKind
from chalicelib.core.targets.answers import Never, NoAnswer, NotNow

# With 1, 2, 4, ... seconds between them and at most 5 minutes, these span about 20 minutes.
PATIENCE = 12
MAX_PAUSE: Millis = DAY
# The longest pause that a target may request by Retry-After; a longer one is cut to it.
MAX_RETRY_AFTER: Millis = 6 * HOUR


def backoff(tries: int, salt: str) -> Millis:
    """The pause in ms after ``tries`` calls: exponential, 1 s to 5 min, then jittered by `scattered` with ``salt``."""
    return scattered(min(doubled(SECOND, tries + 1), 5 * MINUTE), tries, salt)


def doubled(first: Millis, number: int) -> Millis:
    """The pause in ms before the n-th try, from 1 on: ``first``, then twice as long each time. The caller bounds it."""
    return first << min(max(number - 1, 0), 40)


def scattered(span: Millis, number: int, salt: str) -> Millis:
    """A pause between half of ``span`` and all of it, computed from an id (``salt``) and a number.

    Calls that a target refused at the same instant are so repeated at different instants."""
    jitter = int(ids.digest(salt, number, length=4), 16) / 0xFFFF
    return round(span * (0.5 + jitter / 2))


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
            span = min(doubled(span, attempt), duration(self.max_delay))
        return scattered(span, attempt, run_id) if self.jitter else span


class Backoff(Document):
    """The tries after the quick ones: ``tries`` more, ``delay`` apart. Unless ``growth`` is fixed, the delay doubles up
    to ``max_delay``."""

    tries: int = Field(default=5, ge=1, le=30)
    growth: Literal["exponential", "fixed"] = "exponential"
    delay: Duration = "10s"
    max_delay: Duration = "1h"

    @model_validator(mode="after")
    def _is_bounded(self) -> Backoff:
        if not 1 <= duration(self.delay) <= MAX_PAUSE:
            raise invalid("delay", "a delay of at most 1d", self.delay)
        if not duration(self.delay) <= duration(self.max_delay) <= MAX_PAUSE:
            raise invalid("max_delay", f"a longest delay from {self.delay}, the first one, to 1d", self.max_delay)
        return self

    def pause(self, number: int, salt: str) -> Millis:
        """The pause in ms before the n-th try of the backoff (``number``, from 1 on).

        The id ``salt`` jitters it, so that events that were refused together are not tried together again."""
        grown = doubled(duration(self.delay), number) if self.growth == "exponential" else 0
        span = min(max(grown, duration(self.delay)), duration(self.max_delay))
        return scattered(span, number, salt)


class Delivery(Document):
    """``tries`` quick tries, ``delay`` apart, then the tries of the ``backoff``.

    ``records``: with ``fire``, the events of a large fire that were sent share a record; with ``each``, every event has
    its own, with the instant of its send and the target's id of its message. That costs over twenty times as much.
    """

    tries: int = Field(default=3, ge=1, le=10)
    delay: Duration = "1s"
    backoff: Backoff | None = None
    # Left out if it is the default: older code refuses a document with a field that it does not know.
    records: Literal["fire", "each"] = Field(default="fire", exclude_if=lambda records: records == "fire")

    @model_validator(mode="after")
    def _is_quick(self) -> Delivery:
        if not 1 <= duration(self.delay) <= HOUR:
            raise invalid("delay", "a delay of at most 1h", self.delay, "for longer delays, use the backoff")
        return self

    @property
    def max_tries(self) -> int:
        """The number of tries in all."""
        return self.tries + (self.backoff.tries if self.backoff else 0)


@dataclass(frozen=True, slots=True)
class Retry:
    """Try the delivery again at this instant."""

    at: Instant
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Try no further: the event becomes a dead letter with this reason."""

    why: str


def next_try(
    tries: int, answer: NotNow | NoAnswer | Never, policy: Delivery, salt: str, now: Instant
) -> Retry | GiveUp:
    """What follows the n-th try (``tries``, from 1 on), given its answer. ``salt`` is the id of the event."""
    if isinstance(answer, Never):
        return GiveUp(answer.why)
    allowed = max(policy.max_tries, PATIENCE) if isinstance(answer, NotNow) else policy.max_tries
    if tries >= allowed:
        return GiveUp(f"not delivered in {tries} {'try' if tries == 1 else 'tries'}; last answer: {answer.why}")
    pause = max(_pause(tries, answer, policy, salt), min(answer.retry_after or 0, MAX_RETRY_AFTER))
    why = f"try {tries} of {allowed} failed, next try in {format_duration(pause)}: {answer.why}"
    return Retry(now + pause, why)


def _pause(tries: int, answer: NotNow | NoAnswer, policy: Delivery, salt: str) -> Millis:
    if tries < policy.tries and not isinstance(answer, NotNow):
        return duration(policy.delay)
    if policy.backoff is not None and policy.tries <= tries < policy.max_tries:
        return policy.backoff.pause(tries - policy.tries + 1, salt)
    return max(backoff(tries - 1, salt), duration(policy.delay))
