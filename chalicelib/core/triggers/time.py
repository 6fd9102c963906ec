"""The leaf ``time``: fires at the instants of an expression, or at one instant (T1-T3, T6).

Relative forms (``10s``, ``PT5M``) count from the request that puts the schedule, and are stored as the instants that
result.

A *nominal* instant is one that the leaf names: it identifies an occurrence, the run's context contains it, and bounds
and exclusions refer to it. An occurrence is *due* at its nominal instant or, by its jitter, later. Both instants
increase from fire to fire: the jitter of a fire ends before the next one. They follow from the leaf and its anchor
alone.

Intervals count from ``anchor``, the instant at which the schedule began to gather, unless ``due_time`` or ``start`` is
set. The timer counts ``repeats``, because the fires of a cron expression so far cannot be computed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from chalicelib.core import ids, zones
from chalicelib.core.documents import Duration, Reference, Sparse, check_zone
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, Millis, duration, format_duration, iso, parse_when
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Progress
from chalicelib.core.time import days, expressions, wording
from chalicelib.core.time.cron import no_holiday
from chalicelib.core.time.days import Days, Exclusions
from chalicelib.core.time.wall import MAX_LEAPS, Daylight
from chalicelib.core.triggers.leaf import Leaf, Moved, TimedLeaf, since

MAX_REPEATS = 1_000_000_000


def _check_when(text: str) -> str:
    parse_when(text, 0, "")
    return text


When = Annotated[str, AfterValidator(_check_when)]


class TimeTrigger(TimedLeaf, Sparse):
    """Fires at the instants of ``expression``, in ``zone`` (None: the schedule's), or at ``due_time`` alone.

    With both, the first fire is at ``due_time`` and the following instants count from there (T3). ``start`` and ``end``
    bound the nominal instants, inclusively; intervals count from ``start``, which is then the first instant.
    ``repeats`` is the number of fires in all. Each fire is due up to ``jitter`` after its nominal instant and before
    the next one; the delay of a fire never changes. ``gap`` and ``overlap`` are the rules for wall times that do not
    exist or exist twice (T2). ``excluding`` removes instants of the expression (T6). The holidays of ``calendar``, one
    of the schedule's namespace, are no working days of the expression (T30).
    """

    omitted: ClassVar[Collection[str]] = (
        *("expression", "due_time", "start", "end", "repeats", "jitter", "gap", "overlap", "excluding", "calendar"),
    )

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
    excluding: Exclusions = ()
    calendar: Reference | None = None

    _holidays: Days | None = PrivateAttr(None)  # of the calendar; None until they are read

    moved_by: ClassVar[Moved] = "clock"

    @field_validator("expression", mode="before", json_schema_input_type=str | dict[str, Any] | None)
    @classmethod
    def _in_its_normal_form(cls, given: Any) -> str | None:
        return None if given is None else expressions.normalise(given, "")

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

    def next_due(self, anchor: Instant, after: Instant, until: Instant | None = None) -> Instant | None:
        """The first nominal instant strictly after ``after``; None if there is none by the leaf's end or by
        ``until``."""
        ends = [bound for bound in (_when(self.end, anchor), until) if bound is not None]
        found = self._next(anchor, after)
        return found if found is not None and all(found <= end for end in ends) else None

    def jittered(self, anchor: Instant, nominal: Instant, seed: str) -> Instant:
        """The instant at which a nominal instant is due: up to ``jitter`` later, and before the next occurrence.
        ``seed`` identifies schedule and leaf; the result depends on the arguments alone, so each computation gives the
        same."""
        if not self.jitter_millis:
            return nominal
        following = self.next_due(anchor, nominal)
        longest = self.jitter_millis if following is None else min(self.jitter_millis, following - nominal - 1)
        return nominal + int(ids.digest("jitter", seed, nominal, length=12), 16) % (longest + 1)

    def is_occurrence(self, anchor: Instant, at: Instant) -> bool:
        """Whether ``at`` is a nominal instant of the leaf."""
        return self.next_due(anchor, at - 1) == at

    @property
    def counts_from_anchor(self) -> bool:
        """Whether the instants depend on when the schedule began to gather, so that without an anchor none is known."""
        fixed = self.due_time is not None or self.start is not None
        return self.expression is not None and not fixed and expressions.is_interval(self.expression)

    @property
    def counts_from_put(self) -> bool:
        return self.counts_from_anchor

    @property
    def step(self) -> Millis | None:
        """The distance in ms between the instants; None if they are irregular, some are excluded, or they end."""
        if self.expression is None or self.excluding or not expressions.is_interval(self.expression):
            return None
        return _interval(self.expression, self.zone_name) if expressions.repeats(self.expression) is None else None

    def past_field(self, now: Instant) -> str | None:
        after = now - 1 if self.is_due_at(now) else now
        if self.next_due(now, after) is not None:
            return None
        if self.end is not None and parse_when(self.end, now) < now:
            return "end"
        return "due_time" if self.expression is None else "expression"

    @property
    def nothing(self) -> str:
        return ""

    def describe(self) -> str:
        """The leaf in plain words: ``every 10s, first at 2026-03-02T12:00:10.000Z, 4 times``."""
        texts = {name: _format_when(getattr(self, name)) for name in ("due_time", "start", "end")}
        if self.expression is None:
            parts = [f"at {texts['due_time']}"]
        else:
            parts = [wording.describe(self.expression, self.zone_name)]
            parts += [f"first at {texts['due_time']}"] if self.due_time else []
        parts += [f"from {texts['start']}"] if self.start else []
        parts += [f"until {texts['end']}"] if self.end else []
        parts += [f"{self.repeats} times" if self.repeats > 1 else "once"] if self.repeats else []
        parts += [f"without {self.calendar}"] if self.calendar else []
        parts += [f"except on {days.describe(self.excluding)}"] if self.excluding else []
        parts += [f"up to {format_duration(self.jitter_millis)} later"] if self.jitter else []
        return ", ".join(parts)

    def missing(self, progress: Progress | None) -> str:
        return f"the time {self.describe()}"

    def arrived(self, progress: Progress) -> str:
        return f"the time {self.describe()} came {since(progress)}"

    def unbounded(self) -> Self:
        """The leaf with its expression alone, without a first instant, bounds and ``repeats``."""
        return self.model_copy(update={"due_time": None, "start": None, "end": None, "repeats": None})

    @property
    def daylight(self) -> Daylight:
        is_holiday = self._is_holiday if self.calendar is not None else no_holiday
        return Daylight(self.gap, self.overlap, is_holiday=is_holiday)

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

    def resolve(self, names: Names) -> Self:
        """The same leaf with its zone and, if ``now`` is given, with relative instants counted from there. Raises
        ``invalid`` for bounds that leave no instant between them."""
        calendar = names.in_namespace(self.calendar) if self.calendar is not None else None
        named: dict[str, Any] = {"zone": self.zone or names.zone, "calendar": calendar}
        if (now := names.now) is not None:
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

    def _next(self, anchor: Instant, after: Instant) -> Instant | None:
        due, start = _when(self.due_time, anchor), _when(self.start, anchor)
        if due is not None and after < due:
            return due  # the user named this instant, so exclusions do not apply to it
        if self.expression is None:
            return None
        after = after if start is None else max(after, start - 1)
        base = _base(self.expression, self.zone_name, anchor, due if due is not None else start)
        if not self.excluding:
            return expressions.next_fire(self.expression, self.zone_name, base, after, self.daylight)
        return self._next_free(self.expression, base, after)

    def _next_free(self, expression: str, base: Instant, after: Instant) -> Instant | None:
        """The next instant that is not excluded. A day excludes the wall times of a cron expression that it has, also
        those that fire on the next day because the clocks skip them. It excludes the instants of an interval."""
        listed = days.read(self.excluding, self.zone_name)
        has_walls = expressions.has_walls(expression)
        daylight = replace(self.daylight, free_from=listed.free_from) if has_walls else self.daylight
        for _ in range(MAX_LEAPS):
            found = expressions.next_fire(expression, self.zone_name, base, after, daylight)
            if found is None:
                return None
            end = listed.window_end(found) if has_walls else listed.end_of(found)
            if end is None:
                return found
            after = end - 1
        return None

    def _check_one_shot(self) -> None:
        if self.due_time is None:
            raise invalid("expression", "an expression or a due_time", "neither", "add one: expression: 0 5 * * *")
        idle = [name for name in ("repeats", "excluding") if getattr(self, name)]
        if idle:
            raise invalid(idle[0], f"{idle[0]} only with an expression", "a due_time alone", "it fires once")

    def _is_ever_free(self, expression: str) -> bool:
        """Whether the recurring exclusions leave a fire. Windows and single dates end, so they are not considered."""
        lasting = tuple(entry for entry in self.excluding if days.recurs(entry))
        at: Instant | None = 0
        for _ in range(MAX_LEAPS):
            at = expressions.next_fire(expression, self.zone_name, 0, at or 0)
            end = days.end_of(lasting, self.zone_name, at) if at is not None else None
            if end is None:
                return at is not None
            at = end - 1
        return False


@dataclass(frozen=True, slots=True)
class Series:
    """The occurrences of one leaf in one generation of a schedule, which may end at ``until``. ``seed`` identifies
    schedule and leaf, for the jitter."""

    rule: TimeTrigger
    anchor: Instant
    until: Instant | None
    seed: str

    def after(self, instant: Instant) -> Instant | None:
        """The first nominal instant strictly after ``instant``; None if there is none."""
        return self.rule.next_due(self.anchor, instant, self.until)

    def due(self, nominal: Instant) -> Instant:
        return self.rule.jittered(self.anchor, nominal, self.seed)

    @property
    def begins(self) -> Instant:
        """Nominal instants of this generation come strictly after this one. A ``due_time`` may be the anchor itself."""
        return self.anchor - 1 if _when(self.rule.due_time, self.anchor) == self.anchor else self.anchor

    def due_bound(self, instant: Instant) -> Instant:
        """The bound that separates the nominal instants by when they are due: those before it are due before
        ``instant``, the others at ``instant`` or later. Without jitter it is ``instant``."""
        longest = self.rule.jitter_millis
        last = self.last_by(instant, instant - longest) if longest else None
        return last if last is not None and self.due(last) >= instant else instant

    def last_by(self, instant: Instant, first: Instant) -> Instant | None:
        """The last nominal instant from ``first`` on that is not after ``instant``; None if there is none. The search
        goes back in growing spans, so that seconds over years cost no more than hours over a day."""
        for span in (MINUTE, HOUR, DAY, 31 * DAY, instant - first + 1):
            found = self.after(max(instant - span, first - 1))
            if found is not None and found <= instant:
                while (following := self.after(found)) is not None and following <= instant:
                    found = following
                return found
        return None

    def count(self, first: Instant, stop: Instant, most: int) -> tuple[int, Instant | None]:
        """The number of occurrences from ``first`` on and before ``stop``, and the occurrence that follows them. The
        count stops at ``most``, except for regular intervals, which need no counting."""
        step = self.rule.step
        number, nominal = 0, first
        if step is not None:
            ends = [end for end in (_when(self.rule.end, self.anchor), self.until, stop - 1) if end is not None]
            regular = max((min(ends) - first) // step, 0)
            number, nominal = regular, first + regular * step
        upcoming: Instant | None = nominal
        while upcoming is not None and upcoming < stop and (number < most or step is not None):
            upcoming, number = self.after(upcoming), number + 1
        return number, upcoming

    def nth(self, first: Instant, number: int) -> Instant | None:
        """The occurrence that is ``number`` after the occurrence ``first``; None if there is none."""
        step = self.rule.step
        if step is not None:
            return first + number * step
        upcoming: Instant | None = first
        for _ in range(number):
            upcoming = self.after(upcoming) if upcoming is not None else None
        return upcoming


Recurrence = TimeTrigger  # as other packages know it, which ask for no kind of leaf


def rule_of(leaf: Leaf) -> Recurrence | None:
    """The rule of the instants of a leaf, if they are known in advance; else None."""
    return leaf if isinstance(leaf, TimeTrigger) else None


def _base(expression: str, zone_name: str, anchor: Instant, first: Instant | None) -> Instant:
    """The instant from which an interval counts so that it begins at ``first``. Other expressions ignore it."""
    if first is None or not expressions.is_interval(expression):
        return anchor if first is None else 0
    return first - _interval(expression, zone_name)


def _interval(expression: str, zone_name: str) -> Millis:
    return expressions.next_fire(expression, zone_name, 0, 0) or 0


def _when(text: str | None, anchor: Instant) -> Instant | None:
    return None if text is None else parse_when(text, anchor, "due_time")


def _format_when(text: str | None) -> str:
    """An instant in its normal form; a span that is not resolved yet as the user wrote it."""
    if text is None:
        return ""
    return iso(parse_when(text, 0, "due_time")) if "-" in text else f"{text} after the put"
