"""What is stopped in a namespace, its row, and the marks of it in the states of schedules (L24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.why import NONE, Mention, Why, joined

StateOfStop = Literal["stopping", "stopped", "starting"]
Timeouts = Literal["count", "stop"]
STILL: Timeouts = "stop"
Span = tuple[Instant, Instant | None]
Mark = tuple[Any, ...]  # what a schedule state keeps of a stop: scope, instant, who, reason, and whether timeouts stop


@dataclass(frozen=True, slots=True)
class StopsRow(StoredRow):
    """The stops of a namespace, each as `core/schedules/stops.py::Stop` without its name. The row has as many copies as
    `COPIES` there, which one transaction writes: each put of a schedule expects one of them, so that many puts do not
    meet at one row. ``wake_at`` of the first copy makes it an outbox: a stop or a start has not reached all schedules.
    """

    namespace: str
    copy: str
    stops: tuple[tuple[Any, ...], ...] = ()
    rev: int = 1
    wake_at: Instant | None = None


class Scope(NamedTuple):
    """What a stop covers: everything of a namespace or an app; with a ``tag`` (``key`` or ``key=value``) what has it
    there. A schedule, DAG or message inherits the tags of its app."""

    place: str
    tag: str = ""

    def __str__(self) -> str:
        return f"{self.place}#{self.tag}" if self.tag else self.place

    @property
    def namespace(self) -> str:
        return self.place.partition(".")[0]

    @property
    def said(self) -> str:
        return f"what has the tag {self.tag} in {self.place}" if self.tag else self.place

    def covers(self, name: str, tags: Mapping[str, str]) -> bool:
        return name.startswith(f"{self.place}.") and (not self.tag or has_tag(tags, self.tag))


class Stop(NamedTuple):
    """One stop. ``at`` is when it began, ``by`` who stopped it, or gave the present ``reason``. With ``timeouts`` stop
    the timeouts of waiting jobs stand still."""

    scope: str
    at: Instant
    by: str
    reason: str
    state: StateOfStop = "stopping"
    timeouts: Timeouts = "count"

    @property
    def of(self) -> Scope:
        return Scope(*self.scope.split("#", 1))

    @property
    def mark(self) -> Mark:
        """What a schedule keeps of the stop. Older code reads a mark of four parts."""
        return (self.scope, self.at, self.by, self.reason, *((STILL,) if self.timeouts == STILL else ()))

    @property
    def stored(self) -> tuple[Any, ...]:
        """What the row of stops keeps of it. Older code reads five parts."""
        return tuple(self) if self.timeouts == STILL else tuple(self)[:-1]

    @property
    def is_live(self) -> bool:
        """Whether schedules get its mark."""
        return self.state != "starting"

    def parts(self) -> tuple[str, Mention, str]:
        """The stop in words: ``shop has been stopped since 2026-03-02T02:14:00.000Z by ann: table is repaired``."""
        who = Mention(self.by.partition(":assumed-role/")[2] or self.by.rpartition(":")[2], "person", self.by)
        return f"{self.of.said} has been stopped since {iso(self.at)} by ", who, f": {self.reason}"


def has_tag(tags: Mapping[str, str], tag: str) -> bool:
    """Whether tags have this one: ``key=value``, or any value of ``key``."""
    key, equals, value = tag.partition("=")
    return key in tags and (not equals or tags[key] == value)


def stops_of(row: StopsRow | None) -> tuple[Stop, ...]:
    return tuple(Stop(*each) for each in row.stops) if row is not None else ()


def marks_of(state: ScheduleState | None) -> tuple[Stop, ...]:
    """The stops that hold a schedule, by their marks."""
    return tuple(_of_mark(mark) for mark in state.stops) if state is not None else ()


def _of_mark(mark: Mark) -> Stop:
    scope, at, by, reason, *still = mark
    return Stop(scope, at, by, reason, "stopped", STILL if still else "count")


def still_spans(marks: Sequence[Mark], ended: Instant | None = None) -> tuple[Span, ...]:
    """The spans in which the stops with these marks let the timeouts of a schedule stand still."""
    return tuple((stop.at, ended) for stop in map(_of_mark, marks) if stop.timeouts == STILL)


def spans_of(state: ScheduleState | None) -> tuple[Span, ...]:
    """The spans in which timeouts of a schedule stood still because of a pause or a stop, in order and apart from each
    other; the last one has no end while it lasts."""
    found: list[Span] = []
    for began, ended in sorted((*state.pauses, *still_spans(state.stops)), key=lambda span: span[0]) if state else ():
        last = found[-1] if found else None
        if last is not None and (last[1] is None or began <= last[1]):
            found[-1] = (last[0], None if last[1] is None or ended is None else max(last[1], ended))
        else:
            found.append((began, ended))
    return tuple(found)


def why_of(state: ScheduleState | None) -> Why:
    """Why nothing of a schedule starts: the stops that hold it. None if none does."""
    return joined(Why.of("stopped", *stop.parts()) for stop in marks_of(state)) if state is not None else NONE
