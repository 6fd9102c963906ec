"""Cancelling waiting and running runs, and the timeout, which cancels too."""

from __future__ import annotations

import pytest

from tests.local.conftest import Emulators

LONG_MS = 60_000


def test_a_waiting_run_is_cancelled_and_never_runs(emulators: Emulators) -> None:
    emr = emulators.start(max_running=1, instant_ms=LONG_MS)
    first, waiting, behind = emr.start(), emr.start(), emr.start()
    emr.reaches(first, "RUNNING")
    emr.reaches(waiting, "PENDING")
    emr.cancel(waiting)
    assert emr.state(waiting) == "CANCELLED"
    assert "startedAt" not in emr.get(waiting)
    emr.cancel(first)
    emr.reaches(behind, "RUNNING")


def test_a_running_run_is_cancelled_and_the_next_one_starts(emulators: Emulators) -> None:
    emr = emulators.start(max_running=1, instant_ms=LONG_MS)
    running, waiting = emr.start(), emr.start()
    emr.reaches(running, "RUNNING")
    emr.cancel(running)
    cancelled = emr.reaches(running, "CANCELLED")
    assert cancelled["billedResourceUtilization"]["vCPUHour"] > 0
    emr.reaches(waiting, "RUNNING")


def test_an_ended_run_is_not_cancellable(emulators: Emulators) -> None:
    emr = emulators.start()
    run = emr.start()
    emr.reaches(run, "SUCCESS")
    with pytest.raises(emr.boto.exceptions.ValidationException, match="not in a cancellable state"):
        emr.cancel(run)
    assert emr.state(run) == "SUCCESS"


def test_a_run_over_its_timeout_is_cancelled(emulators: Emulators) -> None:
    emr = emulators.start(instant_ms=LONG_MS, minute_s=0.02)
    run = emr.reaches(emr.start(executionTimeoutMinutes=10), "CANCELLED")
    assert run["stateDetails"] == "Job run timed out after 10 minutes."


def test_a_timeout_of_zero_means_none(emulators: Emulators) -> None:
    emr = emulators.start(instant_ms=100, minute_s=0.001)
    run = emr.reaches(emr.start(executionTimeoutMinutes=0), "SUCCESS", "CANCELLED")
    assert run["state"] == "SUCCESS"
