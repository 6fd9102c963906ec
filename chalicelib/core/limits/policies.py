"""Throttling policies: how many events may start in any sliding interval, across all schedules that share one (E3).

A policy is a pace. A permit is an appointment, and appointments are at least ``spacing`` ms apart. A start begins at
its appointment or at most ``tolerance`` ms later. A later start needs a new permit. So between a start and the one
``max_events`` after it lie at least ``max_events * spacing - tolerance >= interval`` ms: no sliding interval holds more
than ``max_events`` starts. Jobs acquire permits ahead of their instant, so that preparing a start loses no permit.

A start is the begin of a call, by the clocks of Sluice. Its receiver sees the call a latency later. With ``margin`` the
bound holds for the receiver, too, if no two latencies differ by more than that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field, model_validator

from chalicelib.core.documents import Described, Duration, Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, SECOND, Millis, duration, format_duration
from chalicelib.core.limits.names import policy_limit
from chalicelib.core.limits.permits import Pace

MAX_TOLERANCE: Millis = 2 * SECOND
TOLERANCE_SHARE = 50  # 2 % of the interval
# Long enough for one read of the schedule state and the wake-up of a sleeping process. Of a policy of 1 start in 1 s it
# leaves 95 % of the allowed rate.
MIN_TOLERANCE: Millis = 40
# The messages of one invocation are sent in calls of ten, 20 ms apart.
MIN_SPACING: Millis = 2
# The rows of a queue share a partition key, which takes 1,000 write units a second. A job needs four of them, to join
# and to leave, and the row that counts the waiters takes part in each of these transactions. So the queue of a policy
# of more starts a second is divided.
PART_A_SECOND = 100
LEAST, MOST = SECOND, 30 * DAY  # of an aging


class Aging(Described, Sparse):
    """A pool or a policy, in whose queue work that waits long becomes more urgent, so that no priority starves.

    ``aging``: each such span of waiting raises a job by one step of priority. Without it, the higher priority always
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


class Policy(Aging):
    """At most ``max_events`` events start in any ``interval``, across all schedules that name the policy. ``margin``
    lengthens the interval by what the latency of calls to the target may vary."""

    omitted: ClassVar[Collection[str]] = ("aging", "margin")

    max_events: int = Field(ge=1, le=1_000_000)
    interval: Duration = "1m"
    margin: Duration | None = None

    @model_validator(mode="after")
    def _fits_a_limit(self) -> Policy:
        _ = self.aging_span
        most = self.span // MIN_SPACING
        if self.span < SECOND:
            raise invalid("interval", "an interval of at least 1s", self.interval)
        if self.max_events > most:
            hint = "omit the policy to start more than that"
            expected = f"at most {most} events in {self.interval}, which is 500 a second"
            raise invalid("max_events", expected, self.max_events, hint)
        if self._margin > self.span:
            raise invalid("margin", f"at most the interval, {self.interval}", self.margin, "such as 1s")
        return self

    @property
    def span(self) -> Millis:
        return duration(self.interval)

    @property
    def tolerance(self) -> Millis:
        """How long after its appointment a start may begin."""
        return min(MAX_TOLERANCE, max(MIN_TOLERANCE, self.span // TOLERANCE_SHARE))

    @property
    def spacing(self) -> Millis:
        """The ms between two permits, rounded up: rounded down, the interval would hold one start too many."""
        return -(-self.cycle // self.max_events)

    @property
    def cycle(self) -> Millis:
        """The ms that ``max_events`` permits take together."""
        return self.span + self.tolerance + self._margin

    @property
    def _margin(self) -> Millis:
        return duration(self.margin) if self.margin is not None else 0

    @property
    def queue_parts(self) -> int:
        """Into how many parts the queue is divided; 0 if it is not."""
        needed = -(-self.max_events * SECOND // (self.span * PART_A_SECOND))
        return needed if needed > 1 else 0

    def pace(self, name: str) -> Pace:
        """The permit request of a job under this policy. ``name`` is the policy's full name."""
        rule = f"at most {self.max_events} starts in any {format_duration(self.span)}"
        cycle = (self.max_events, self.cycle)
        return Pace(policy_limit(name), self.spacing, 1, self.tolerance, rule, cycle, self.queue_parts, self.aging_span)


@dataclass(frozen=True, slots=True)
class StartRate:
    """The defaults for workflows on EMR Serverless that name no application or role, and the limits of EMR.

    A start is allowed every ``spacing`` ms, ``burst`` of them at once (E8). ``run_limits`` has the maximum of
    concurrent runs of each application that has one."""

    application_id: str
    spacing: Millis
    burst: int
    role_arn: str = ""
    run_limits: Mapping[str, int] = field(default_factory=dict)
