"""Updates of runs that workers do, and final runs: leases, timeouts, dead letters, and when rows expire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.runs import complete, dead_letters
from chalicelib.core.runs.complete import Advance
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Put
from tests.core.builders import NOON, SQS, run
from tests.support.reasons import with_reasons

LATER = NOON + 30 * SECOND
WORKER: dict[str, Any] = {"type": "worker", "pool": "crawlers", "heartbeat": "1m"}


def pulled(state: str = "RUNNING", **fields: Any) -> Run:
    """A run that a worker holds, whose lease ends at ``LATER``."""
    plain = run(state)
    held = {"target_id": "w1", "lease": 2, "lease_until": LATER, "calls": 1}
    return replace(plain, request=replace(plain.request, target=WORKER), **with_reasons({**held, **fields}))


def advance(before: Run, state: Any, now: int = LATER, **fields: Any) -> Advance | None:
    return complete.advance(before, RunUpdate(state, **{"at": NOON + SECOND, **fields}), now, None)


def after(before: Run, state: Any, now: int = LATER, **fields: Any) -> Run:
    step = advance(before, state, now, **fields)
    assert step is not None
    return step.run


# -- leases (W5) ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "target_id", "counts"),
    [(2, "w1", True), (1, "w1", False), (3, "w1", False), (2, None, False), (None, "w1", True)],
)
def test_w5_a_report_counts_only_for_the_present_lease(lease: Any, target_id: Any, counts: bool) -> None:
    answer = advance(pulled(target_id=target_id), "SUCCEEDED", lease=lease)
    assert (answer is not None) is counts


@pytest.mark.parametrize(("now", "counts"), [(LATER - 1, False), (LATER, True), (LATER + 1, True)])
def test_w5_a_worker_is_lost_only_after_its_lease_has_expired(now: int, counts: bool) -> None:
    assert (advance(pulled(), "FAILED", now, outcome="lost") is not None) is counts
    # A worker reports its own failure without an expired lease, and other targets have no lease.
    assert advance(pulled(), "FAILED", now, outcome="failed") is not None
    assert advance(run("RUNNING", target_id="app/1"), "FAILED", now, outcome="lost") is not None


def test_w5_a_lost_worker_leaves_its_lease_end_on_the_attempt() -> None:
    assert after(pulled(), "FAILED", outcome="lost").lease_until == LATER
    assert after(pulled(), "FAILED", outcome="failed").lease_until is None
    emr = run("RUNNING", target_id="app/1", lease_until=NOON)
    assert after(emr, "FAILED", outcome="lost").lease_until is None


def test_w5_a_dropped_retry_keeps_the_end_of_the_lease() -> None:
    waits = pulled("RETRYING", outcome="lost")
    assert after(waits, "FAILED").lease_until == LATER
    over = pulled("CANCELLED")
    assert complete.advance(over, RunUpdate("SUCCEEDED", NOON), LATER, None) is None
    superseded = pulled("FAILED", attempts=2)
    assert complete.advance(superseded, RunUpdate("RUNNING", NOON), LATER, None) is None


def test_w5_a_worker_that_has_begun_has_heartbeat_time_from_now() -> None:
    begun = after(pulled("STARTING"), "RUNNING", lease=2)
    assert (begun.lease_until, begun.running_seen_at, begun.started_at) == (LATER + MINUTE, LATER, NOON + SECOND)
    assert begun.wake_at == LATER or begun.announce, "its start is announced first"
    assert after(run(target_id="app/1"), "RUNNING").lease_until is None


# -- ends ----------------------------------------------------------------------------------------------------------


def test_h1_a_run_whose_retry_is_dropped_ended_with_its_attempt() -> None:
    assert after(run("RETRYING", ended_at=NOON - MINUTE), "FAILED", at=NOON).ended_at == NOON - MINUTE
    assert after(run("RUNNING"), "FAILED", at=NOON).ended_at == NOON


@pytest.mark.parametrize(
    ("state", "delay", "passes_away"),
    [("SUCCEEDED", None, True), ("FAILED", None, True), ("FAILED", MINUTE, False), ("RUNNING", None, False)],
)
def test_h1_a_run_row_expires_a_history_period_after_it_is_final(state: Any, delay: Any, passes_away: bool) -> None:
    before = run("STARTING", attempts=2, expires_at=NOON)
    step = complete.advance(before, RunUpdate(state, NOON), LATER, delay)
    assert step is not None
    assert step.run.expires_at == (LATER + HISTORY if passes_away else None)


def test_h1_an_attempt_row_expires_after_next_one_was_claimed() -> None:
    failed = run("RETRYING", rev=4)
    assert complete.superseded(failed, LATER) == replace(failed, expires_at=LATER + HISTORY, rev=5)


@pytest.mark.parametrize(("began", "reported"), [("STARTING", NOON - 2 * MINUTE), ("RUNNING", None), ("RUNNING", NOON)])
def test_w12_a_run_cancelled_by_its_target_for_time_has_failed(began: str, reported: Any) -> None:
    started = None if began == "STARTING" else NOON - 2 * MINUTE
    before = run(began, target_id="app/1", run_timeout=MINUTE, started_at=started)
    ended = after(before, "CANCELLED", at=NOON, started_at=reported, reason="cancelled by EMR")
    assert (ended.state, ended.outcome) == ("FAILED", "timed_out")
    assert ended.reason.text == "timed out: the run took longer than 1m and was cancelled"
    in_time = after(before, "CANCELLED", at=NOON - MINUTE - 1, started_at=reported and NOON - 2 * MINUTE)
    assert (in_time.state, in_time.outcome) == ("CANCELLED", None)


def test_w12_a_run_that_has_not_begun_has_not_timed_out() -> None:
    """Only an actual start counts: a start that was announced late counts, an estimated one does not."""
    waiting = run("STARTING", run_timeout=MINUTE, started_at=None)
    assert after(waiting, "CANCELLED", at=NOON).state == "CANCELLED"


def test_w5_a_cancelled_run_stays_cancelled_if_its_worker_fails() -> None:
    stopped = pulled(cancel=True, reason="stopped by ada")
    ended = after(stopped, "FAILED", lease=2, reason="killed")
    assert (ended.state, ended.outcome) == ("CANCELLED", None)


# -- further writes of an end --------------------------------------------------------------------------------------


def test_e6_a_failed_delivery_writes_its_dead_letter_in_one_plan() -> None:
    plain = run("STARTING")
    message = replace(plain, request=replace(plain.request, target=SQS), calls=3)
    step = advance(message, "FAILED", reason="the queue is gone")
    assert step is not None
    letter = dead_letters.of(step.run, LATER)
    assert letter is not None
    assert (letter.failed_at, letter.reason.text) == (LATER, "the queue is gone")
    assert Put(letter) in complete.plan(message, step, {}, LATER)
    with_a_lifecycle = advance(plain, "FAILED")
    assert with_a_lifecycle is not None
    assert not [write for write in complete.plan(plain, with_a_lifecycle, {}, LATER) if isinstance(write, Put)]


def test_h1_costs_are_asked_for_two_minutes_after_a_run_is_over() -> None:
    over = run("SUCCEEDED", target_id="app/1", state_at=LATER)
    assert complete.wake_of(over, LATER) == LATER + 2 * MINUTE
    assert complete.wake_of(over, LATER + 5 * MINUTE) == LATER + 5 * MINUTE, "not in the past"
