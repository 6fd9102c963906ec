"""The timer of a schedule whose definition changes and whose trigger does not (L6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.fires.fire import Begun, Shape
from chalicelib.core.instants import MINUTE, SECOND, Instant, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from tests.core.builders import NOON, PARTITION, all_of, any_of, brief, schedule, schedule_state

STEP = 20 * SECOND
EVERY: dict[str, Any] = {"type": "time", "expression": "@every 20s"}
AHEAD = 135 * SECOND
SPREADS = st.tuples(st.integers(1, 6), st.sampled_from([None, "6s", "30s", "90s"]))


def spreading(given_spread: tuple[int, str | None]) -> Schedule:
    count, over = given_spread
    return schedule(EVERY, spread={"count": count} | ({"over": over} if over else {}))


def ticks(
    timer: Timer, of: Schedule, start: Instant, end: Instant, rows: dict[str, Job], hints: list[tuple[str, Instant]]
) -> Timer:  # fmt: skip
    """The emitter runs every minute; a row that is written again replaces the one before."""
    for now in range(start, end, MINUTE):
        while True:
            emission = fire_timer.emit(timer, of, now, now + AHEAD)
            rows |= {one.sort_key: one for one in emission.fires}
            hints += [(one.sort_key, one.due_at or 0) for one in emission.fires]
            timer = emission.timer
            if not emission.more:
                break
    return timer


def first_timer(of: Schedule) -> Timer:
    made = fire_timer.first_timer(of, schedule_state(), NOON)
    assert made is not None
    return made


@brief
@given(st.lists(st.tuples(SPREADS, st.integers(1, 400)), min_size=2, max_size=4))
def test_a_fire_keeps_the_spread_with_which_it_was_begun(updates: list[tuple[tuple[int, str | None], int]]) -> None:
    """Each event is prepared and hinted once. A fire of which nothing is prepared has the new spread."""
    rows: dict[str, Job] = {}
    hints: list[tuple[str, Instant]] = []
    now, of = NOON, spreading(updates[0][0])
    timer = first_timer(of)
    shapes: dict[Instant, Shape] = {}
    for number, (spread, seconds) in enumerate(updates):
        begun, following = timer.next["0"], spreading(spread)
        timer = fire_timer.carried(timer, of, following, number + 2, now)
        assert (timer.version, timer.anchor, timer.next["0"]) == (number + 2, NOON, begun)
        of, until = following, now + seconds * SECOND + 1
        shapes |= {nominal: fire.shape(of) for nominal in range(begun, until + 9 * MINUTE, STEP)}
        timer, now = ticks(timer, of, now, until, rows, hints), until
    timer = ticks(timer, of, now, now + 6 * MINUTE, rows, hints)

    wanted = {
        (f"FIRE#{iso(nominal)}#0#{index}", fire.due_of(shapes[nominal], Begun(nominal, nominal, 0), index))
        for nominal in range(NOON + STEP, now + 4 * MINUTE, STEP)
        for index in range(shapes[nominal].events)
    }
    there = {(place, row.due_at) for place, row in rows.items() if fire.nominal_of(row) < now + 4 * MINUTE}
    assert there == wanted
    assert {hint: hints.count(hint) for hint in wanted} == dict.fromkeys(wanted, 1)
    assert all(fire.shape_of(row, of) == shapes[fire.nominal_of(row)] for row in rows.values())
    assert timer.shapes == ()


def test_an_update_of_neither_end_nor_spread_keeps_the_timer() -> None:
    old, new = schedule(EVERY), schedule(EVERY, properties={"new": True})
    timer = first_timer(old)
    later = fire_timer.carried(timer, old, new, 2, NOON)
    assert (later.next, later.begun, later.wake_at, later.rev) == (timer.next, timer.begun, timer.wake_at, 2)


def test_an_earlier_end_removes_later_instants_from_the_timer() -> None:
    old, new = schedule(EVERY), schedule(EVERY, ttl=iso(NOON + 10 * SECOND))
    later = fire_timer.carried(first_timer(old), old, new, 2, NOON)
    assert later.next == {}
    assert later.wake_at == NOON + 11 * SECOND


@pytest.mark.parametrize(("fired", "upcoming"), [(2, None), (1, NOON + 80 * SECOND)])
def test_a_later_end_lets_a_time_with_repeats_left_go_on(fired: int, upcoming: Instant | None) -> None:
    tree = all_of({**EVERY, "repeats": 2}, PARTITION)
    old = schedule(tree, ttl=iso(NOON + 70 * SECOND))
    new = schedule(tree, ttl=iso(NOON + 150 * SECOND))
    made = first_timer(old)
    timer = Timer(made.schedule, made.generation, 1, NOON, {}, fired={"0": fired})
    later = fire_timer.carried(timer, old, new, 2, NOON + 30 * SECOND)
    assert later.next.get("0") == upcoming


def test_a_leaf_without_a_time_does_not_change_the_timer() -> None:
    tree = any_of(EVERY, PARTITION)
    timer = first_timer(schedule(tree))
    assert fire_timer.carried(timer, schedule(tree), schedule(tree, ttl=iso(NOON + MINUTE)), 2, NOON).next == {
        "0": NOON + STEP
    }
