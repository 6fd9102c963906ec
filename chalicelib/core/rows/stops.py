"""What is stopped in a namespace, its row, and the marks of it in the states of schedules (L24)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stored import StoredRow
from chalicelib.core.why import NONE, Mention, Why, joined

StateOfStop = Literal["stopping", "stopped", "starting"]
Mark = tuple[Any, ...]  # what a schedule state keeps of a stop: scope, instant, who, reason


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
    """One stop. ``at`` is when it began, ``by`` who stopped it, or gave the present ``reason``."""

    scope: str
    at: Instant
    by: str
    reason: str
    state: StateOfStop = "stopping"

    @property
    def of(self) -> Scope:
        return Scope(*self.scope.split("#", 1))

    @property
    def mark(self) -> Mark:
        return (self.scope, self.at, self.by, self.reason)

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
    return tuple(Stop(*mark)._replace(state="stopped") for mark in state.stops) if state is not None else ()


def why_of(state: ScheduleState | None) -> Why:
    """Why nothing of a schedule starts: the stops that hold it. None if none does."""
    return joined(Why.of("stopped", *stop.parts()) for stop in marks_of(state)) if state is not None else NONE
