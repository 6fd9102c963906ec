"""Timeouts that are stopped while a schedule is paused (C10, L4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.instants import HOUR, MINUTE, Instant
from chalicelib.core.jobs import timeout
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.schedules import lifecycle
from tests.core.builders import NOON, job, schedule, schedule_state, thorough

ME = "alice"
LATER = NOON + HOUR


def held(stop: bool) -> ScheduleState:
    """A schedule that was put on hold at one o'clock."""
    return lifecycle.pause(schedule_state(), schedule(), "hold", stop, LATER, ME)[0]


def test_l4_a_stopped_timeout_pauses_from_the_pause_to_resume() -> None:
    stopped = held(stop=True)
    assert stopped.pauses == ((LATER, None),)
    resumed, _ = lifecycle.resume(stopped, schedule(), LATER + 5 * HOUR, ME)
    assert resumed.pauses == ((LATER, LATER + 5 * HOUR),)
    two_hours = schedule(timeout={"after": "2h"})
    assert timeout.deadline_of(job(), two_hours, stopped) is None
    assert timeout.deadline_of(job(), two_hours, resumed) == NOON + 7 * HOUR
    assert timeout.deadline_of(job(), two_hours, held(stop=False)) == NOON + 2 * HOUR
    assert timeout.deadline_of(job(created_at=LATER + 5 * HOUR), two_hours, resumed) == LATER + 7 * HOUR


def test_l4_a_timeout_that_ended_before_the_pause_has_ended() -> None:
    assert timeout.deadline_of(job(), schedule(timeout={"after": "1h"}), held(stop=True)) == LATER


def test_l4_only_the_last_pauses_are_remembered() -> None:
    current = schedule_state()
    for number in range(lifecycle.MAX_PAUSES + 5):
        at = NOON + number * HOUR
        current, _ = lifecycle.pause(current, schedule(), "hold", True, at, ME)
        current, _ = lifecycle.resume(current, schedule(), at + MINUTE, ME)
    assert len(current.pauses) == lifecycle.MAX_PAUSES
    assert current.pauses[-1] == (at, at + MINUTE)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), st.integers(1, 30), st.integers(-20, 40),
    st.booleans(),
)  # fmt: skip
@thorough
def test_c10_a_timeout_counts_only_the_time_outside_pauses(
    spans: list[tuple[int, int]], minutes: int, created: int, ongoing: bool
) -> None:
    """Minutes before each pause, and its length. Counted minute by minute, a minute of a pause does not count."""
    pauses, at = [], 0
    for until, length in spans:
        pauses.append((at + until, at + until + length))
        at = pauses[-1][1]
    counted = [(NOON + began * MINUTE, NOON + ended * MINUTE) for began, ended in pauses]
    answer: list[tuple[Instant, Instant | None]] = list(counted)
    if ongoing:
        pauses.append((at, 10_000))
        answer.append((NOON + at * MINUTE, None))

    made = job(created_at=NOON + created * MINUTE)
    deadline = timeout.deadline_of(
        made, schedule(timeout={"after": f"{minutes}m"}), schedule_state(pauses=tuple(answer))
    )

    minute, passed = created, 0
    while passed < minutes and minute < 10_000:
        passed += not any(began <= minute < ended for began, ended in pauses)
        minute += 1
    assert deadline == (None if passed < minutes else NOON + minute * MINUTE)
