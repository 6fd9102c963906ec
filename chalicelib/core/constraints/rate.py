"""rate: a maximum of starts in a span (C5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.instants import DAY, HOUR, Millis, duration
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import RateWindow
from chalicelib.core.states import WaitReason
from chalicelib.core.text import count_of

MAX_RATE = 500  # starts that a rate window remembers: every start writes its whole row
_NAMED_SPANS: dict[str, Millis] = {"hour": HOUR, "day": DAY}


class Rate(Constraint):
    """At most ``max`` runs of the workflow are claimed in any ``per``: hour, day, or a duration (C5)."""

    queues: ClassVar[Literal["no", "if_waiting", "always"]] = "if_waiting"
    wait_reason: ClassVar[WaitReason] = "rate"

    type: Literal["rate"]
    max: int = Field(ge=1, le=MAX_RATE)
    per: str
    on_unmet: OnUnmet = "wait"

    @field_validator("per")
    @classmethod
    def _is_a_span(cls, per: str) -> str:
        if per not in _NAMED_SPANS:
            duration(per, "")
        return per

    @property
    def span(self) -> Millis:
        return _NAMED_SPANS.get(self.per) or duration(self.per)

    def describe(self) -> str:
        return f"at most {count_of(self.max, 'run')} per {self.per}"

    def evaluate(self, s: Situation) -> Condition:
        window = self._window(s.workflow)
        held = window.limit_name in s.job.held
        return self.met_from(s.now if held else permits.frees_at(window, s.limit_state(window.limit_name)), s.now)

    def permits(self, workflow: str, namespace: str) -> Iterable[RateWindow]:
        return (self._window(workflow),)

    def rates(self) -> tuple[str, ...]:
        return (names.rate_rule(self.max, self.span),)

    def _window(self, workflow: str) -> RateWindow:
        return permits.rate_window_of(workflow, names.rate_rule(self.max, self.span), binding=True)
