"""A timer that continues under a new definition: another end, and other events of each fire (L6, L10, E2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import fire
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, iso, parse_instant
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.triggers.time import TimeTrigger
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

# One of four events every ten seconds. The fire of 12:01 lacks one event, those of 12:02 and 12:03 are prepared.
FOUR = schedule(EVERY, spread={"count": 4, "over": "40s"})
UNDER_WAY = timer({"0": minute(4)}, begun=((minute(1), minute(1), 3), (minute(3), minute(3), 1)))


def begun(new: Schedule, before: Timer = UNDER_WAY, old: Schedule = FOUR, now: Instant = NOON + MINUTE) -> Any:
    return fire_timer.carried(before, old, new, 2, now).begun


@pytest.mark.parametrize("now", [minute(1), minute(1) + 30 * SECOND, minute(2) - 1])
@pytest.mark.parametrize(
    ("spread", "wanted"),
    [
        # Two more: prepared events keep their instants.
        ({"count": 6, "over": "1m"}, [(1, 3), (2, 4), (3, 1)]),
        # Two fewer: only the fire of which one event is prepared lacks another.
        ({"count": 2, "over": "20s"}, [(3, 1)]),
        # As many, at other instants: only the first event of a fire stays.
        ({"count": 4, "over": "80s"}, [(1, 3), (2, 1), (3, 1)]),
        # All at once.
        ({"count": 3}, [(2, 1), (3, 1)]),
        (None, []),
    ],
)
def test_e2_fires_to_come_use_the_new_spread_without_duplicates(
    now: Instant, spread: dict[str, Any] | None, wanted: list[tuple[int, int]]
) -> None:
    new = schedule(EVERY, spread=spread, coalesce=False)
    assert begun(new, now=now) == tuple((minute(at), minute(at), written) for at, written in wanted)


def test_e2_a_new_spread_adds_missing_events_to_prepared_fires() -> None:
    old = schedule(EVERY, coalesce=False)
    new = schedule(EVERY, spread={"count": 2, "over": "30s"})
    assert begun(new, timer({"0": minute(4)}), old) == ((minute(2), minute(2), 1), (minute(3), minute(3), 1))


def test_e2_a_fire_with_jitter_is_rewritten_at_its_due_instant() -> None:
    document = EVERY | {"jitter": "30s"}
    old, new = schedule(document, coalesce=False), schedule(document, spread={"count": 2, "over": "20s"})
    rule = old.trigger
    assert isinstance(rule, TimeTrigger)
    dues = [rule.jittered(NOON, minute(at), f"{NAME}#0") for at in (1, 2)]
    assert dues[0] > minute(1) + 10 * SECOND and dues[1] > minute(2)
    # The fire of 12:01 is not due yet, although its nominal instant has come: it gets the new events, too.
    wanted = ((minute(1), dues[0], 1), (minute(2), dues[1], 1))
    assert begun(new, timer({"0": minute(3)}), old, minute(1) + 10 * SECOND) == wanted
    assert begun(new, timer({"0": minute(3)}), old, dues[0]) == wanted[1:]


@pytest.mark.parametrize("end", [None, iso(minute(3) + SECOND)])
@pytest.mark.parametrize("prepared", [(), (3,), (2, 3)])
def test_l10_the_last_fires_are_known_by_their_rows(prepared: tuple[int, ...], end: str | None) -> None:
    old = schedule(EVERY, coalesce=False, ttl=end)
    new = schedule(EVERY, spread={"count": 2, "over": "30s"}, ttl=end)
    used_up = timer({}, fired={"0": 3})
    jobs = [fire.fire_of(used_up, "0", minute(at), minute(at)) for at in (1, *prepared)]  # that of 12:01 is due
    later = fire_timer.carried(used_up, old, new, 2, minute(1), jobs)
    assert later.begun == tuple((minute(at), minute(at), 1) for at in prepared)


def test_t1_a_used_up_timer_without_end_prepares_nothing() -> None:
    old, new = schedule(EVERY, coalesce=False), schedule(EVERY, spread={"count": 2})
    assert begun(new, timer({}), old) == ()
