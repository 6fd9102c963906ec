"""A job after events have been applied to it: bytes, windows, silences, absences, detached jobs (T9, T12-T18, C11).

Counting in general is in `test_match.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Gathered, Touch
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from tests.core.builders import (
    ABSENT,
    LIMIT,
    NAME,
    NOON,
    ORDERS,
    PARTITION,
    QUIET,
    SIZE,
    WEATHER,
    all_of,
    any_of,
    at,
    at_least,
    came,
    job,
    partition_event,
    schedule,
    thorough,
)

ROW = Subscription("any", NAME, 7, 1, "0", NOON)
BOTH = all_of(PARTITION, WEATHER, within="1h")
SILENT = all_of(QUIET, WEATHER, within="1h")  # both, then ten minutes without another partition
GB = 10**9


def event(name: str, instant: Instant = NOON, **fields: Any) -> Event:
    return replace(at(partition_event(name), instant), **fields)


def apply(
    before: Job | None, what: Event | None, document: dict[str, Any], now: Instant, leaves: str = "0", against: str = ""
) -> Gathered:
    touches = [Touch(what, tuple(leaves))] if what else []
    return gather.gather(before, touches, schedule(document), ROW, None, now, tuple(against))


def grown(*args: Any, **fields: Any) -> Job:
    made = apply(*args, **fields)
    assert made.dropped is None
    assert made.job is not None
    return made.job


def rows(*leaves: str) -> list[Subscription]:
    return [replace(ROW, leaf=leaf) for leaf in leaves]


# -- bytes ---------------------------------------------------------------------------------------------------------


def test_t9_the_bytes_of_objects_add_up_until_there_are_enough() -> None:
    first = grown(None, event("a", size=4 * GB), SIZE, NOON)
    assert (first.met_at, first.leaves) == (None, {"0": came(1, amount=4 * GB)})
    second = grown(first, event("b", NOON + MINUTE, size=6 * GB), SIZE, NOON + MINUTE)
    assert (second.met_at, second.leaves["0"].amount) == (NOON + MINUTE, 10 * GB)


def test_t9_an_object_without_a_known_size_counts_as_none() -> None:
    assert grown(None, event("a"), SIZE, NOON).leaves == {"0": came(1, amount=0)}


# -- the window of a partial match ---------------------------------------------------------------------------------


def test_t14_a_partial_match_is_checked_when_its_window_ends() -> None:
    assert grown(None, event("a"), BOTH, NOON).wake_at == NOON + HOUR
    short = gather.gather(None, [Touch(event("a"), ("0",))], schedule(BOTH, timeout={"after": "5m"}), ROW, None, NOON)
    assert short.job is not None
    assert short.job.wake_at == NOON + 5 * MINUTE


def test_t14_an_event_in_time_completes_the_match() -> None:
    half = grown(None, event("a"), BOTH, NOON)
    assert grown(half, event("b", NOON + HOUR - 1), BOTH, NOON + HOUR - 1, leaves="1").met_at == NOON + HOUR - 1


@pytest.mark.parametrize("late", [HOUR, 5 * HOUR])
def test_t14_an_event_after_the_window_begins_new_match_at_once(late: int) -> None:
    half, now = grown(None, event("a"), BOTH, NOON), NOON + late

    fresh = apply(half, event("b", now), BOTH, now, leaves="1")

    assert fresh.job is not None
    assert (fresh.job.leaves, fresh.job.created_at, fresh.job.met_at) == ({"1": came(1, now)}, now, None)
    assert fresh.job.job_id != half.job_id
    assert (fresh.job.sort_key, fresh.job.rev) == (half.sort_key, half.rev + 1), "it is put over the old one"
    assert fresh.job.wake_at == now + HOUR
    record = fresh.dropped
    assert record is not None
    assert (record.id, record.kind, record.created_at) == (half.job_id, "EXPIRED", NOON)
    assert (record.recorded_at, record.expires_at) == (now, now + 180 * DAY)
    assert record.reason.text == (
        "the partial match was not completed within 1h and is dropped: "
        "1 partition of demo.flights came at 2026-03-02T12:00:00.000Z"
    )


def test_t14_an_event_after_the_window_may_meet_trigger_alone() -> None:
    one_of_two = at_least(1, all_of(PARTITION, PARTITION), WEATHER, within="1h")
    half = grown(None, event("a"), one_of_two, NOON)
    fresh = apply(half, event("b", NOON + HOUR), one_of_two, NOON + HOUR, leaves="2")
    assert fresh.job is not None
    assert (fresh.job.met_at, fresh.dropped and fresh.dropped.kind) == (NOON + HOUR, "EXPIRED")


def test_t14_a_complete_match_does_not_expire() -> None:
    whole = grown(grown(None, event("a"), BOTH, NOON), event("b"), BOTH, NOON, leaves="1")
    assert not gather.has_expired(whole, schedule(BOTH), NOON + 9 * HOUR)
    later = grown(whole, event("c", NOON + 9 * HOUR), BOTH, NOON + 9 * HOUR)
    assert (later.job_id, later.leaves["0"].count) == (whole.job_id, 2)


def silent(last: int) -> Job:
    """Both partitions arrived at noon, and another one ``last`` minutes later. The job is not checked after that."""
    half = grown(None, event("w"), SILENT, NOON, leaves="1")
    then = NOON + last * MINUTE
    return grown(grown(half, event("a"), SILENT, NOON), event("b", then), SILENT, then)


@pytest.mark.parametrize(("last", "in_time"), [(0, True), (50, True), (51, False), (59, False)])
@pytest.mark.parametrize("checked", [HOUR, 9 * HOUR])
def test_t14_a_match_completed_by_quiet_in_time_never_expires(last: int, in_time: bool, checked: int) -> None:
    """A match that only time after the window would complete has expired."""
    waiting = silent(last)
    assert waiting.met_at is None
    assert not gather.has_expired(waiting, schedule(SILENT), NOON + HOUR - 1)
    assert gather.has_expired(waiting, schedule(SILENT), NOON + checked) is not in_time


@pytest.mark.parametrize("last", [0, 50, 51])
@pytest.mark.parametrize("checked", [False, True])
def test_t14_an_event_that_ends_a_quiet_late_begins_next_match(last: int, checked: bool) -> None:
    """Whether or not the match was checked before: an event of now belongs to no window of an hour ago."""
    now, waiting = NOON + 2 * HOUR, silent(last)
    if checked:
        waiting = gather.refresh(waiting, schedule(SILENT), NOON + last * MINUTE + 10 * MINUTE)
    step = apply(waiting, event("c", now), SILENT, now)
    assert step.dropped is not None
    assert (step.dropped.id, step.dropped.kind) == (waiting.job_id, "EXPIRED")
    assert step.job is not None
    assert (step.job.leaves, step.job.created_at, step.job.met_at) == ({"0": came(1, now)}, now, None)
    assert (step.job.rev, step.job.wake_at) == (waiting.rev + 1, now + 10 * MINUTE)


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("01")), min_size=1, max_size=25))
@thorough
def test_t14_a_job_holds_events_of_one_window_whenever_they_come(steps: list[tuple[int, str]]) -> None:
    """Minutes between events and the leaf that each touches. The job is not checked in between."""
    current: Job | None = None
    now, held, expired = NOON, [], 0
    for number, (minutes, leaf) in enumerate(steps):
        now += minutes * MINUTE
        met = {"0", "1"} <= {which for _, which in held}
        if held and not met and now >= held[0][0] + HOUR:
            held, expired = [], expired + 1
        held.append((now, leaf))

        step = apply(current, event(f"e{number}", now), BOTH, now, leaves=leaf)
        current, expired = step.job, expired - (step.dropped is not None)

        assert current is not None
        assert expired == 0
        assert {each: progress.count for each, progress in current.leaves.items()} == {
            which: sum(touched == which for _, touched in held) for _, which in held
        }
        assert (current.met_at is not None) is ({"0", "1"} <= {which for _, which in held})


# -- silence -------------------------------------------------------------------------------------------------------


def test_t12_each_event_postpones_the_check_of_an_unused_quiet() -> None:
    first = grown(None, event("a"), QUIET, NOON)
    assert (first.state, first.wake_at) == ("PENDING_TRIGGER", NOON + 10 * MINUTE)
    second = grown(first, event("b", NOON + 5 * MINUTE), QUIET, NOON + 5 * MINUTE)
    assert second.wake_at == NOON + 15 * MINUTE

    waiting = gather.refresh(second, schedule(QUIET), NOON + 15 * MINUTE)
    assert (waiting.state, waiting.met_at) == ("PENDING_CONSTRAINTS", NOON + 15 * MINUTE)
    disturbed = grown(waiting, event("c", NOON + 16 * MINUTE), QUIET, NOON + 16 * MINUTE)
    assert (disturbed.state, disturbed.met_at) == ("PENDING_TRIGGER", None)
    assert disturbed.wake_at == NOON + 26 * MINUTE


def test_t12_an_event_for_a_queued_job_is_added_to_it() -> None:
    queued = job(leaves={"0": came()}, met_at=NOON, state="PENDING_LAUNCH", queued_in=LIMIT, rank="5", reason="waits")
    more = grown(queued, event("b", NOON + HOUR), QUIET, NOON + HOUR)
    assert more == replace(queued, leaves={"0": came(2, NOON, NOON + HOUR)}, rev=2)


# -- what an event supports, and what it undoes --------------------------------------------------------------------


def test_t18_the_feed_counts_against_absent_and_for_other_leaves() -> None:
    both = schedule(all_of(ABSENT, PARTITION))
    assert gather.touched(both, event("a"), rows("0", "1")) == (("1",), ("0",))
    answer = event("late", kind="absent")
    assert gather.touched(both, answer, rows("0")) == (("0",), ())


def test_t11_an_event_that_does_not_match_changes_nothing() -> None:
    big = ORDERS | {"pattern": {"total": [{"numeric": [">", 100]}]}}
    both = schedule(all_of(big, ABSENT | {"of": big}, ORDERS))
    small = event("a", kind="event", payload={"total": 1})
    assert gather.touched(both, small, rows("0", "1", "2")) == (("2",), ())
    large = event("b", kind="event", payload={"total": 101})
    assert gather.touched(both, large, rows("0", "1", "2")) == (("0", "2"), ("1",))


def test_a_row_of_a_removed_leaf_is_ignored() -> None:
    assert gather.touched(schedule(PARTITION), event("a"), rows("0", "5")) == (("0",), ())


def test_t18_a_late_feed_removes_its_absence_from_the_job() -> None:
    both = all_of(ABSENT, WEATHER)
    absent = grown(None, event("late", kind="absent"), both, NOON)
    met = grown(absent, event("w"), both, NOON, leaves="1")
    assert met.met_at == NOON

    after_all = grown(met, None, both, NOON + MINUTE, against="0")

    assert (after_all.leaves, after_all.met_at, after_all.state) == ({"1": came()}, None, "PENDING_TRIGGER")
    assert after_all.rev == met.rev + 1


def test_t18_a_job_of_only_an_ended_absence_is_dropped_on_record() -> None:
    absent = grown(None, event("late", kind="absent"), ABSENT, NOON)
    after_all = apply(absent, None, ABSENT, NOON + MINUTE, against="0")
    assert after_all.job is None
    record = after_all.dropped
    assert record is not None
    assert (record.id, record.kind) == (absent.job_id, "DROPPED")
    assert record.reason.text == "the absent event arrived before the job was launched"


@pytest.mark.parametrize("before", [None, job(leaves={"1": came()})])
def test_t18_a_feed_before_its_absence_fires_changes_no_job(before: Job | None) -> None:
    assert apply(before, None, all_of(ABSENT, WEATHER), NOON, against="0") == Gathered(None)


def test_t18_one_event_may_oppose_one_leaf_and_count_for_another() -> None:
    both = any_of(all_of(ABSENT, WEATHER), PARTITION)
    absent = grown(None, event("late", kind="absent"), both, NOON)
    step = grown(absent, event("p", NOON + MINUTE), both, NOON + MINUTE, leaves="2", against="0")
    assert (step.leaves, step.met_at) == ({"2": came(1, NOON + MINUTE)}, NOON + MINUTE)


def test_c9_a_queued_job_is_not_removed_by_the_feed() -> None:
    queued = job(leaves={"0": came()}, met_at=NOON, queued_in="emr:app-1", rank="5", held=(LIMIT,))
    assert apply(queued, None, ABSENT, NOON + MINUTE, against="0") == Gathered(None)
    more = grown(queued, event("w"), all_of(ABSENT, WEATHER), NOON, leaves="1", against="0")
    assert set(more.leaves) == {"0", "1"}


# -- detached jobs -------------------------------------------------------------------------------------------------


def test_c11_a_detached_job_keeps_everything_but_its_sort_key() -> None:
    met = grown(None, event("a"), PARTITION, NOON)
    apart = gather.detach(met)
    assert apart.sort_key.startswith("JOB#2026-03-02T12:00:00.000Z#")
    assert (apart.kind, apart.rev) == ("detached", 1)
    assert replace(apart, sort_key=GATHERING, kind="gathering") == met
    other = gather.detach(grown(None, event("b"), PARTITION, NOON))
    assert other.sort_key != apart.sort_key
    assert gather.detach(job("fire", sort_key=GATHERING)).kind == "fire", "a fire stays one, with its nominal time"


def test_a_leaf_is_found_by_its_number() -> None:
    made: Schedule = schedule(all_of(PARTITION, WEATHER))
    found = gather.leaf_of(made, "1")
    assert found is not None
    assert found.dataset == "demo.weather"
    assert gather.leaf_of(made, "2") is None
