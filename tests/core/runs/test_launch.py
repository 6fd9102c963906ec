"""The effect of each answer to a start call on a run: the call may be repeated, but never starts a second run (C12,
W10).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow, launch
from chalicelib.core.targets import retries
from chalicelib.core.targets.answers import NoAnswer, NotNow, Started
from tests.core.builders import NOON, brief, run

CALLED = launch.calling(run(), NOON)


def test_w10_a_call_is_recorded_before_it_is_made() -> None:
    assert replace(run(), rev=2, calls=1, lease_until=CALLED.lease_until, wake_at=CALLED.wake_at) == replace(
        CALLED, start_requested_at=None
    )
    assert CALLED.start_requested_at == NOON
    assert CALLED.lease_until == CALLED.wake_at == NOON + launch.CALL_LEASE
    assert not CALLED.unknown_answer


def test_w10_a_call_with_unanswered_lease_may_have_started_run() -> None:
    again = launch.calling(CALLED, NOON + 3 * MINUTE)
    assert again.unknown_answer
    assert (again.calls, again.start_requested_at) == (2, NOON)


def test_c12_a_call_refused_for_the_moment_is_repeated_later() -> None:
    refused = launch.answered(CALLED, NotNow("throttled"), NOON)
    assert (refused.lease_until, refused.reason.text, refused.unknown_answer) == (None, "throttled", False)
    assert refused.wake_at == NOON + retries.backoff(1, refused.run_id)
    assert not launch.calling(refused, NOON + MINUTE).unknown_answer


def test_w7_a_started_run_without_news_is_polled() -> None:
    started = launch.answered(CALLED, Started("app-1/r1"), NOON)
    assert (started.state, started.target_id, started.reason.text) == ("STARTING", "app-1/r1", "")
    assert (started.lease_until, started.wake_at) == (None, NOON + follow.SILENT_FIRST)


def test_w10_a_started_run_waits_for_no_further_call() -> None:
    queued = replace(CALLED, queued_in="policy:demo.night", rank="4")
    started = launch.answered(queued, Started("app-1/r1"), NOON)
    assert (started.queued_in, started.rank) == (None, None)
    ended = launch.answered(replace(queued, cancel=True), Started("app-1/r1"), NOON)
    assert (ended.queued_in, ended.rank) == (None, None)
    refused = launch.answered(queued, NotNow("throttled"), NOON)
    assert (refused.queued_in, refused.rank) == ("policy:demo.night", "4")


def test_w10_an_unknown_answer_stays_after_later_answers() -> None:
    silent = launch.answered(CALLED, NoAnswer("timed out"), NOON)
    assert silent.unknown_answer
    assert silent.reason.text == "timed out"
    for answer in (NotNow("throttled"), NoAnswer("again"), Started("x")):
        assert launch.answered(launch.calling(silent, NOON + MINUTE), answer, NOON + MINUTE).unknown_answer


@pytest.mark.parametrize("answer", [NotNow("x"), NoAnswer("x"), Started("x")])
def test_every_answer_adds_a_revision_and_resets_the_leases(answer: NotNow | NoAnswer | Started) -> None:
    tired = replace(CALLED, leases=7)
    after = launch.answered(tired, answer, NOON)
    assert (after.rev, after.leases, after.calls) == (tired.rev + 1, 0, tired.calls)


@pytest.mark.parametrize(
    ("made", "sure"),
    [
        (run(), True),
        (CALLED, False),
        (launch.answered(CALLED, NotNow("x"), NOON), True),
        (launch.answered(CALLED, NoAnswer("x"), NOON), False),
        (launch.answered(CALLED, Started("x"), NOON), False),
    ],
)
def test_c13_a_slot_is_released_only_if_surely_nothing_started(made: Run, sure: bool) -> None:
    assert launch.surely_not_started(made) is sure


@given(st.lists(st.sampled_from(["refused", "silent", "died"]), max_size=6))
@brief
def test_c13_surely_not_started_means_every_call_was_refused(story: list[str]) -> None:
    made, now = run(), NOON
    for what in story:
        now += 5 * MINUTE
        made = launch.calling(made, now)
        if what != "died":
            made = launch.answered(made, NotNow("busy") if what == "refused" else NoAnswer("?"), now)
    assert launch.surely_not_started(made) is (set(story) <= {"refused"})


@given(st.integers(1, 100), st.text(st.characters(exclude_categories=["Cs"])))
@brief
def test_c12_backoff_is_deterministic_between_1s_and_5_minutes(calls: int, run_id: str) -> None:
    delay = retries.backoff(calls, run_id)
    assert SECOND <= delay <= 5 * MINUTE
    assert delay == retries.backoff(calls, run_id)


def test_c12_backoff_doubles_with_each_call_up_to_its_bound() -> None:
    for calls in range(1, 12):
        span = min(SECOND * 2**calls, 5 * MINUTE)
        assert span / 2 <= retries.backoff(calls, "r") <= span


def test_c12_calls_refused_together_are_repeated_scattered() -> None:
    assert len({retries.backoff(5, f"run-{number}") for number in range(100)}) > 90
