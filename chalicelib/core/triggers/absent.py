"""The leaf ``absent``: no event for which another leaf waits arrived in time (T18)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import ValidationInfo, model_validator

from chalicelib.core.documents import Duration, check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, Instant, Millis, duration, format_duration
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Progress
from chalicelib.core.time import windows
from chalicelib.core.time.windows import Day
from chalicelib.core.triggers.gathering import NestedLeaf
from chalicelib.core.triggers.leaf import Moved, TimedLeaf, since


class AbsentTrigger(NestedLeaf, TimedLeaf):
    """No event of ``of`` arrived ``within`` a span, or from one daily ``deadline`` (HH:MM) to the next (T18)."""

    type: Literal["absent"]
    within: Duration | None = None
    deadline: str | None = None
    zone: str | None = None
    days: tuple[Day, ...] = ()

    revocable: ClassVar[bool] = True  # a late feed ends the absence
    moved_by: ClassVar[Moved] = "last_arrival"

    @model_validator(mode="after")
    def _one_of_both(self, info: ValidationInfo) -> AbsentTrigger:
        if (self.within is None) == (self.deadline is None):
            raise invalid("within", "either within (a span) or deadline (a time of day)", "both or neither")
        check_zone(self.zone_name, info)
        if self.deadline is not None:
            windows.parse_clock(self.deadline, "deadline")
        elif self.days:
            raise invalid("days", "days only with a deadline", list(self.days))
        return self

    @property
    def zone_name(self) -> str:
        return self.zone or "UTC"

    @property
    def wall_zone(self) -> str | None:
        return self.zone_name if self.zone_name != "UTC" and self.deadline is not None else None

    @property
    def span(self) -> Millis | None:
        return duration(self.within) if self.within is not None else None

    def opposes(self, event_kind: str) -> bool:
        return event_kind != self.type

    def due_after(self, instant: Instant) -> Instant:
        if self.deadline is not None:
            return windows.next_clock(self.deadline, self.zone_name, self.days, instant)
        return super().due_after(instant)

    def postponed_to(self, since: Instant, happened: Instant | None, due: Instant) -> Instant | None:
        if self.span is not None:
            return super().postponed_to(since, happened, due)
        arrived = happened is not None and self._previous(due) < happened and since <= happened
        return self.due_after(due) if arrived else None

    def missing(self, progress: Progress | None) -> str:
        return f"no {self.of.noun()} to come {self._limit()}"

    def arrived(self, progress: Progress) -> str:
        return f"no {self.of.noun()} had come {self._limit()} {since(progress)}"

    def check(self) -> None:
        if not self.of.wants_one:
            raise invalid("trigger", "an absent leaf of single events", self.of.describe())

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"of": self.of.resolve(names), "zone": self.zone or names.zone})

    def _previous(self, due: Instant) -> Instant:
        """The deadline before ``due``. An event that arrived between the two is the expected one."""
        previous = due - 8 * DAY  # ``days`` may name a single day of the week
        while (following := self.due_after(previous)) < due:
            previous = following
        return previous

    def _limit(self) -> str:
        if self.span is not None:
            return f"within {format_duration(self.span)}"
        on = f" on {', '.join(self.days)}" if self.days else ""
        return f"by {self.deadline} in {self.zone_name}{on}"
