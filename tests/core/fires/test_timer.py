"""Timers that come due become fires: none lost, none doubled, none without bound (T1, T4, T5, E1)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.fires import fire, upcoming
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, iso, parse_instant
from chalicelib.core.rows.schedule import Timer
from tests.core.builders import NAME, NOON, PARTITION, TICK, all_of, any_of, brief, schedule, schedule_state, thorough

HORIZON = 75 * SECOND
HOURLY: dict[str, Any] = {"type": "time", "expression": "@hourly"}
EVERY_SECOND: dict[str, Any] = {"type": "time", "expression": "@every 1s"}


def timer(document: dict[str, Any], now: Instant = NOON) -> Timer:
    made = fire_timer.first_timer(schedule(document), schedule_state(), now)
    assert made is not None
    return made


def due(document: dict[str, Any], now: Instant, horizon: Instant | None = None) -> fire_timer.Emission:
    return fire_timer.emit(timer(document), schedule(document), now, now + HORIZON if horizon is None else horizon)


def test_t5_timer_begins_at_enabling_and_never_catches_up_before() -> None:
    made = timer(HOURLY, NOON)
    assert made.next == {"0": NOON + HOUR}
    assert (made.anchor, made.wake_at, made.rev) == (NOON, NOON + HOUR, 1)
    assert (made.schedule, made.generation, made.version) == (NAME, 7, 1)


def test_a_trigger_without_a_time_leaf_has_no_timer() -> None:
    assert fire_timer.first_timer(schedule(all_of(PARTITION, PARTITION)), schedule_state(), NOON) is None


def test_a_timer_keeps_next_instants_and_wakes_for_the_earliest() -> None:
    made = timer(any_of(HOURLY, PARTITION, TICK))
    assert made.next == {"0": NOON + HOUR, "2": NOON + 10 * SECOND}
    assert made.wake_at == NOON + 10 * SECOND


def test_t1_fires_before_the_horizon_are_prepared_and_none_at_it() -> None:
    emission = due(TICK, NOON, horizon=NOON + 30 * SECOND)

    assert [fire.due_at for fire in emission.fires] == [NOON + 10 * SECOND, NOON + 20 * SECOND]
    assert emission.timer.next == {"0": NOON + 30 * SECOND}
    assert emission.timer.wake_at == NOON + 30 * SECOND
    assert emission.timer.rev == 2
    assert emission.skipped == ()


def test_t4_a_prepared_fire_is_a_job_due_at_its_nominal_instant() -> None:
    [fire, *_] = due(TICK, NOON).fires
    nominal = NOON + 10 * SECOND
    assert (fire.kind, fire.state, fire.leaf) == ("fire", "PENDING_CONSTRAINTS", "0")
    assert fire.due_at == fire.wake_at == fire.created_at == fire.accepted_at == nominal
    assert fire.sort_key == f"FIRE#{iso(nominal)}#0#0"


def test_t4_fire_event_has_its_nominal_instant_whenever_checked() -> None:
    first, second, *_ = due(TICK, NOON).fires
    event = fire.fire_event(first)
    assert event == fire.fire_event(first)
    assert (event.kind, event.instant, event.accepted_at) == ("time", NOON + 10 * SECOND, NOON + 10 * SECOND)
    assert event.id != fire.fire_event(second).id


def test_o3_preparing_fires_again_after_a_crash_makes_equal_rows() -> None:
    long_after = NOON + 3 * DAY
    first, again = due(HOURLY, long_after), due(HOURLY, long_after)
    assert first == again
    later = due(HOURLY, long_after + SECOND)
    assert {fire.job_id for fire in later.fires} <= {fire.job_id for fire in first.fires} | {later.fires[-1].job_id}


def test_e1_many_fires_of_one_timer_are_prepared_in_portions() -> None:
    document = schedule(EVERY_SECOND)
    now = NOON + HOUR
    current, fires = timer(EVERY_SECOND), []
    while current.wake_at is not None and current.wake_at < now:
        emission = fire_timer.emit(current, document, now, now)
        assert 0 < len(emission.fires) <= fire_timer.MAX_FIRES
        fires += emission.fires
        current = emission.timer
    assert [fire.due_at for fire in fires] == list(range(NOON + SECOND, now, SECOND))
    assert len({fire.job_id for fire in fires}) == len(fires)


def test_e1_the_portion_is_for_all_leaves_and_none_is_forgotten() -> None:
    both = any_of(EVERY_SECOND, EVERY_SECOND)
    document, now = schedule(both), NOON + 10 * MINUTE
    current, fires = timer(both), []
    while current.wake_at is not None and current.wake_at < now:
        emission = fire_timer.emit(current, document, now, now)
        assert 0 < len(emission.fires) <= fire_timer.MAX_FIRES
        fires += emission.fires
        current = emission.timer
    assert {leaf: sum(fire.leaf == leaf for fire in fires) for leaf in "01"} == {"0": 599, "1": 599}
    assert len({(fire.sort_key, fire.job_id) for fire in fires}) == len(fires)


def test_t5_after_an_outage_within_day_every_missed_fire_is_made() -> None:
    emission = due(HOURLY, NOON + 20 * HOUR)
    assert [fire.due_at for fire in emission.fires] == [NOON + hours * HOUR for hours in range(1, 21)]
    assert emission.skipped == ()


def test_t5_fires_over_a_day_late_are_skipped_on_record() -> None:
    now = NOON + 3 * DAY
    emission = due(HOURLY, now)

    assert [fire.due_at for fire in emission.fires] == [now - DAY + hours * HOUR for hours in range(25)]
    [record] = emission.skipped
    assert (record.kind, record.schedule, record.recorded_at) == ("SKIPPED", NAME, now)
    assert record.expires_at == now + 180 * DAY
    assert record.reason.text == (
        "47 fires from 2026-03-02T13:00:00.000Z to 2026-03-04T12:00:00.000Z were missed by more than a day"
        " and are skipped"
    )
    assert record.count == 47


def test_t5_each_time_leaf_catches_up_by_itself() -> None:
    weekly = {"type": "time", "expression": "@every 7d"}
    now = NOON + 3 * DAY
    emission = due(any_of(HOURLY, weekly), now)
    assert len(emission.skipped) == 1
    assert emission.timer.next["1"] == NOON + 7 * DAY
    assert {fire.leaf for fire in emission.fires} == {"0"}


@given(
    st.sampled_from(["@every 7s", "* * * * *", "*/5 * * * *", "@every 45m"]),
    st.lists(st.integers(1, 400), min_size=1, max_size=25),
)
@thorough
def test_e1_emitter_windows_cover_time_without_gap_or_overlap(expression: str, gaps: list[int]) -> None:
    """Ticks at any instants prepare exactly the fires of one long check: no gap, no overlap."""
    document = {"type": "time", "expression": expression}
    current, now, dues = timer(document), NOON, []
    for gap in gaps:
        now += gap * SECOND
        emission = fire_timer.emit(current, schedule(document), now, now + HORIZON)
        assert emission.skipped == ()
        current = emission.timer
        dues += [fire.due_at for fire in emission.fires]
    whole, single = [], timer(document)
    while single.wake_at is not None and single.wake_at < now + HORIZON:
        emission = fire_timer.emit(single, schedule(document), NOON, now + HORIZON)
        whole += [fire.due_at for fire in emission.fires]
        single = emission.timer
    assert dues == whole
    assert all(one < other for one, other in pairwise(dues))


def test_l11_next_fires_of_all_time_leaves_are_shown_in_order() -> None:
    made = schedule(any_of(HOURLY, {"type": "time", "expression": "@every 40m"}))
    assert [iso(at)[11:16] for at in upcoming.preview(made, NOON, 5)] == ["12:40", "13:00", "13:20", "14:00", "14:00"]
    assert upcoming.preview(schedule(), NOON, 5) == []


def test_l11_a_preview_counts_intervals_from_the_timer_anchor() -> None:
    made = schedule({"type": "time", "expression": "@every 1h"})
    anchored = timer({"type": "time", "expression": "@every 1h"}, parse_instant("2026-03-02T11:50:00Z"))
    assert [iso(at)[11:16] for at in upcoming.preview(made, NOON, 2, anchored)] == ["12:50", "13:50"]


@given(st.integers(0, 40), st.sampled_from([HOURLY, TICK]))
@brief
def test_l11_a_preview_equals_what_will_be_emitted(count: int, document: dict[str, Any]) -> None:
    shown = upcoming.preview(schedule(document), NOON, count)
    emitted = due(document, NOON, horizon=NOON + 2 * DAY).fires
    assert shown == [fire.due_at for fire in emitted][:count]
