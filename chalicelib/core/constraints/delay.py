"""delay: a job waits for a time after its creation, or after its trigger was met (C2)."""

from __future__ import annotations

from typing import ClassVar, Literal

from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.documents import Duration
from chalicelib.core.instants import Millis, duration, format_duration
from chalicelib.core.states import WaitReason


class Delay(Constraint):
    """At least ``after`` since the job was created, or since its trigger was met (C2)."""

    wait_reason: ClassVar[WaitReason] = "time"

    type: Literal["delay"]
    after: Duration
    since: Literal["created", "met"] = "created"
    on_unmet: OnUnmet = "wait"

    @property
    def span(self) -> Millis:
        return duration(self.after)

    def describe(self) -> str:
        event = "its trigger was met" if self.since == "met" else "the job was created"
        return f"{format_duration(self.span)} after {event}"

    def evaluate(self, s: Situation) -> Condition:
        began = s.job.created_at if self.since == "created" else s.met_at
        return self.met_from(began + self.span, s.now)
