"""since_last_run: a minimum span after the start of the last run (C4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from chalicelib.core.constraints.constraint import Condition, Constraint, OnUnmet, Situation
from chalicelib.core.documents import Duration
from chalicelib.core.instants import Millis, duration, format_duration
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import Slots
from chalicelib.core.states import WaitReason
from chalicelib.core.triggers.program_status import status_key


class SinceLastRun(Constraint):
    """``at_least`` since the last successful run of the workflow started; a live run counts as successful (C4)."""

    wait_reason: ClassVar[WaitReason] = "time"
    needs_lifecycle: ClassVar[bool] = True

    type: Literal["since_last_run"]
    at_least: Duration
    of: Literal["success", "any"] = "success"
    on_unmet: OnUnmet = "abort"

    @property
    def span(self) -> Millis:
        return duration(self.at_least)

    def describe(self) -> str:
        which = "" if self.of == "any" else "successful "
        return f"{format_duration(self.span)} since the last {which}run started"

    def evaluate(self, s: Situation) -> Condition:
        ask = self._gap(s.workflow)
        return self.met_from(permits.gap_ends(ask, s.limit_state(ask.limit_name)) or 0, s.now)

    def permits(self, workflow: str, namespace: str) -> Iterable[Slots]:
        return (self._gap(workflow),)

    def wake_keys(self, workflow: str) -> tuple[str, ...]:
        """The failure of a live run, which then delays the next run no longer (C8)."""
        statuses = ("FAILED", "KILLED") if self.on_unmet == "wait" else ()
        return tuple(status_key(workflow, status) for status in statuses)

    def _gap(self, workflow: str) -> Slots:
        return Slots(names.workflow_limit(workflow), None, self.span, self.of == "any")
