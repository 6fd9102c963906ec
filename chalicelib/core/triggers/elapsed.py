"""The leaf ``elapsed``: a span since the last start of the schedule's workflow (T13)."""

from __future__ import annotations

from typing import ClassVar, Literal

from chalicelib.core.documents import Duration
from chalicelib.core.instants import Millis, duration, format_duration
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.leaf import Moved, TimedLeaf, since


class ElapsedTrigger(TimedLeaf):
    """``after`` has passed since the workflow's last run started; since enabling, before the first (T13)."""

    type: Literal["elapsed"]
    after: Duration

    counts_starts: ClassVar[bool] = True
    moved_by: ClassVar[Moved] = "last_start"

    @property
    def span(self) -> Millis:
        return duration(self.after)

    @property
    def nothing(self) -> str:
        return "its span has not passed"

    def describe(self) -> str:
        return f"{format_duration(self.span)} passing since the last start"

    def missing(self, progress: Progress | None) -> str:
        return f"{format_duration(self.span)} to pass since the last start"

    def arrived(self, progress: Progress) -> str:
        return f"{format_duration(self.span)} had passed since the last start {since(progress)}"
