"""Leaves that are evaluated again when they are due: a span since the last start, a feed that did not arrive (T13,
T18).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.fires import fire, upcoming
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.time import windows
from chalicelib.core.triggers.leaf import TimedLeaf, timed
from tests.core.builders import (
    ABSENT,
    ELAPSED,
    NOON,
    PARTITION,
    TICK,
    all_of,
    any_of,
    brief,
    schedule,
    schedule_state,
    thorough,
    trigger,
)

BY_SIX: dict[str, Any] = {"type": "absent", "of": PARTITION, "deadline": "06:00"}
SIX = parse_instant("2026-03-03T06:00:00Z")  # the first after NOON


def leaf(document: dict[str, Any]) -> TimedLeaf:
    return timed(trigger(document))


def timer(document: dict[str, Any], now: Instant = NOON) -> Timer:
    made = fire_timer.first_timer(schedule(document), schedule_state(), now)
    assert made is not None
    return made


# -- when they are due ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("document", "due"), [(ELAPSED, NOON + 4 * HOUR), (ABSENT, NOON + HOUR), (BY_SIX, SIX)])
def test_t13_a_span_counts_from_enabling_and_a_deadline_is_next(document: dict[str, Any], due: Instant) -> None:
    made = timer(document)
    assert (made.next, made.wake_at) == ({"0": due}, due)


def test_t18_a_deadline_is_a_time_of_day_in_its_zone_on_its_days() -> None:
    in_india = BY_SIX | {"zone": "Asia/Kolkata", "days": ["sun"]}  # 2026-03-02 is a Monday
    assert timer(in_india).next == {"0": parse_instant("2026-03-08T00:30:00Z")}


def test_t13_after_a_fire_the_next_check_is_a_span_later() -> None:
    emission = fire_timer.emit(timer(ELAPSED), schedule(ELAPSED), NOON + 4 * HOUR - MINUTE, NOON + 4 * HOUR + 1)
    assert [fire.due_at for fire in emission.fires] == [NOON + 4 * HOUR]
    assert emission.timer.next == {"0": NOON + 8 * HOUR}


@given(st.sampled_from([ELAPSED, ABSENT, BY_SIX]), st.integers(1, 5_000), st.integers(0, 5), st.integers(0, 30 * DAY))
@brief
def test_t13_each_check_prepares_at_most_one_elapsed_fire(
    document: dict[str, Any], seconds: int, late: int, ahead: int
) -> None:
    """The next fire is unknown until the first has been evaluated: a run that starts before then postpones it."""
    span = {"after": f"{seconds}s"} if document is ELAPSED else {"within": f"{seconds}s"} if document is ABSENT else {}
    both = any_of(document | span, document | span)
    made = timer(both)
    now = NOON + late * HOUR
    emission = fire_timer.emit(made, schedule(both), now, now + ahead)
    due = {leaf: at for leaf, at in made.next.items() if at < now + ahead}
    assert {fire.leaf: fire.due_at for fire in emission.fires} == due
    assert len(emission.fires) == len(due)
    assert all(emission.timer.next[leaf] > max(at, now) for leaf, at in due.items())


@pytest.mark.parametrize("document", [ELAPSED, ABSENT])
def test_t13_after_an_outage_there_is_one_check_of_elapsed_leaf(document: dict[str, Any]) -> None:
    now = NOON + 3 * DAY + 1
    emission = fire_timer.emit(timer(document), schedule(document), now, now + 75_000)
    assert len(emission.fires) == 1
    assert emission.skipped == ()
    assert emission.timer.next["0"] > now


def test_t18_after_an_outage_a_deadline_of_today_is_not_lost() -> None:
    now = SIX + 2 * DAY + HOUR
    emission = fire_timer.emit(timer(BY_SIX), schedule(BY_SIX), now, now + 75_000)
    assert [fire.due_at for fire in emission.fires] == [SIX]
    assert emission.timer.next == {"0": SIX + 3 * DAY}


def test_t13_the_due_instant_is_an_event_of_its_own_kind() -> None:
    prepared = fire_timer.emit(timer(ELAPSED), schedule(ELAPSED), NOON, NOON + 5 * HOUR).fires[0]
    elapsed, absent = fire.fire_event(prepared, "elapsed"), fire.fire_event(prepared, "absent")
    assert (elapsed.kind, elapsed.accepted_at) == ("elapsed", NOON + 4 * HOUR)
    assert len({elapsed.id, absent.id, fire.fire_event(prepared).id}) == 3


def test_only_a_timed_leaf_has_a_timer() -> None:
    with pytest.raises(TypeError, match="expected a timed leaf, got PartitionTrigger"):
        timed(trigger(PARTITION))


# -- what postpones them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("started", "moved"),
    [
        (None, None),
        (NOON - HOUR, None),  # a run before the schedule was enabled
        (NOON, None),
        (NOON + 1, NOON + 4 * HOUR + 1),
        (NOON + 3 * HOUR, NOON + 7 * HOUR),
        (NOON + 5 * HOUR, NOON + 9 * HOUR),  # later than due: the check was late
    ],
)
def test_t13_a_run_started_in_between_postpones_the_span(started: Instant | None, moved: Instant | None) -> None:
    assert leaf(ELAPSED).postponed_to(NOON, started, NOON + 4 * HOUR) == moved


@pytest.mark.parametrize(
    ("arrived", "moved"), [(None, None), (NOON, None), (NOON + 1, NOON + HOUR + 1), (NOON + HOUR, NOON + 2 * HOUR)]
)
def test_t18_within_a_span_each_event_postpones_the_absence(arrived: Instant | None, moved: Instant | None) -> None:
    assert leaf(ABSENT).postponed_to(NOON, arrived, NOON + HOUR) == moved


@pytest.mark.parametrize(
    ("arrived", "in_time"),
    [
        (None, False),
        (NOON - 1, False),  # before the schedule was enabled
        (NOON, True),
        (SIX - 1, True),
        (SIX, True),
        (SIX + MINUTE, True),  # the check was late: the feed arrived after all
    ],
)
def test_t18_an_event_between_enabling_and_deadline_is_in_time(arrived: Instant | None, in_time: bool) -> None:
    moved = leaf(BY_SIX).postponed_to(NOON, arrived, SIX)
    assert moved == (SIX + DAY if in_time else None)


@pytest.mark.parametrize(("arrived", "in_time"), [(SIX - 1, False), (SIX, False), (SIX + 1, True), (SIX + DAY, True)])
def test_t18_an_event_before_a_deadline_does_not_count_for_next(arrived: Instant, in_time: bool) -> None:
    moved = leaf(BY_SIX).postponed_to(NOON, arrived, SIX + DAY)
    assert moved == (SIX + 2 * DAY if in_time else None)


def test_t18_on_chosen_days_only_events_since_the_previous_count() -> None:
    sundays = BY_SIX | {"days": ["sun"]}
    sunday = parse_instant("2026-03-08T06:00:00Z")
    assert leaf(sundays).postponed_to(NOON, sunday + 3 * DAY, sunday + 7 * DAY) == sunday + 14 * DAY
    assert leaf(sundays).postponed_to(NOON, sunday - 3 * DAY, sunday + 7 * DAY) is None


def test_t1_a_time_leaf_is_never_postponed() -> None:
    assert leaf(TICK).postponed_to(NOON, NOON + HOUR, NOON + 10_000) is None


@given(
    st.sampled_from(["UTC", "Europe/Paris", "Asia/Kolkata", "Australia/Lord_Howe", "America/New_York"]),
    st.sampled_from([(), ("mon", "thu"), ("sun",)]),
    st.lists(st.integers(0, 3 * 24 * 60), max_size=10),
    st.integers(0, 300),
)
@brief
def test_t18_absent_fires_only_if_nothing_came_between_deadlines(
    zone: str, days: tuple[str, ...], gaps: list[int], start_day: int
) -> None:
    since = NOON + start_day * DAY
    arrivals, at = [], since
    for gap in gaps:
        at += gap * MINUTE
        arrivals.append(at)
    rule = leaf(BY_SIX | {"zone": zone, "days": list(days)})

    previous, due = since - 1, windows.next_clock("06:00", zone, days, since)
    for _ in range(6):
        happened = max((arrival for arrival in arrivals if arrival <= due), default=None)
        answer = rule.postponed_to(since, happened, due) is None
        assert answer is not any(previous < arrival <= due for arrival in arrivals)
        previous, due = due, windows.next_clock("06:00", zone, days, due)


@given(st.lists(st.integers(1, 300), max_size=12))
@thorough
def test_t13_elapsed_fires_exactly_when_no_run_started_for_span(gaps: list[int]) -> None:
    """Minutes between starts. A start moves the timer; after a fire the next check is a span later."""
    starts = [NOON + sum(gaps[: number + 1]) * MINUTE for number in range(len(gaps))]
    rule, due, answer = leaf(ELAPSED), NOON + 4 * HOUR, []
    while due <= NOON + 3 * DAY:
        happened = max((start for start in starts if start <= due), default=None)
        moved = rule.postponed_to(NOON, happened, due)
        if moved is None:
            answer.append(due)
        due = due + 4 * HOUR if moved is None else moved

    expected = []
    for began, ended in zip([NOON, *starts], [*starts, NOON + 3 * DAY + 1], strict=True):
        expected += list(range(began + 4 * HOUR, ended, 4 * HOUR))
    assert answer == expected


# -- setting a timer again -----------------------------------------------------------------------------------------


def test_t13_resetting_one_leaf_leaves_the_others_unchanged() -> None:
    before = timer(any_of(TICK, ELAPSED))
    after = fire_timer.rearm(before, schedule(any_of(TICK, ELAPSED)), "1", NOON + 9 * HOUR)
    assert after.next == {"0": NOON + 10_000, "1": NOON + 9 * HOUR}
    assert (after.wake_at, after.rev, after.anchor) == (NOON + 10_000, before.rev + 1, before.anchor)
    assert fire_timer.rearm(before, schedule(any_of(TICK, ELAPSED)), "0", NOON + 9 * HOUR).wake_at == NOON + 4 * HOUR


def test_l11_a_preview_shows_when_elapsed_and_absent_are_due() -> None:
    made = schedule(all_of(ELAPSED, BY_SIX))
    assert upcoming.preview(made, NOON, 4) == [NOON + hours * HOUR for hours in (4, 8, 12, 16)]
    assert upcoming.preview(schedule(BY_SIX), NOON, 2) == [SIX, SIX + DAY]
