"""The leaf ``absent``: what another leaf waits for did not arrive in time, or the partition of a period (T18, T29)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, time
from typing import Any, ClassVar, Literal, Self

from pydantic import PrivateAttr, ValidationInfo, model_validator

from chalicelib.core import instants
from chalicelib.core.documents import Duration, Sparse, check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, Instant, Millis, duration, format_duration
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.time import windows
from chalicelib.core.time.period_names import Names as PeriodNames
from chalicelib.core.time.periods import Period
from chalicelib.core.time.windows import Day
from chalicelib.core.triggers import parts
from chalicelib.core.triggers.gathering import NestedLeaf
from chalicelib.core.triggers.leaf import Moved, TimedLeaf, since
from chalicelib.core.triggers.partition import PartitionTrigger

# The words for a period at a deadline, by the unit of the periods: the one of that date, and the one before it.
_WORDS = {"day": ("today", "yesterday"), "longer": ("current", "last")}


class AbsentTrigger(NestedLeaf, TimedLeaf, Sparse):
    """No event of ``of`` arrived ``within`` a span, or from one daily ``deadline`` (HH:MM) to the next (T18).

    With ``period``, the partition of this period has not come by the deadline: of a dataset of days ``today`` or
    ``yesterday``, of longer periods the ``current`` or the ``last`` one. With ``after``, the partition of a period has
    not come so long after the end of the period (T29)."""

    omitted: ClassVar[Collection[str]] = ("period", "after")

    type: Literal["absent"]
    within: Duration | None = None
    deadline: str | None = None
    period: Literal["today", "yesterday", "current", "last"] | None = None
    after: Duration | None = None
    zone: str | None = None
    days: tuple[Day, ...] = ()

    _names: PeriodNames | None = PrivateAttr(None)  # of the periods of the dataset
    _are_read: bool = PrivateAttr(default=False)

    revocable: ClassVar[bool] = True  # a late feed ends the absence
    moved_by: ClassVar[Moved] = "last_arrival"

    @model_validator(mode="after")
    def _one_way(self, info: ValidationInfo) -> AbsentTrigger:
        ways = [name for name in ("within", "deadline", "after") if getattr(self, name) is not None]
        if len(ways) != 1:
            expected = "either within (a span), deadline (a time of day) or after (a span after a period)"
            raise invalid("within", expected, " and ".join(ways) or "none")
        check_zone(self.zone_name, info)
        if self.deadline is not None:
            windows.parse_clock(self.deadline, "deadline")
        elif self.days:
            raise invalid("days", "days only with a deadline", list(self.days))
        elif self.period is not None:
            hint = "remove period: after is about each period" if self.after else "write a deadline, such as 06:00"
            raise invalid("period", "period only with a deadline", self.period, hint)
        if self.correlates and not (isinstance(self.of, PartitionTrigger) and self.of.type == "partition"):
            hint = "write of: {type: partition, dataset: ...}, or within: ... for other events"
            raise invalid("of", "a partition, because only partitions have periods", self.of.describe(), hint)
        return self

    def __eq__(self, other: object) -> bool:
        """Whether two triggers are one document, also if the periods of one have been read."""
        return isinstance(other, AbsentTrigger) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.within, self.deadline, self.period, self.after, self.zone))

    @property
    def nothing(self) -> str:
        return "nothing has been missing"

    @property
    def correlates(self) -> bool:
        return self.period is not None or self.after is not None

    @property
    def zone_name(self) -> str:
        return self.zone or "UTC"

    @property
    def wall_zone(self) -> str | None:
        return self.zone_name if self.zone_name != "UTC" and self.deadline is not None else None

    @property
    def span(self) -> Millis | None:
        return duration(self.within) if self.within is not None else None

    def periodic(self) -> tuple[str, ...]:
        return tuple(dataset.name for dataset in self.of.datasets()) if self.correlates else ()

    def learn_periods(self, dataset: str, names: PeriodNames | None) -> None:
        if dataset in self.periodic():
            self._names, self._are_read = names, True

    def opposes(self, event_kind: str) -> bool:
        return event_kind != self.type

    def ends_by(self, event: Event, progress: Progress | None) -> bool:
        """Of a period, only the partition of this period ends the absence. An absence of several periods stays."""
        if not self.correlates:
            return True
        if progress is None or progress.count > 1:
            return False
        values = self._values(progress.last_at)
        return bool(values) and values.items() <= (event.partition or {}).items()

    def next_due(self, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
        return super().next_due(anchor, after, until) if not self.correlates or self._known() is not None else None

    def due_after(self, instant: Instant) -> Instant:
        if self.correlates:
            return self._period_due_after(instant)
        return self._clock_after(instant) if self.deadline is not None else super().due_after(instant)

    def period_due_at(self, due: Instant) -> Period | None:
        names = self._known() if self.correlates else None
        if names is None:
            return None
        if self.after is not None:
            return names.calendar.at(due - duration(self.after) - 1)
        shown = datetime.fromtimestamp(due // 1000, instants.zone(self.zone_name)).date()
        named = names.calendar.named(names.calendar.floor(datetime.combine(shown, time())))
        return named if named is None or self.period in ("today", "current") else names.calendar.previous(named)

    def postponed_to(self, since: Instant, happened: Instant | None, due: Instant) -> Instant | None:
        if self.correlates:
            return None
        if self.span is not None:
            return super().postponed_to(since, happened, due)
        arrived = happened is not None and self._previous(due) < happened and since <= happened
        return self.due_after(due) if arrived else None

    def told(self, due: Instant) -> dict[str, Any] | None:
        of = {"of": self.of.noun()}
        if self.correlates:
            return of
        return {**of, "since": due - self.span if self.span is not None else self._previous(due), "until": due}

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        found: dict[str, Any] = {} if event.dataset is None else {"dataset": event.dataset}
        found |= {} if event.partition is None else {"partition": dict(event.partition)}
        return {**found, **(event.payload or {})}

    @classmethod
    def lacks(cls, event: Event) -> str:
        told, own = event.payload or {}, event.partition or {}
        texts = ["/".join(value for key, value in each.items() if key not in own) for each in told.get("missing", ())]
        return parts.listed(texts[: parts.NAMED], told.get("missing_count", 0))

    def missing(self, progress: Progress | None) -> str:
        return f"no {self.of.noun()} to come {self._limit()}"

    def arrived(self, progress: Progress) -> str:
        values = self._values(progress.last_at) if self.correlates and self._are_read else {}
        which = "".join(f" {key}={value}" for key, value in values.items())
        if progress.lacks:
            of = "".join(dataset.name for dataset in self.of.datasets())
            return f"{progress.lacks} of {of}{which} had not come {self._limit()} {since(progress)}"
        return f"no {self.of.noun()}{which} had come {self._limit()} {since(progress)}"

    def check(self) -> None:
        if not self.of.wants_one:
            raise invalid("trigger", "an absent leaf of single events", self.of.describe())
        names = self._known() if self.period is not None else None
        if names is None:
            return
        unit = names.calendar.unit
        if unit in ("minute", "hour"):
            hint = "write after, a span after the end of each period, such as after: 20m"
            raise invalid("trigger.deadline", "a dataset of days or longer periods", f"periods of an {unit}", hint)
        words = _WORDS["day" if unit == "day" else "longer"]
        if self.period not in words:
            raise invalid(
                "trigger.period", f"{' or '.join(words)} for a dataset with a period of a {unit}", self.period
            )

    def resolve(self, names: Names) -> Self:
        return self.model_copy(update={"of": self.of.resolve(names), "zone": self.zone or names.zone})

    def _known(self) -> PeriodNames | None:
        if not self._are_read:
            raise RuntimeError(f"expected the periods of {self.of.noun()}, got none: read them first")
        return self._names

    def _values(self, due: Instant) -> dict[str, str]:
        """The values of the partition that is due at an instant; empty if there is no such partition."""
        period, names = self.period_due_at(due), self._names
        return names.write(period) if period is not None and names is not None else {}

    def _period_due_after(self, instant: Instant) -> Instant:
        """The first instant after ``instant`` at which a period is due, each period once."""
        names = self._known()
        if names is None:
            raise RuntimeError(f"expected periods of {self.of.noun()}, got none")
        if self.after is not None:
            after = duration(self.after)
            return names.calendar.at(instant - after).end + after
        due = self._clock_after(instant)
        before = self.period_due_at(self._previous(due))
        while (found := self.period_due_at(due)) is None or (before is not None and found.start <= before.start):
            due = self._clock_after(due)
        return due

    def _clock_after(self, instant: Instant) -> Instant:
        return windows.next_clock(self.deadline or "", self.zone_name, self.days, instant)

    def _previous(self, due: Instant) -> Instant:
        """The deadline before ``due``. An event that arrived between the two is the expected one."""
        previous = due - 8 * DAY  # ``days`` may name a single day of the week
        while (following := self._clock_after(previous)) < due:
            previous = following
        return previous

    def _limit(self) -> str:
        if self.span is not None:
            return f"within {format_duration(self.span)}"
        if self.after is not None:
            return f"within {format_duration(duration(self.after))} after the end of its period"
        on = f" on {', '.join(self.days)}" if self.days else ""
        of = f"for {_FOR[self.period]} " if self.period is not None else ""
        return f"{of}by {self.deadline} in {self.zone_name}{on}"


_FOR = {"today": "today", "yesterday": "yesterday", "current": "the current period", "last": "the last period"}
