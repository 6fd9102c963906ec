"""Throttling policies: how many events may start in any sliding interval, across all schedules that share one (E3).

A policy is a pace line. A permit is an appointment: appointments are at least ``spacing`` apart, and a start begins at
its appointment or at most ``tolerance`` later. One that would begin later takes a new permit. So between a start and
the one ``max_events`` after it lie at least ``max_events * spacing - tolerance >= interval`` ms: no sliding interval
holds more than ``max_events`` starts. Permits are taken before their instant, so that preparing a start costs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field, model_validator

from chalicelib.core.documents import Described, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import SECOND, Millis, duration, format_duration
from chalicelib.core.limits.names import policy_limit
from chalicelib.core.limits.pace import Pace

MAX_TOLERANCE: Millis = 2 * SECOND


TOLERANCE_SHARE = 50  # 2 % of the interval


# One read of the gate and the waking of a sleeping process fit in; of 1 in 1 s it leaves 95 % of what is allowed.
MIN_TOLERANCE: Millis = 50


MIN_SPACING: Millis = 10  # a line is one row, and hands out about a hundred permits a second


class Policy(Described):
    """At most ``max_events`` events start in any ``interval``, whichever schedules they are of."""

    max_events: int = Field(ge=1, le=1_000_000)
    interval: Duration = "1m"

    @model_validator(mode="after")
    def _fits_a_line(self) -> Policy:
        most = self.span // MIN_SPACING
        if self.span < SECOND:
            raise invalid("interval", "an interval of at least 1s", self.interval)
        if self.max_events > most:
            hint = "leave the policy out for more: it would not be the limit"
            expected = f"at most {most} events in {self.interval}, which is 100 a second"
            raise invalid("max_events", expected, self.max_events, hint)
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
        """How far apart permits are: rounded up, for the other way a start too many would fit."""
        return -(-(self.span + self.tolerance) // self.max_events)

    def pace(self, name: str) -> Pace:
        """What a job under this policy asks of its line. ``name`` is the policy's full name."""
        rule = f"at most {self.max_events} starts in any {format_duration(self.span)}"
        return Pace(policy_limit(name), self.spacing, 1, self.tolerance, rule)


@dataclass(frozen=True, slots=True)
class StartRate:
    """The stack's EMR Serverless application, what it allows (a start every ``spacing`` ms, ``burst`` at once, E8), and
    the role of its jobs: what a workflow gets that names none. ``run_limits``: how many runs of an application may live
    at a time, for each application that has a limit."""

    application_id: str
    spacing: Millis
    burst: int
    role_arn: str = ""
    run_limits: Mapping[str, int] = field(default_factory=dict)
