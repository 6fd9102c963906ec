"""The effect of updates on a run: forward only, announced in order, permits released once (T10, C9, W1, W7)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import states
from chalicelib.core.instants import MINUTE
from chalicelib.core.limits.writes import Ended, ReleasePermit
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete, follow, launch
from chalicelib.core.runs.complete import Advance
from chalicelib.core.states import RUN_MOVES, RunState
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Create, Replace
from tests.core.builders import LIMIT, NAME, NOON, partition_event, run, thorough

STATES: tuple[RunState, ...] = get_args(RunState)
LATER = NOON + MINUTE
RUN = f"{NAME}.7.first#001"  # the holder under which a limit remembers the run
DELAY = 30_000


def updated(before: Run, state: RunState, retry_delay: int | None = None, **fields: Any) -> Advance | None:
    return complete.advance(before, RunUpdate(state, NOON + 5, **fields), LATER, retry_delay)


def moved(before: Run, state: RunState, retry_delay: int | None = None, **fields: Any) -> Advance:
    step = updated(before, state, retry_delay, **fields)
    assert step is not None
    return step


@pytest.mark.parametrize(("old", "new"), list(product(STATES, STATES)))
def test_w7_a_status_update_moves_a_run_or_is_outdated(old: RunState, new: RunState) -> None:
    step = updated(run(old), new, reason="because")
    if new not in RUN_MOVES[old]:
        assert step is None
        return
    assert step is not None
    assert (step.run.state, step.run.reason.text, step.run.rev) == (new, "because", 2)
    assert step.ended is states.is_terminal(new)
    assert step.retry is None


def test_h1_a_run_keeps_the_start_and_end_times_of_the_target() -> None:
    running = moved(run(), "RUNNING", target_id="app-1/r1").run
    assert (running.started_at, running.ended_at, running.target_id) == (NOON + 5, None, "app-1/r1")
    assert updated(running, "FAILED", target_id="app-1/other") is None, "somebody else's, of the same name"
    ended = moved(running, "FAILED").run
    assert (ended.started_at, ended.ended_at, ended.target_id) == (NOON + 5, NOON + 5, "app-1/r1")


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_h1_an_end_with_a_missed_start_still_sets_the_start_time(state: RunState) -> None:
    ended = moved(run(), state, started_at=NOON + 2).run
    assert (ended.started_at, ended.ended_at) == (NOON + 2, NOON + 5)
    assert moved(moved(run(), "RUNNING").run, state, started_at=NOON + 2).run.started_at == NOON + 5, (
        "as the target reported it"
    )


@pytest.mark.parametrize(("timeout", "then"), [(2, ("FAILED", "timed_out")), (4, ("CANCELLED", None))])
def test_w12_a_run_that_emr_ended_for_its_time_has_timed_out(timeout: int, then: tuple[str, Any]) -> None:
    ended = moved(run(run_timeout=timeout), "CANCELLED", started_at=NOON + 2).run
    assert (ended.state, ended.outcome) == then


def test_a_status_update_answers_a_call_in_progress() -> None:
    called = replace(launch.calling(run(), NOON), leases=5)
    running = moved(called, "RUNNING").run
    assert (running.lease_until, running.leases) == (None, 0)


# -- retries -------------------------------------------------------------------------------------------------------


def test_w1_a_failed_attempt_is_retried_while_attempts_are_left() -> None:
    first = run("RUNNING", attempts=2, event=partition_event(), correlation={"day": "1"}, accepted_at=NOON)

    step = moved(first, "FAILED", DELAY, reason="out of memory")

    assert step.run.state == "RETRYING"
    assert step.ended
    retry = step.retry
    assert retry is not None
    assert (retry.kind, retry.state, retry.attempt) == ("retry", "PENDING_CONSTRAINTS", 2)
    assert (retry.job_id, retry.sort_key) == (first.run_id, f"RETRY#{first.run_id}#2")
    assert retry.due_at == retry.wake_at == retry.created_at == LATER + DELAY
    assert (retry.event, retry.correlation, retry.accepted_at) == (first.event, first.correlation, NOON)
    assert retry.properties == first.request.properties
    assert retry.reason.text == "attempt 1 of 2 failed: out of memory"


@pytest.mark.parametrize(
    ("attempt", "attempts", "delay", "retried"),
    [(1, 1, DELAY, False), (1, 3, DELAY, True), (2, 3, DELAY, True), (3, 3, DELAY, False), (1, 3, None, False)],
)
def test_w1_a_retry_needs_an_attempt_left_and_an_open_schedule(
    attempt: int, attempts: int, delay: int | None, retried: bool
) -> None:
    step = moved(run("RUNNING", attempt=attempt, attempts=attempts), "FAILED", delay)
    assert step.run.state == ("RETRYING" if retried else "FAILED")
    assert (step.retry is not None) is retried


@pytest.mark.parametrize("state", ["SUCCEEDED", "CANCELLED", "RUNNING"])
def test_w1_only_a_failure_is_retried(state: RunState) -> None:
    assert moved(run(attempts=3), state, DELAY).retry is None


def test_w1_a_failure_reported_twice_is_retried_once() -> None:
    step = moved(run("RUNNING", attempts=3), "FAILED", DELAY)
    assert updated(step.run, "FAILED", DELAY) is None


def test_w1_a_dropped_retry_leaves_its_run_failed() -> None:
    retrying = moved(run("RUNNING", attempts=3), "FAILED", DELAY).run
    step = moved(retrying, "FAILED")
    assert (step.run.state, step.run.announce, step.retry) == ("FAILED", ("FAILED",), None)


@pytest.mark.parametrize("state", ["STARTING", "RUNNING"])
def test_w1_a_run_being_cancelled_is_not_attempted_again(state: str) -> None:
    step = moved(run(state, attempts=3, cancel=True), "FAILED", DELAY)
    assert (step.run.state, step.run.announce, step.retry) == ("FAILED", ("FAILED",), None)


@pytest.mark.parametrize("state", ["CANCELLED", "FAILED", "SUCCEEDED"])
@pytest.mark.parametrize("reported", ["", "killed by EMR"])
def test_h1_the_reason_of_a_cancel_outlives_that_of_the_target(state: RunState, reported: str) -> None:
    wanted = run("RUNNING", cancel=True, reason="asked for by bob")
    both = "asked for by bob; killed by EMR" if state == "CANCELLED" else reported
    assert moved(wanted, state, reason=reported).run.reason.text == (both if reported else "asked for by bob")
    unwanted = replace(wanted, cancel=False)
    assert moved(unwanted, state, reason=reported).run.reason.text == reported


# -- announcements -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "state", "announced"),
    [
        (run("STARTING"), "RUNNING", ("STARTED",)),
        (run("STARTING"), "SUCCEEDED", ("STARTED", "COMPLETED")),
        (run("STARTING"), "FAILED", ("FAILED",)),
        (run("STARTING"), "CANCELLED", ("KILLED",)),
        (run("STARTING"), "ABORTED", ()),
        (run("RUNNING"), "SUCCEEDED", ("COMPLETED",)),
        (run("RUNNING"), "CANCELLED", ("KILLED",)),
        (run("RUNNING", announce=("STARTED",)), "SUCCEEDED", ("STARTED", "COMPLETED")),
        (run("RUNNING", announce=("STARTED",)), "FAILED", ("STARTED", "FAILED")),
    ],
)
def test_t10_statuses_are_announced_in_order_with_pending_ones(
    before: Run, state: RunState, announced: tuple[str, ...]
) -> None:
    after = moved(before, state).run
    assert after.announce == announced
    assert after.wake_at == (LATER if announced else None)


def test_t10_a_failed_attempt_that_is_retried_is_not_announced() -> None:
    assert moved(run("RUNNING", attempts=2), "FAILED", DELAY).run.announce == ()
    assert moved(run("RUNNING", attempts=2, attempt=2), "FAILED", DELAY).run.announce == ("FAILED",)


def test_t10_an_announcement_goes_page_by_page_then_the_next() -> None:
    unannounced = moved(run(), "SUCCEEDED").run

    halfway = complete.mark_announced(unannounced, "page-2", LATER)
    assert (halfway.announce, halfway.cursor) == (("STARTED", "COMPLETED"), "page-2")
    next_one = complete.mark_announced(halfway, None, LATER)
    assert (next_one.announce, next_one.cursor, next_one.wake_at) == (("COMPLETED",), None, LATER)
    done = complete.mark_announced(next_one, None, LATER)
    assert (done.announce, done.wake_at) == ((), None)
    assert [each.rev for each in (unannounced, halfway, next_one, done)] == [2, 3, 4, 5]


def test_t10_an_announced_page_stays_done_when_the_run_moves_on() -> None:
    halfway = complete.mark_announced(moved(run(), "RUNNING").run, "page-2", LATER)
    after = moved(halfway, "SUCCEEDED").run
    assert (after.announce, after.cursor) == (("STARTED", "COMPLETED"), "page-2")


def test_w7_an_active_run_is_polled_once_all_is_announced() -> None:
    answer = complete.mark_announced(moved(run(), "RUNNING").run, None, LATER)
    assert answer.wake_at == LATER + follow.SILENT_LATER


def test_t10_a_target_without_a_lifecycle_announces_nothing() -> None:
    quiet = complete.without_announcement(moved(run(), "SUCCEEDED").run)
    assert (quiet.announce, quiet.wake_at) == ((), None)


# -- permits -------------------------------------------------------------------------------------------------------


def test_c9_a_run_that_ends_releases_its_slots_and_wakes_waiters() -> None:
    before = run("RUNNING")
    step = moved(before, "SUCCEEDED")
    ended = Ended(RUN, LimitState(LIMIT), started_at=NOON, succeeded_at=LATER)
    assert complete.plan(before, step, {}, LATER) == [Replace(step.run), ReleasePermit(LIMIT, None, ended)]
    queued = LimitState(LIMIT, active=1, waiters=1)
    woken = ReleasePermit(LIMIT, LATER, replace(ended, read=queued))
    assert complete.plan(before, step, {LIMIT: queued}, LATER) == [Replace(step.run), woken]


def test_c9_an_active_run_keeps_its_permits() -> None:
    step = moved(run(), "RUNNING")
    assert complete.plan(run(), step, {}, LATER) == [Replace(step.run)]


def test_w1_failed_attempt_releases_permits_and_queues_its_retry() -> None:
    before = run("RUNNING", attempts=2)
    step = moved(before, "FAILED", DELAY)
    assert step.retry is not None
    back = ReleasePermit(LIMIT, None, Ended(RUN, LimitState(LIMIT)))
    assert complete.plan(before, step, {}, LATER) == [Replace(step.run), back, Create(step.retry)]


def test_w1_run_whose_retry_is_dropped_has_no_permits_to_release() -> None:
    before = run("RETRYING", attempts=2)
    step = moved(before, "FAILED")
    assert complete.plan(before, step, {}, LATER) == [Replace(step.run)]


@given(st.lists(st.tuples(st.sampled_from(STATES), st.booleans()), max_size=8), st.integers(1, 3))
@thorough
def test_c9_permits_are_released_and_statuses_announced_once(story: list[tuple[RunState, bool]], attempts: int) -> None:
    current, plans = run(attempts=attempts), []
    for state, may_retry in story:
        step = updated(current, state, DELAY if may_retry else None)
        if step is not None:
            plans.append(complete.plan(current, step, {}, LATER))
            current = step.run

    returned = [write for plan in plans for write in plan if isinstance(write, ReleasePermit)]
    assert len(returned) == (1 if states.is_terminal(current.state) else 0)
    assert len(set(current.announce)) == len(current.announce)
    assert "COMPLETED" not in current.announce or current.announce == ("STARTED", "COMPLETED")
    retries = [write for plan in plans for write in plan if isinstance(write, Create)]
    assert len(retries) <= 1
    assert [plan[0].row.rev for plan in plans if isinstance(plan[0], Replace)] == list(range(2, 2 + len(plans)))
