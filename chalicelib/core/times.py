"""What a schedule says about time: its time triggers (T1-T3, T6), catch-up (T5), and events per fire (E2).

Relative forms (``10s``, ``PT5M``) are counted from the request that puts the schedule, and stored as the instants that
they stand for. `core/occurrences.py` says when a trigger is due.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from chalicelib.core import calendar, exclusions
from chalicelib.core.calendar import DAY, Daylight, Instant, Millis, duration, iso, parse_when
from chalicelib.core.documents import Document, Duration
from chalicelib.core.errors import invalid
from chalicelib.core.exclusions import Excluded

MOST_REPEATS = 1_000_000_000
MOST_EVENTS = 100_000  # of one fire (E2)
LONGEST_SPREAD: Millis = 31 * DAY
MOST_LEAPS = 4_000  # from one excluded span to the next, before a trigger is said to fire never


def _check_when(text: str) -> str:
    parse_when(text, 0, "")
    return text


def _check_life(text: str) -> str:
    if parse_when(text, 0, "") == 0:
        raise invalid("", "an instant, or a duration longer than 0s", text)
    return text


When = Annotated[str, AfterValidator(_check_when)]
Life = Annotated[str, AfterValidator(_check_life)]  # a ttl: a schedule lives for a while


class TimeTrigger(Document):
    """Fires at the instants of ``expression``, read in ``zone`` (None: the schedule's), or at ``due_time`` alone.

    With both, the first fire is at ``due_time`` and the rest follow from there (T3). ``start`` and ``end`` bound the
    nominal instants, inclusively; intervals count from ``start``, which is the first of them. ``repeats`` is how often
    it fires in all. Each fire comes up to ``jitter`` later than its nominal instant, always the same for the same
    fire, and never as late as the next one. ``gap`` and ``overlap`` say what becomes of wall times that do not exist
    or exist twice (T2); ``excluding`` leaves instants of the expression out (T6).
    """

    type: Literal["time"]
    expression: str | None = None
    zone: str | None = None
    due_time: When | None = None
    start: When | None = None
    end: When | None = None
    repeats: int | None = Field(default=None, ge=1, le=MOST_REPEATS)
    jitter: Duration | None = None
    gap: Literal["after", "skip"] = "after"
    overlap: Literal["first", "second", "both"] = "first"
    excluding: tuple[Excluded, ...] = ()

    @field_validator("expression", mode="before", json_schema_input_type=str | dict[str, Any] | None)
    @classmethod
    def _in_its_normal_form(cls, given: Any) -> str | None:
        return None if given is None else calendar.normalise(given, "")

    @field_validator("excluding", mode="before", json_schema_input_type=list[str | dict[str, str]])
    @classmethod
    def _known_exclusions(cls, given: Any) -> tuple[Excluded, ...]:
        return exclusions.check(given, "")

    @model_validator(mode="after")
    def _can_fire(self) -> TimeTrigger:
        calendar.zone(self.place)
        if self.expression is None:
            self._check_one_shot()
            return self
        if self.excluding and not self._is_ever_free(self.expression):
            raise invalid("excluding", "an exclusion that leaves fires of the expression", list(self.excluding))
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is at its default is not written, so that a schedule without it reads as it always has."""
        known = type(self).model_fields
        told: dict[str, Any] = handler(self)
        return {key: each for key, each in told.items() if key == "zone" or getattr(self, key) != known[key].default}

    @property
    def place(self) -> str:
        return self.zone or "UTC"

    def is_due_at(self, instant: Instant) -> bool:
        """Whether its ``due_time`` is this very instant."""
        return self.due_time is not None and parse_when(self.due_time, instant) == instant

    @property
    def daylight(self) -> Daylight:
        return Daylight(self.gap, self.overlap)

    @property
    def jitter_millis(self) -> Millis:
        return duration(self.jitter) if self.jitter else 0

    def resolved(self, zone: str, now: Instant | None) -> TimeTrigger:
        """The same with its zone and, counted from ``now`` if that is given, its instants. Refuses bounds that leave
        nothing between them."""
        named: dict[str, Any] = {"zone": self.zone or zone}
        if now is not None:
            given = {name: getattr(self, name) for name in ("due_time", "start", "end")}
            at = {name: parse_when(text, now, f"trigger.{name}") for name, text in given.items() if text is not None}
            named |= {name: iso(instant) for name, instant in at.items()}
            first = max(at.get("start", 0), at.get("due_time", 0))
            if "end" in at and at["end"] < first:
                raise invalid("trigger.end", f"an instant not before {iso(first)}", iso(at["end"]))
            if "due_time" in at and at["due_time"] < at.get("start", 0):
                raise invalid("trigger.due_time", f"an instant not before {iso(at['start'])}", iso(at["due_time"]))
        return self.model_copy(update=named)

    def _check_one_shot(self) -> None:
        if self.due_time is None:
            raise invalid("expression", "an expression or a due_time", "neither")
        idle = [name for name in ("repeats", "excluding") if getattr(self, name)]
        if idle:
            raise invalid(idle[0], f"{idle[0]} only with an expression", "a due_time alone", "it fires once")

    def _is_ever_free(self, expression: str) -> bool:
        """Whether what recurs in the exclusions leaves a fire; a window or a single date passes."""
        lasting = tuple(each for each in self.excluding if isinstance(each, str) and len(each) < len("2026-12-25"))
        at: Instant | None = 0
        for _ in range(MOST_LEAPS):
            at = calendar.next_fire(expression, self.place, 0, at or 0)
            end = exclusions.end_of(lasting, self.place, at) if at is not None else None
            if end is None:
                return at is not None
            at = end - 1
        return False


class CatchUp(Document):
    """Which fires are made up for that were missed in an outage: ``all`` of them, the ``latest`` alone, or ``none``;
    never any that is older than ``within``. The rest is skipped on record (T5). A word stands for its ``mode``."""

    mode: Literal["all", "latest", "none"] = "all"
    within: Duration = "1d"

    @model_validator(mode="before")
    @classmethod
    def _word(cls, given: Any) -> Any:
        return {"mode": given} if isinstance(given, str) else given

    @property
    def span(self) -> Millis:
        return duration(self.within)


class Spread(Document):
    """``count`` events per fire, due evenly ``over`` a window that begins with the fire, or all at once (E2).

    An event that is not started within the window is started late, and marked so, or is dropped on record.
    """

    count: int = Field(ge=1, le=MOST_EVENTS)
    over: Duration | None = None
    overflow: Literal["late", "drop"] = "late"

    @model_validator(mode="after")
    def _has_a_window(self) -> Spread:
        if self.span > LONGEST_SPREAD:
            raise invalid("over", "a window of at most 31 days", self.over)
        if self.overflow == "drop" and self.over is None:
            raise invalid("over", "a window, which what is dropped does not fit into", None)
        return self

    @property
    def span(self) -> Millis:
        return duration(self.over) if self.over else 0
