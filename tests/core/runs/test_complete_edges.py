"""What a step of a run leaves to announce, which schedules learn of a backfill's end, and which fields a
step resets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.schedule import Failures
from chalicelib.core.runs import complete
from chalicelib.core.runs.complete import Advance
from chalicelib.core.states import RunState
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import CountFailure, Create, Put, Replace, WakeBackfill
from tests.core.builders import NAME, NOON, run

LATER = NOON + 30 * SECOND
DELAY = 2 * MINUTE


def step(before: Any, state: RunState, delay: int | None = None, **fields: Any) -> Advance:
    found = complete.advance(before, RunUpdate(state, NOON + SECOND, **fields), LATER, delay)
    assert found is not None
    return found


# -- announcements (T10) -------------------------------------------------------------------------------------------


def test_t10_only_added_statuses_are_new_and_failures_are_kept() -> None:
    before = run("RUNNING", announce=("STARTED",))
    done = step(before, "SUCCEEDED")
    assert done.run.announce == ("STARTED", "COMPLETED")
    assert complete.newly_announced(before, done) == ("COMPLETED",)
    failed = step(before, "FAILED")
    assert failed.run.announce == ("STARTED", "FAILED")
    assert complete.newly_announced(before, failed) == ()
    assert complete.newly_announced(run(), step(run(), "SUCCEEDED")) == ("STARTED", "COMPLETED")


def test_t10_an_unneeded_status_is_removed_and_polled_later() -> None:
    answer = step(run(), "RUNNING")
    assert (answer.run.announce, answer.run.wake_at) == (("STARTED",), LATER)
    quiet = complete.drop_statuses(answer, {"STARTED"}, LATER)
    assert (quiet.run.announce, quiet.retry) == ((), answer.retry)
    assert quiet.run == replace(answer.run, announce=(), wake_at=complete.wake_of(quiet.run, LATER))
    assert quiet.run.wake_at is not None
    assert quiet.run.wake_at > LATER, "polled like a run whose start is announced"
    assert complete.drop_statuses(answer, set(), LATER) == answer
    both = step(run(), "SUCCEEDED")
    assert complete.drop_statuses(both, {"STARTED"}, LATER).run.announce == ("COMPLETED",)


def test_t10_a_status_needed_after_all_is_announced_last() -> None:
    before = run("SUCCEEDED", announce=("STARTED",), rev=4)
    unannounced = complete.add_statuses(before, ["COMPLETED"], LATER)
    assert unannounced == replace(before, announce=("STARTED", "COMPLETED"), rev=5, wake_at=LATER)


def test_t10_announced_status_is_removed_with_cursor_and_leases() -> None:
    before = run("SUCCEEDED", announce=("STARTED", "COMPLETED"), cursor="page 3", rev=4, leases=7)
    answer = complete.mark_announced(before, None, LATER)
    assert answer == replace(before, announce=("COMPLETED",), cursor=None, rev=5, leases=0, wake_at=LATER)
    page = complete.mark_announced(before, "page 4", LATER)
    assert page == replace(before, cursor="page 4", rev=5)


def test_l13_a_run_without_a_lifecycle_is_finished_at_once() -> None:
    before = run("SUCCEEDED", announce=("STARTED",), wake_at=LATER)
    assert complete.without_announcement(before) == replace(before, announce=(), wake_at=None)


# -- what is written (L12, L19, W1) --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backfill", "state", "delay", "wakes"),
    [
        ("b1", "SUCCEEDED", None, True),
        ("b1", "FAILED", None, True),
        ("b1", "RUNNING", None, False),
        ("b1", "FAILED", DELAY, False),
        (None, "SUCCEEDED", None, False),
    ],
)
def test_l12_a_backfill_continues_when_one_of_its_jobs_has_ended(
    backfill: str | None, state: Any, delay: int | None, wakes: bool
) -> None:
    before = run("STARTING", backfill=backfill, attempts=2)
    writes = complete.plan(before, step(before, state, delay), {}, LATER)
    woken = [write for write in writes if isinstance(write, WakeBackfill)]
    assert woken == ([WakeBackfill(NAME, "b1", LATER)] if wakes else [])


@pytest.mark.parametrize(
    ("pause_after", "state", "delay", "tally"),
    [
        (3, "FAILED", None, CountFailure(NAME)),
        (3, "SUCCEEDED", None, Put(Failures(NAME, 0))),
        (3, "RUNNING", None, None),
        (3, "FAILED", DELAY, None),
        (None, "FAILED", None, None),
        (None, "SUCCEEDED", None, None),
    ],
)
def test_l19_failures_in_a_row_count_only_where_a_hold_follows(
    pause_after: int | None, state: Any, delay: int | None, tally: Any
) -> None:
    before = run("STARTING", pause_after=pause_after, attempts=2)
    writes = complete.plan(before, step(before, state, delay), {}, LATER)
    counted = [w for w in writes if isinstance(w, CountFailure) or (isinstance(w, Put) and isinstance(w.row, Failures))]
    assert counted == ([tally] if tally else [])


def test_w1_the_next_attempt_is_created_in_write_ending_this_one() -> None:
    before = run("RUNNING", attempts=2)
    retried = step(before, "FAILED", DELAY, reason="out of memory")
    writes = complete.plan(before, retried, {}, LATER)
    assert Create(retried.retry) in writes
    assert Replace(retried.run) in writes


def test_w1_an_attempt_keeps_every_identifying_field_of_its_run() -> None:
    before = run(
        "RUNNING", attempts=4, attempt=2, backfill="b1", rerun_of="r0", priority=7, number=12, correlation={"day": "1"}
    )
    retry = step(before, "FAILED", DELAY, reason="lost").retry
    assert retry is not None
    assert (retry.schedule, retry.generation, retry.attempt) == (before.schedule, before.generation, 3)
    assert (retry.backfill, retry.rerun_of, retry.priority, retry.number) == ("b1", "r0", 7, 12)
    assert retry.sort_key == f"RETRY#{before.run_id}#3"
    assert retry.reason.text == "attempt 2 of 4 failed: lost"


# -- fields of a step ----------------------------------------------------------------------------------------------


def test_every_step_adds_a_revision_and_leaves_the_queue() -> None:
    before = run(queued_in="emr:app-1", rank="5", leases=3, rev=8)
    after = step(before, "RUNNING", target_id="jr1").run
    assert (after.rev, after.state_at, after.leases) == (9, LATER, 0)
    assert (after.queued_in, after.rank) == (None, None)
    assert (after.target_id, after.started_at, after.running_seen_at) == ("jr1", NOON + SECOND, LATER)
    assert step(after, "SUCCEEDED", target_id="jr1").run.target_id == "jr1"


@pytest.mark.parametrize(("state", "kept"), [("SUCCEEDED", (5, 6, 7)), ("FAILED", (5, 6, 7)), ("RUNNING", (1, 2, 3))])
def test_h1_costs_count_when_the_run_has_ended(state: Any, kept: tuple[int, ...]) -> None:
    assert step(run(billed=(1, 2, 3)), state, billed=(5, 6, 7)).run.billed == kept
    assert step(run(billed=(1, 2, 3)), state).run.billed == (1, 2, 3)


def test_w5_metrics_are_replaced_by_newer_ones_or_kept() -> None:
    before = run(metrics={"rows": 1})
    assert step(before, "SUCCEEDED", metrics={"rows": 2}).run.metrics == {"rows": 2}
    assert step(before, "SUCCEEDED").run.metrics == {"rows": 1}


def test_h1_a_success_without_a_start_began_at_its_report_or_end() -> None:
    late = step(run(), "SUCCEEDED").run
    assert (late.started_at, late.ended_at, late.running_seen_at) == (
        NOON + SECOND,
        NOON + SECOND,
        LATER,
    )
    exact = step(run(), "SUCCEEDED", started_at=NOON).run
    assert (exact.started_at, exact.ended_at) == (NOON, NOON + SECOND)
    known = step(run("RUNNING", started_at=NOON - 5), "FAILED", started_at=NOON).run
    assert known.started_at == NOON - 5


@pytest.mark.parametrize(
    ("outcome", "state", "kept"),
    [
        ("failed", "FAILED", None),
        ("timed_out", "FAILED", "timed_out"),
        ("lost", "FAILED", "lost"),
        ("lost", "SUCCEEDED", None),
    ],
)
def test_w1_the_outcome_of_a_run_is_kept_unless_it_failed_itself(outcome: Any, state: Any, kept: str | None) -> None:
    assert step(run("RUNNING"), state, outcome=outcome).run.outcome == kept
