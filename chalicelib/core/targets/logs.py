"""Where the log of a run is, as its target says (W15)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoLog:
    """There is none: ``why``. ``never`` is told instead once the run has ended, if it differs."""

    why: str
    never: str | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker reports the last lines, and they are kept as a row beside the run."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The target uploads each of these streams into a folder of the control bucket, as ``<stream>.gz``. ``later`` is
    told while there is none."""

    folder: str
    streams: tuple[str, ...]
    later: str


Log = NoLog | Reported | Uploaded
