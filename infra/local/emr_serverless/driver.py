"""The interface of drivers, which run a job, and the instant driver for load tests. Real Spark is in `spark_driver`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from .records import JobRun

# The reason of a request to stop a driver.
CANCELLED = "cancelled"
TIMED_OUT = "timed out"
SHUTDOWN = "shutdown"


class Stop:
    """A request to stop, from the caller to the working driver. The first reason is kept."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.reason = ""
        self.grace_s: float | None = None

    def ask(self, reason: str, grace_s: float | None = None) -> None:
        """Request the stop. `grace_s`: seconds in which the job may end by itself; None for the driver's setting."""
        if not self._asked.is_set():
            self.reason, self.grace_s = reason, grace_s
            self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for a request; return whether there is one."""
        return self._asked.wait(seconds)


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt: the driver's exit code, and a readable reason of a failure.

    `interrupted`: a stop ended the job early, so the exit code is meaningless.
    """

    exit_code: int
    details: str = ""
    interrupted: bool = False


class Driver(Protocol):
    """Runs attempts, several at a time from several threads."""

    def execute(self, run: JobRun, started: Callable[[], None], stop: Stop) -> Outcome:
        """Run the attempt to its end and store its output; call `started` when the job's code starts.

        A request in `stop` ends the attempt early. An exception counts as a failure.
        """

    def close(self) -> None:
        """Release the resources of the driver itself."""


class InstantDriver:
    """Waits `duration_s` and succeeds; an entry point with `fail` in its file name fails with exit code 1."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s

    def execute(self, run: JobRun, started: Callable[[], None], stop: Stop) -> Outcome:
        started()
        if stop.wait(self._duration_s):
            return Outcome(1, stop.reason, interrupted=True)
        entry_point = PurePosixPath(run.spark_submit["entryPoint"]).name
        return Outcome(1, f"{entry_point} failed, as its name asks") if "fail" in entry_point else Outcome(0)

    def close(self) -> None:
        """Do nothing: the driver holds no resources."""
