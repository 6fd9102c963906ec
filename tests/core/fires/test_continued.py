"""A timer that goes on in another generation divides its fires by the instant of the update (L6, T1, T6, E2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import continued, fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from tests.core.builders import ABSENT, ELAPSED, NAME, NOON, any_of, brief, schedule, schedule_state

EVERY: dict[str, Any] = {"type": "time", "expression": "@every 1m"}
AHEAD = 135 * SECOND
END = NOON + 20 * MINUTE
DOCUMENTS: list[dict[str, Any]] = [
    {"trigger": EVERY},
    {"trigger": EVERY | {"repeats": 5}},
    {"trigger": EVERY | {"expression": "R5/PT1M"}},
    {"trigger": EVERY | {"jitter": "50s", "repeats": 7}},
    {"trigger": {"type": "time", "expression": "* * * * *", "jitter": "40s"}},
    {"trigger": {"type": "time", "due_time": iso(NOON + 4 * MINUTE), "jitter": "3m"}},
    {"trigger": EVERY, "spread": {"count": 7, "over": "90s"}},
    {"trigger": EVERY | {"repeats": 3, "jitter": "20s"}, "spread": {"count": 9, "over": "5m"}},
    {"trigger": EVERY, "ttl": iso(NOON + 6 * MINUTE)},
]
CLEAN = schedule_state(generation=7, since=NOON)
LATER = replace(CLEAN, generation=8, version=2, former=(7,))
Fire = tuple[Instant, int]  # nominal instant and number


def made(document: dict[str, Any], **fields: Any) -> Schedule:
    fields = {**document, **fields}
    return schedule(fields.pop("trigger"), **fields)


def first_timer(of: Schedule) -> Timer:
    found = fire_timer.first_timer(of, CLEAN, NOON)
    assert found is not None
    return found


def emitted(timer: Timer, of: Schedule, now: Instant) -> tuple[Timer, list[Job]]:
    """The fires that a tick at ``now`` prepares."""
    fires: list[Job] = []
    while timer.wake_at is not None and timer.wake_at < now + AHEAD:
        emission = fire_timer.emit(timer, of, now, now + AHEAD)
        if not emission.fires:
            break
        timer, fires = emission.timer, fires + list(emission.fires)
    return timer, fires


def ticks(timer: Timer, of: Schedule, start: Instant, end: Instant) -> tuple[Timer, list[Job]]:
    fires: list[Job] = []
    for now in range(start, end, MINUTE):
        timer, more = emitted(timer, of, now)
        fires += more
    return timer, fires


def keys(fires: list[Job]) -> list[Fire]:
    return sorted((fire.nominal_of(job), job.index) for job in fires if (job.due_at or 0) < END)


@brief
@given(st.sampled_from(DOCUMENTS), st.integers(0, 15 * MINUTE // 100), st.booleans())
def test_l6_each_fire_belongs_to_one_generation(document: dict[str, Any], tenths: int, outage: bool) -> None:
    """``outage``: the emitter has not run for some minutes."""
    old, now = made(document), NOON + 100 * tenths
    new = made(document, priority=9)
    undisturbed = ticks(first_timer(old), old, NOON, END)[1]
    before, prepared = ticks(first_timer(old), old, NOON, now + 1 - 3 * MINUTE * outage)
    own = [job for job in prepared if job.due_at is not None and job.due_at > now]
    known = own if continued.asks_for_prepared(before, old, new) else []

    after = continued.continued(before, old, new, LATER, known, now)
    later = emitted(after, new, now)
    again = later[1] + ticks(later[0], new, now + MINUTE, END)[1]

    left = [job for job in prepared if job not in own]
    assert keys(left + again) == keys(undisturbed)
    assert {job.generation for job in again} <= {8}
    assert (after.anchor, after.generation, after.version, after.rev) == (NOON, 8, 2, before.rev + 1)
    state = replace(LATER, generation=now, since=now)
    assert all(continued.is_again(job, state, new) for job in own)
    assert set(keys(own)) <= set(keys(again))


@pytest.mark.parametrize(
    ("upcoming", "now", "after"),
    [
        (NOON + 4 * HOUR, NOON + HOUR, NOON + 4 * HOUR),
        (NOON + 8 * HOUR, NOON + 4 * HOUR - 1, NOON + 4 * HOUR),  # its fire is prepared
        (NOON + 8 * HOUR, NOON + 4 * HOUR, NOON + 8 * HOUR),  # its fire is due
        (NOON + 4 * HOUR, NOON + 4 * HOUR + 1, NOON + 4 * HOUR),  # an outage
    ],
)
def test_t13_a_span_goes_on(upcoming: Instant, now: Instant, after: Instant) -> None:
    old, new = schedule(ELAPSED), schedule(ELAPSED, priority=9)
    timer = Timer(NAME, 7, 1, NOON, {"0": upcoming})
    assert continued.continued(timer, old, new, LATER, (), now).next == {"0": after}


def test_t13_the_last_fire_before_the_end_is_prepared_again() -> None:
    end = NOON + 5 * HOUR
    old, new = schedule(ELAPSED, ttl=iso(end)), schedule(ELAPSED, ttl=iso(end), priority=9)
    timer = Timer(NAME, 7, 1, NOON, {})
    now = NOON + 4 * HOUR - MINUTE
    job = fire.fire_of(timer, "0", NOON + 4 * HOUR, NOON + 4 * HOUR)
    assert continued.asks_for_prepared(timer, old, new)
    assert continued.continued(timer, old, new, LATER, [job], now).next == {"0": NOON + 4 * HOUR}
    assert continued.continued(timer, old, new, LATER, [], now + HOUR).next == {}


def test_t18_a_deadline_goes_on_and_arrivals_are_kept() -> None:
    by_six = ABSENT | {"within": None, "deadline": "18:00"}
    tree = any_of(by_six, ABSENT)
    old, new = schedule(tree), schedule(tree, priority=9)
    timer = Timer(NAME, 7, 1, NOON, {"0": NOON + 30 * HOUR, "1": NOON + 90 * MINUTE}, arrived={"1": NOON + 9})
    after = continued.continued(timer, old, new, LATER, (), NOON + HOUR)
    assert (after.next, after.arrived) == (
        {"0": NOON + 6 * HOUR, "1": NOON + 90 * MINUTE},
        {"1": NOON + 9},
    )


def test_l6_a_fire_that_the_update_no_longer_has_is_lost_work() -> None:
    job = fire.fire_of(Timer(NAME, 7, 1, NOON, {}), "0", NOON, NOON + MINUTE, 1)
    state = replace(LATER, generation=NOON + SECOND, since=NOON + SECOND)
    two = schedule(EVERY, spread={"count": 2})
    assert continued.is_again(job, state, two)
    assert not continued.is_again(job, state, schedule(EVERY))
    ahead = replace(job, nominal_at=NOON + 30 * SECOND)
    assert continued.is_again(ahead, state, schedule(EVERY)), "it comes with one event, and loses none"
    assert continued.is_again(job, replace(state, mode="disabled"), two), "the disable has put it on record"
    assert not continued.is_again(job, replace(state, former=()), two)
    assert not continued.is_again(job, replace(state, generation=NOON + MINUTE), two), "it was due at the update"
    assert not continued.is_again(replace(job, kind="run_now"), state, two)


def test_c13_only_fires_soon_after_an_update_may_have_run_before() -> None:
    state = replace(LATER, since=NOON)
    timer = Timer(NAME, 8, 2, NOON, {})
    soon = fire.fire_of(timer, "0", NOON + MINUTE, NOON + MINUTE)
    before = continued.double_of(soon, state)
    assert before is not None
    assert before.job_id == fire.fire_of(replace(timer, generation=7), "0", NOON + MINUTE, NOON + MINUTE).job_id
    late = fire.fire_of(timer, "0", NOON + MINUTE + 1, NOON + MINUTE + 1)
    assert continued.double_of(late, state) is None
    assert continued.double_of(soon, replace(state, former=())) is None
