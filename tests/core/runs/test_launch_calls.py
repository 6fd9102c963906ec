"""A start call from its record to its answer: the whole row of the run after each step (C12, W10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.limits.permits import Pace
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch
from chalicelib.core.runs.launch import Span
from chalicelib.core.targets import retries
from chalicelib.core.targets.answers import NoAnswer, NotNow, Started
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

LEASE_END = NOON + 50 * SECOND
# A run that queued at its pace, was served, and may call now.
WAITED = rows.run(
    calls=2,
    start_requested_at=NOON - MINUTE,
    paced_from=NOON - 5,
    paced_until=NOON + 5,
    queued_in="emr:app-1",
    rank="4#x",
    rev=6,
)
CALLING = rows.run(calls=3, lease_until=LEASE_END, rev=7, leases=4, reason="throttled", wake_at=LEASE_END)

# -- before the call -----------------------------------------------------------------------------------------------


def test_w10_a_recorded_call_has_a_lease_and_uses_up_its_permits() -> None:
    assert launch.calling(WAITED, NOON) == replace(
        WAITED,
        calls=3,
        lease_until=LEASE_END,
        start_requested_at=NOON - MINUTE,
        paced_from=None,
        paced_until=None,
        queued_in=None,
        rank=None,
        rev=7,
        wake_at=LEASE_END,
    )


def test_t4_the_first_call_is_when_the_start_was_requested() -> None:
    assert launch.calling(rows.run(), NOON + 3) == rows.run(
        calls=1, lease_until=LEASE_END + 3, start_requested_at=NOON + 3, rev=2, wake_at=LEASE_END + 3
    )


def test_w10_a_call_whose_caller_died_may_have_started_the_run() -> None:
    left = rows.run(calls=1, lease_until=NOON - 1, start_requested_at=NOON - MINUTE)
    assert launch.calling(left, NOON).unknown_answer is True
    assert launch.calling(replace(left, lease_until=None), NOON).unknown_answer is False
    assert launch.calling(replace(left, lease_until=None, unknown_answer=True), NOON).unknown_answer is True


# -- a call that is not made after all -----------------------------------------------------------------------------


def test_e3_a_call_not_made_is_undone_and_its_permits_stay() -> None:
    called = replace(launch.calling(WAITED, NOON), cancel=True, reason=says("throttled"))
    assert launch.uncalled(WAITED, called, Span(NOON + 1, NOON + 2), NOON + 7) == replace(
        WAITED,
        cancel=True,  # later writes of other invocations are kept
        reason=says("throttled"),
        paced_from=NOON + 1,
        paced_until=NOON + 2,
        queued_in=None,
        rank=None,
        rev=8,
        wake_at=NOON + 7,
    )


def test_e3_a_call_not_made_has_no_permits_if_they_are_gone() -> None:
    before = rows.run(lease_until=NOON - 1)  # an earlier call was never answered
    called = replace(launch.calling(before, NOON), paced_from=NOON, paced_until=NOON)
    assert called.unknown_answer
    assert launch.uncalled(before, called, None, NOON + 7) == replace(before, rev=3, wake_at=NOON + 7)


def test_the_reason_of_a_finished_wait_is_removed_unless_newer() -> None:
    waited = replace(WAITED, reason=says("waits for its turn"))
    called = launch.calling(waited, NOON)
    assert launch.uncalled(waited, called, None, NOON).reason.text == ""
    assert launch.uncalled(waited, replace(called, reason=says("refused")), None, NOON).reason.text == "refused"
    at_once = replace(waited, queued_in=None)
    assert launch.uncalled(at_once, called, None, NOON).reason.text == "waits for its turn"


# -- after the answer ----------------------------------------------------------------------------------------------


def test_w7_a_started_run_is_followed_without_a_lease_or_reason() -> None:
    assert launch.answered(CALLING, Started("app-1/r1"), NOON) == replace(
        CALLING,
        target_id="app-1/r1",
        lease_until=None,
        reason=says(""),
        rev=8,
        leases=0,
        wake_at=NOON + 2 * MINUTE,
        state_at=NOON,
    )


def test_w6_a_run_started_during_its_cancel_is_handled_at_once() -> None:
    wanted = replace(CALLING, cancel=True)
    assert launch.answered(wanted, Started("app-1/r1"), NOON + 3) == replace(
        wanted, target_id="app-1/r1", lease_until=None, rev=8, leases=0, wake_at=NOON + 3, state_at=NOON + 3
    )


def test_c12_a_refusal_ends_the_lease_and_its_delay_is_kept() -> None:
    assert launch.answered(CALLING, NotNow("at capacity", 7 * SECOND), NOON) == replace(
        CALLING, lease_until=None, reason=says("at capacity"), rev=8, leases=0, wake_at=NOON + 7 * SECOND
    )
    assert launch.answered(CALLING, NotNow("at capacity", 0), NOON).wake_at == NOON


def test_w10_an_unknown_answer_keeps_lease_and_is_polled_later() -> None:
    assert launch.answered(CALLING, NoAnswer("timed out", 9 * SECOND), NOON) == replace(
        CALLING, unknown_answer=True, reason=says("timed out"), rev=8, leases=0, wake_at=NOON + 9 * SECOND
    )


@pytest.mark.parametrize("kind", ["batch", "glue"])
def test_w10_without_a_token_nothing_calls_before_the_search(kind: str) -> None:
    """Also if the run is to be RUNNING sooner, and queues for the next call because the answer was late."""
    target = {"type": kind}
    called = replace(CALLING, request=replace(CALLING.request, target=target), start_requested_at=NOON)
    called = replace(called, start_timeout=9 * SECOND, queued_in="emr:app-1", rank="4")
    silent = launch.answered(called, NoAnswer("timed out", MINUTE), NOON)
    assert (silent.lease_until, silent.wake_at, silent.unknown_answer) == (NOON + MINUTE, NOON + MINUTE, True)
    assert (silent.queued_in, silent.rank, launch.is_on_record(silent)) == (None, None, True)
    assert launch.is_being_called(silent, NOON + MINUTE - 1) and not launch.is_being_called(silent, NOON + MINUTE)
    again = launch.calling(silent, NOON + MINUTE)
    assert again.unknown_answer and launch.is_being_called(again, NOON + MINUTE + 1)


def test_c12_an_answer_without_a_delay_is_followed_by_backoff() -> None:
    ninth = replace(CALLING, run_id="run-75713", calls=9)
    assert launch.answered(ninth, NotNow("throttled"), NOON).wake_at == NOON + 5 * MINUTE
    assert launch.answered(ninth, NoAnswer("timed out"), NOON).wake_at == NOON + 5 * MINUTE


# The digest of run-75713 and 9 begins with ffff, that of run-90600 and 9 with 0000: the ends of the jitter.
@pytest.mark.parametrize(("salt", "delay"), [("run-75713", 300_000), ("run-90600", 150_000)])
def test_c12_the_ninth_backoff_is_within_2_and_half_to_5_minutes(salt: str, delay: int) -> None:
    assert retries.backoff(9, salt) == delay
    assert retries.scattered(2 * MINUTE, 9, salt) == delay * 2 // 5


def test_c12_the_jitter_of_a_run_differs_from_call_to_call() -> None:
    assert [retries.scattered(MINUTE, number, "run-1") for number in (1, 2)] == [30_356, 47_243]


# -- the answers that are certain ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "sure"),
    [
        (rows.run(calls=1), True),
        (rows.run(unknown_answer=True), False),
        (rows.run(target_id="app-1/r1"), False),
        (rows.run(lease_until=NOON), False),
    ],
)
def test_c13_each_trace_of_a_possibly_successful_call_counts(made: Run, sure: bool) -> None:
    assert launch.surely_not_started(made) is sure


def test_e3_permits_last_as_long_as_the_strictest_pace_allows() -> None:
    patient, strict = Pace("emr:app-1", SECOND, 20), Pace("policy:demo.night", MINUTE, 1, tolerance=300)
    assert launch.paced_until([patient, strict], NOON) == NOON + 300
    assert launch.paced_until([patient], NOON) == NOON + 2 * SECOND
    assert launch.paced_until([], NOON) is None
