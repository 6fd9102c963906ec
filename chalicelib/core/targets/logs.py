"""Where the log of a run is, by the type of its target (W15)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoLog:
    """There is no log, and ``why``. ``never`` replaces ``why`` after the end of the run, if set."""

    why: str
    never: str | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker reports the last lines of its output, which Sluice keeps in a row of their own."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The target uploads each stream into ``folder`` of the control bucket, as ``<stream>.gz``. ``later`` is the text
    for a log that is not uploaded yet."""

    folder: str
    streams: tuple[str, ...]
    later: str


Log = NoLog | Reported | Uploaded
