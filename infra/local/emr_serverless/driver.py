"""What runs a job: the protocol, and the instant stand-in for load tests. Real Spark is in `spark_driver`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from .records import JobRun

# Why a driver was asked to stop.
CANCELLED = "cancelled"
TIMED_OUT = "timed out"
SHUTDOWN = "shutdown"


class Stop:
    """A request to stop, from whoever cancels to the driver at work. The first reason stays."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.reason = ""
        self.grace_s: float | None = None

    def ask(self, reason: str, grace_s: float | None = None) -> None:
        """`grace_s`: seconds the job has to end by itself; None leaves it to the driver's setting."""
        if not self._asked.is_set():
            self.reason, self.grace_s = reason, grace_s
            self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for a request, at most `seconds`; tell whether there is one."""
        return self._asked.wait(seconds)


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: the driver's exit code, and for people why it failed.

    `interrupted`: a stop cut the job short, so the code tells nothing about it.
    """

    exit_code: int
    details: str = ""
    interrupted: bool = False


class Driver(Protocol):
    """Runs one attempt after another, several at a time from several threads."""

    def execute(self, run: JobRun, started: Callable[[], None], stop: Stop) -> Outcome:
        """Run the attempt to its end and have its output in place; call `started` when the job's code runs.

        When `stop` is asked, end early. An exception counts as a failure.
        """

    def close(self) -> None:
        """Give back what the driver itself holds."""


class InstantDriver:
    """Takes `duration_s` and succeeds; an entry point with `fail` in its file name fails with exit code 1."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s

    def execute(self, run: JobRun, started: Callable[[], None], stop: Stop) -> Outcome:
        started()
        if stop.wait(self._duration_s):
            return Outcome(1, stop.reason, interrupted=True)
        entry_point = PurePosixPath(run.spark_submit["entryPoint"]).name
        return Outcome(1, f"{entry_point} failed, as its name asks") if "fail" in entry_point else Outcome(0)

    def close(self) -> None:
        """Nothing is held."""
