"""A timer that continues under a new definition: another end, and other events of each fire (L6, L10, E2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.fires import fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, iso, parse_instant
from chalicelib.core.rows.schedule import Timer
from tests.core.builders import ABSENT, ELAPSED, NAME, NOON, PARTITION, any_of, schedule

EVERY: dict[str, Any] = {"type": "time", "expression": "@every 1m"}
BY_SIX: dict[str, Any] = {"type": "absent", "of": PARTITION, "deadline": "06:00"}
SIX = parse_instant("2026-03-03T06:00:00Z")  # the first after NOON


def minute(number: int) -> Instant:
    return NOON + number * MINUTE


def timer(upcoming: dict[str, Instant], **fields: Any) -> Timer:
    return Timer(NAME, 7, 1, NOON, upcoming, **fields)


# -- its end -------------------------------------------------------------------------------------------------------


def test_l6_a_carried_timer_goes_on_from_where_it_is() -> None:
    before = timer({"0": minute(3)}, fired={"0": 2}, rev=5, wake_at=minute(1))
    after = fire_timer.carried(before, schedule(EVERY), schedule(EVERY, priority=9), 2, minute(2))
    assert after == replace(before, version=2, rev=6, wake_at=minute(3))


@pytest.mark.parametrize(("end", "stays"), [(minute(3), True), (minute(3) - 1, False)])
def test_l10_new_end_is_inclusive_for_prepared_and_future_fires(end: Instant, stays: bool) -> None:
    """The fire of 12:03 is due later because of its jitter. Its nominal instant counts."""
    begun = ((minute(3), minute(3) + 5 * SECOND, 1),)
    new = schedule(EVERY, spread={"count": 2, "over": "30s"}, ttl=iso(end))
    old = schedule(EVERY, spread={"count": 2, "over": "30s"})
    after = fire_timer.carried(timer({"0": minute(4)}, begun=begun), old, new, 2, minute(1))
    wanted = timer({}, begun=begun if stays else (), rev=2, wake_at=end + SECOND)
    assert after == replace(wanted, version=2)


@pytest.mark.parametrize(("end", "upcoming"), [(minute(3), {"0": minute(3)}), (minute(3) - 1, {})])
def test_l10_the_next_instant_stays_if_not_after_the_new_end(end: Instant, upcoming: dict[str, Instant]) -> None:
    after = fire_timer.carried(timer({"0": minute(3)}), schedule(EVERY), schedule(EVERY, ttl=iso(end)), 2, minute(1))
    assert after.next == upcoming


def reopened(document: dict[str, Any], old: Instant | None, new: Instant | None, now: Instant) -> dict[str, Instant]:
    """The next fires of a timer that had none left, when the end of its schedule is moved."""
    before, after = (schedule(document, **({"ttl": iso(end)} if end else {})) for end in (old, new))
    return dict(fire_timer.carried(timer({}), before, after, 2, now).next)


@pytest.mark.parametrize(
    ("old", "new", "now", "upcoming"),
    [
        (minute(3), minute(9), minute(1), {"0": minute(4)}),  # fires after the old end
        (minute(3), None, minute(1), {"0": minute(4)}),
        (minute(3), None, minute(6), {"0": minute(7)}),  # it ended a while ago: fires in between are not made up for
        (minute(3), minute(3) + SECOND, minute(1), {}),  # none until the new end either
        (minute(3), minute(3), minute(1), {}),
        (minute(3), minute(2), minute(0), {}),
        (None, minute(9), minute(1), {}),  # it had no end, so it was used up
        (None, None, minute(1), {}),
    ],
)
def test_l6_a_later_end_lets_a_time_go_on(
    old: Instant | None, new: Instant | None, now: Instant, upcoming: dict[str, Instant]
) -> None:
    assert reopened(EVERY, old, new, now) == upcoming


@pytest.mark.parametrize(("fired", "upcoming"), [({}, {"0": minute(4)}), ({"0": 1}, {}), ({"1": 1}, {"0": minute(4)})])
def test_l6_a_time_goes_on_only_if_repeats_are_left(fired: dict[str, int], upcoming: dict[str, Instant]) -> None:
    once = EVERY | {"repeats": 1}
    before = timer({}, fired=fired)
    after = fire_timer.carried(before, schedule(once, ttl=iso(minute(3))), schedule(once), 2, minute(1))
    assert after.next == upcoming


@pytest.mark.parametrize(
    ("document", "now", "upcoming"),
    [
        (BY_SIX, minute(1), SIX),
        (BY_SIX, SIX, SIX + DAY),
        (ABSENT, minute(1), NOON + HOUR + 1),  # evaluated at once, and postponed to its instant
        (ABSENT, NOON + 5 * HOUR, NOON + 5 * HOUR + 1),
        (ELAPSED, minute(1), NOON + HOUR + 1),
    ],
)
def test_l6_a_later_end_lets_deadlines_and_spans_go_on(
    document: dict[str, Any], now: Instant, upcoming: Instant
) -> None:
    assert reopened(document, NOON + HOUR, NOON + 9 * DAY, now) == {"0": upcoming}


def test_l6_each_carried_leaf_goes_on_by_itself() -> None:
    both = any_of(EVERY, PARTITION, ELAPSED)
    old, new = schedule(both, ttl=iso(NOON + 5 * HOUR)), schedule(both, ttl=iso(NOON + 9 * HOUR))
    after = fire_timer.carried(timer({"2": NOON + 4 * HOUR}), old, new, 2, minute(1))
    assert after.next == {"0": NOON + 5 * HOUR + MINUTE, "2": NOON + 4 * HOUR}


# -- the events of each fire ---------------------------------------------------------------------------------------

# One of four events every ten seconds. The fire of 12:01 lacks one event, that of 12:02 none, that of 12:03 three.
FOUR = schedule(EVERY, spread={"count": 4, "over": "40s"})
BEGUN = ((minute(1), minute(1), 3), (minute(3), minute(3), 1))
UNDER_WAY = timer({"0": minute(4)}, begun=BEGUN)
OF_FOUR = (4, 40 * SECOND)


@pytest.mark.parametrize("spread", [{"count": 6, "over": "1m"}, {"count": 4, "over": "80s"}, {"count": 3}, None])
def test_e2_a_begun_fire_keeps_its_shape(spread: dict[str, Any] | None) -> None:
    new = schedule(EVERY, spread=spread, coalesce=False)
    after = fire_timer.carried(UNDER_WAY, FOUR, new, 2, minute(1))
    assert (after.begun, after.shapes) == (BEGUN, ((minute(3), *OF_FOUR),))
    assert after.wake_at == minute(1) + 30 * SECOND
    assert fire.shape_in(after, new, minute(3)) == OF_FOUR
    assert fire.shape_in(after, new, minute(4)) == fire.shape(new)


@pytest.mark.parametrize(
    ("before", "shapes"),
    [
        (timer({"0": minute(4)}), ()),  # nothing is begun
        (replace(UNDER_WAY, shapes=((minute(1), 9, 0),)), ((minute(1), 9, 0), (minute(3), *OF_FOUR))),
        (replace(UNDER_WAY, shapes=((minute(0), 9, 0),)), ((minute(3), *OF_FOUR),)),  # no begun fire has the first
        (
            replace(UNDER_WAY, shapes=((minute(3), 9, 0),)),
            ((minute(3), 9, 0),),
        ),  # both are older than the spread of four
    ],
)
def test_e2_a_timer_has_the_shapes_of_begun_fires_alone(
    before: Timer, shapes: tuple[tuple[int, int, int], ...]
) -> None:
    after = fire_timer.carried(before, FOUR, schedule(EVERY, coalesce=False), 2, minute(1))
    assert after.shapes == shapes


def test_e2_an_update_that_ends_before_a_fire_removes_its_shape() -> None:
    new = schedule(EVERY, spread={"count": 2}, ttl=iso(minute(1)))
    after = fire_timer.carried(UNDER_WAY, FOUR, new, 2, minute(1))
    assert (after.begun, after.shapes) == (BEGUN[:1], ((minute(1), *OF_FOUR),))


def test_e2_the_rest_of_a_fire_is_prepared_in_its_shape() -> None:
    new = schedule(EVERY, spread={"count": 2})
    carried = fire_timer.carried(UNDER_WAY, FOUR, new, 2, minute(1))
    emission = fire_timer.emit(carried, new, minute(3), minute(3) + 45 * SECOND)
    found = {(fire.nominal_of(job), job.index): (job.due_at, job.shape) for job in emission.fires}
    expected = {(minute(3), number): (minute(3) + number * 10 * SECOND, OF_FOUR) for number in (1, 2, 3)}
    assert {place: row for place, row in found.items() if place[0] == minute(3)} == expected
    assert (emission.timer.begun, emission.timer.shapes) == ((), ())


def test_e2_an_outage_plans_the_rest_of_a_fire_anew_in_its_shape() -> None:
    new = schedule(EVERY, spread={"count": 2})
    carried = fire_timer.carried(timer({"0": minute(90)}, begun=BEGUN[1:]), FOUR, new, 2, minute(3))
    later = minute(30)
    emission = fire_timer.emit(carried, new, later, later + MINUTE)
    assert [job.due_at for job in emission.fires] == [later, later + 5 * SECOND, later + 10 * SECOND]


@pytest.mark.parametrize(("spread", "events"), [({"count": 2}, 3), (None, 3), ({"count": 9}, 3)])
def test_l4_what_is_not_prepared_is_counted_by_its_shape(spread: dict[str, Any] | None, events: int) -> None:
    new = schedule(EVERY, spread=spread, coalesce=False)
    carried = fire_timer.carried(timer({"0": minute(4)}, begun=BEGUN[1:]), FOUR, new, 2, minute(3))
    rest = fire.unprepared(carried, new, minute(3))
    assert rest is not None and rest.events == events
