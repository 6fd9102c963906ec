"""The leaf ``time``: fires at the instants of an expression, or at one instant (T1-T3, T6).

Relative forms (``10s``, ``PT5M``) count from the request that puts the schedule, and are stored as the instants that
result. `core/triggers/occurrences.py` computes when a leaf is due.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from chalicelib.core import zones
from chalicelib.core.documents import Duration, Reference, check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, Millis, duration, iso, parse_when
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Progress
from chalicelib.core.time import days, exclusions, expressions
from chalicelib.core.time.cron import no_holiday
from chalicelib.core.time.days import Days, Excluded
from chalicelib.core.time.wall import MAX_LEAPS, Daylight
from chalicelib.core.triggers import occurrences
from chalicelib.core.triggers.leaf import TimedLeaf, since
from chalicelib.core.triggers.occurrences import Recurrence

MAX_REPEATS = 1_000_000_000


def _check_when(text: str) -> str:
    parse_when(text, 0, "")
    return text


When = Annotated[str, AfterValidator(_check_when)]


class TimeTrigger(TimedLeaf):
    """Fires at the instants of ``expression``, in ``zone`` (None: the schedule's), or at ``due_time`` alone.

    With both, the first fire is at ``due_time`` and the following instants count from there (T3). ``start`` and ``end``
    bound the nominal instants, inclusively; intervals count from ``start``, which is then the first instant.
    ``repeats`` is the number of fires in all. Each fire is due up to ``jitter`` after its nominal instant and before
    the next one; the delay of a fire never changes. ``gap`` and ``overlap`` are the rules for wall times that do not
    exist or exist twice (T2). ``excluding`` removes instants of the expression (T6). The holidays of ``calendar``, one
    of the schedule's namespace, are no working days of the expression (T30).
    """

    type: Literal["time"]
    expression: str | None = None
    zone: str | None = None
    due_time: When | None = None
    start: When | None = None
    end: When | None = None
    repeats: int | None = Field(default=None, ge=1, le=MAX_REPEATS)
    jitter: Duration | None = None
    gap: Literal["after", "skip"] = "after"
    overlap: Literal["first", "second", "both"] = "first"
    excluding: tuple[Excluded, ...] = ()
    calendar: Reference | None = None

    _holidays: Days | None = PrivateAttr(None)  # of the calendar; None until they are read

    moved_by: ClassVar[Literal["clock", "last_start", "last_arrival"]] = "clock"

    @field_validator("expression", mode="before", json_schema_input_type=str | dict[str, Any] | None)
    @classmethod
    def _in_its_normal_form(cls, given: Any) -> str | None:
        return None if given is None else expressions.normalise(given, "")

    @field_validator("excluding", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _known_exclusions(cls, given: Any) -> tuple[Excluded, ...]:
        return exclusions.check(given, "")

    @model_validator(mode="after")
    def _can_fire(self, info: ValidationInfo) -> TimeTrigger:
        check_zone(self.zone_name, info)
        if self.calendar is not None and not (self.expression and expressions.has_working_days(self.expression)):
            hint = "write W for each working day, such as 0 9 W * *, or remove the calendar"
            raise invalid("calendar", "a calendar only with working days (W) in the expression", self.calendar, hint)
        if self.expression is None:
            self._check_one_shot()
            return self
        if self.excluding and zones.zone(self.zone_name) is not None and not self._is_ever_free(self.expression):
            expected, hint = "an exclusion that leaves fires of the expression", "exclude fewer days"
            raise invalid("excluding", expected, list(self.excluding), hint)
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The document without fields at their default, so that stored schedules stay equal when a field is added."""
        known = type(self).model_fields
        fields: dict[str, Any] = handler(self)
        return {
            key: value for key, value in fields.items() if key == "zone" or getattr(self, key) != known[key].default
        }

    @property
    def zone_name(self) -> str:
        return self.zone or "UTC"

    @property
    def wall_zone(self) -> str | None:
        return self.zone_name if self.zone_name != "UTC" and (self.has_walls or self.excluding) else None

    @property
    def has_walls(self) -> bool:
        return self.expression is not None and expressions.has_walls(self.expression)

    def is_due_at(self, instant: Instant) -> bool:
        """Whether ``due_time`` is exactly this instant."""
        return self.due_time is not None and parse_when(self.due_time, instant) == instant

    def recurrence(self) -> Recurrence:
        return self

    def next_due(self, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
        return occurrences.next_due(self, anchor, after, until)

    def past_field(self, now: Instant) -> str | None:
        after = now - 1 if self.is_due_at(now) else now
        if self.next_due(now, after) is not None:
            return None
        if self.end is not None and parse_when(self.end, now) < now:
            return "end"
        return "due_time" if self.expression is None else "expression"

    def describe(self) -> str:
        return occurrences.describe(self)

    def missing(self, progress: Progress | None) -> str:
        return f"the time {self.describe()}"

    def arrived(self, progress: Progress) -> str:
        return f"the time {self.describe()} came {since(progress)}"

    def resolve(self, names: Names) -> Self:
        calendar = names.in_namespace(self.calendar) if self.calendar is not None else None
        return self.resolved(names.zone, names.now).model_copy(update={"calendar": calendar})

    def unbounded(self) -> Self:
        return self.model_copy(update={"due_time": None, "start": None, "end": None, "repeats": None})

    @property
    def daylight(self) -> Daylight:
        return Daylight(
            self.gap, self.overlap, is_holiday=self._is_holiday if self.calendar is not None else no_holiday
        )

    def calendars(self) -> tuple[str, ...]:
        return () if self.calendar is None else (self.calendar,)

    def learn(self, calendar: str, holidays: Days | None) -> None:
        if calendar == self.calendar:
            self._holidays = holidays if holidays is not None else days.read((), "UTC")

    def _is_holiday(self, day: date) -> bool:
        if self._holidays is None:
            raise RuntimeError(f"expected the holidays of {self.calendar}, got none: read them first")
        return self._holidays.names(day)

    def __eq__(self, other: object) -> bool:
        """Whether two triggers are one document, also if the holidays of one have been read."""
        return isinstance(other, TimeTrigger) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.expression, self.zone, self.due_time))

    @property
    def jitter_millis(self) -> Millis:
        return duration(self.jitter) if self.jitter else 0

    def resolved(self, zone: str, now: Instant | None) -> Self:
        """The same leaf with its zone and, if ``now`` is given, with relative instants counted from there. Raises
        ``invalid`` for bounds that leave no instant between them."""
        named: dict[str, Any] = {"zone": self.zone or zone}
        if now is not None:
            given = {name: getattr(self, name) for name in ("due_time", "start", "end")}
            at = {name: parse_when(text, now, f"trigger.{name}") for name, text in given.items() if text is not None}
            named |= {name: iso(instant) for name, instant in at.items()}
            first = max(at.get("start", 0), at.get("due_time", 0))
            if "end" in at and at["end"] < first:
                hint = "move the end, or what begins before it"
                raise invalid("trigger.end", f"an instant not before {iso(first)}", iso(at["end"]), hint)
            if "due_time" in at and at["due_time"] < at.get("start", 0):
                expected, hint = f"an instant not before {iso(at['start'])}", "move the due_time, or the start"
                raise invalid("trigger.due_time", expected, iso(at["due_time"]), hint)
        return self.model_copy(update=named)

    def _check_one_shot(self) -> None:
        if self.due_time is None:
            raise invalid("expression", "an expression or a due_time", "neither", "add one: expression: 0 5 * * *")
        idle = [name for name in ("repeats", "excluding") if getattr(self, name)]
        if idle:
            raise invalid(idle[0], f"{idle[0]} only with an expression", "a due_time alone", "it fires once")

    def _is_ever_free(self, expression: str) -> bool:
        """Whether the recurring exclusions leave a fire. Windows and single dates end, so they are not considered."""
        lasting = tuple(entry for entry in self.excluding if exclusions.recurs(entry))
        at: Instant | None = 0
        for _ in range(MAX_LEAPS):
            at = expressions.next_fire(expression, self.zone_name, 0, at or 0)
            end = exclusions.end_of(lasting, self.zone_name, at) if at is not None else None
            if end is None:
                return at is not None
            at = end - 1
        return False
