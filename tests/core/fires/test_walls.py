"""A timer follows new rules of time zones: each wall time fires once, at its instant by the present rules (T2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.fires import fire, walls
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import HOUR, MINUTE, Instant, iso, parse_instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Timer
from tests.core.builders import schedule, schedule_state
from tests.support import zone_rules

ZONE = "America/Vancouver"
NOON = parse_instant("2026-12-01T12:00:00Z")
HORIZON = 135_000
Use = Callable[[float], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Use:
    """Computes with rules by which the zone has this offset from 1 November 2026 on, after seven hours behind UTC."""

    def at(offset: float) -> None:
        changes = zone_rules.hours(-7, (parse_instant("2026-11-01T09:00:00Z"), offset))
        zone_rules.use(monkeypatch, zone_rules.made(tmp_path, f"offset{offset}", {ZONE: changes}))

    return at


def timed(expression: str, **fields: Any) -> Any:
    return schedule(trigger={"type": "time", "expression": expression, "zone": ZONE} | fields)


def begun(definition: Any, now: Instant = NOON) -> Timer:
    made = fire_timer.first_timer(definition, schedule_state(since=now), now)
    assert made is not None
    return made


def emitted(timer: Timer, definition: Any, now: Instant) -> tuple[list[str], Timer]:
    """The nominal instants that an emitter prepares by the present rules, and the timer after it."""
    if not walls.follows(timer, definition):
        timer = fire_timer.by_present_rules(timer, definition, now)
    emission = fire_timer.emit(timer, definition, now, now + HORIZON)
    return [iso(fire.nominal_of(job))[5:16] for job in emission.fires], emission.timer


def test_t2_a_stored_instant_moves_with_its_wall_time(use: Use) -> None:
    use(-8)
    definition = timed("0 9 1 * *")
    before = begun(definition)
    assert iso(before.next["0"])[5:16] == "12-01T17:00"
    use(-7)
    after = fire_timer.by_present_rules(before, definition, NOON)
    assert (iso(after.next["0"])[5:16], after.wake_at, after.rules) == ("12-01T16:00", after.next["0"], "offset-7")
    assert walls.follows(after, definition) and not walls.follows(before, definition)
    use(-8)
    assert fire_timer.by_present_rules(after, definition, NOON).next == before.next


@pytest.mark.parametrize(
    ("old", "new", "deployed", "fires"),
    [
        # The rules come before the fire by the old and by the new ones, between the two, and after both.
        (-8, -7, "12-01T12:00", ["12-01T16:00", "12-02T16:00"]),
        (-8, -7, "12-01T16:30", ["12-01T16:00", "12-02T16:00"]),
        (-8, -7, "12-01T17:30", ["12-01T17:00", "12-02T16:00"]),
        (-7, -8, "12-01T12:00", ["12-01T17:00", "12-02T17:00"]),
        (-7, -8, "12-01T16:30", ["12-01T16:00", "12-02T17:00"]),
        (-7, -8, "12-01T17:30", ["12-01T16:00", "12-02T17:00"]),
        (-8, -7.5, "12-01T16:45", ["12-01T16:30", "12-02T16:30"]),
        (-7, 9, "12-01T12:00", ["12-01T00:00", "12-02T00:00"]),
    ],
)
def test_t2_a_wall_time_fires_once_whenever_the_rules_come(
    use: Use, old: float, new: float, deployed: str, fires: list[str]
) -> None:
    use(old)
    definition = timed("0 9 * * *")
    timer, found, changed = begun(definition, parse_instant("2026-12-01T10:00:00Z")), [], False
    now, end = parse_instant("2026-12-01T10:00:00Z"), parse_instant("2026-12-02T23:00:00Z")
    if new == 9:
        timer = begun(definition, parse_instant("2026-11-30T22:00:00Z"))
    while now < end and len(found) < 2:
        if not changed and now >= parse_instant(f"2026-{deployed}:00Z"):
            use(new)
            changed = True
        prepared, timer = emitted(timer, definition, now)
        found += prepared
        now += MINUTE
    assert found == fires


def test_t2_an_hourly_schedule_misses_no_hour_and_repeats_none(use: Use) -> None:
    """The new offset repeats an hour of wall time, which has fired, or skips one, which fires once."""
    for old, new, expected in ((-7, -8, "12-01T17:00"), (-8, -7, "12-01T15:00")):
        use(old)
        definition = timed("0 * * * *")
        timer = replace(begun(definition, parse_instant("2026-12-01T15:20:00Z")), anchor=NOON)
        assert iso(timer.next["0"])[5:16] == "12-01T16:00"
        use(new)
        after = fire_timer.by_present_rules(timer, definition, NOON)
        assert iso(after.next["0"])[5:16] == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"expression": "@every 6h"},
        {"expression": "0 9 * * *", "zone": "UTC"},
        {"expression": "0 9 * * *", "due_time": "2026-12-05T10:00:00Z"},
        {"expression": "R/2026-12-01T13:00:00Z/PT6H"},
    ],
)
def test_t2_what_no_wall_time_decides_does_not_move(use: Use, fields: dict[str, Any]) -> None:
    use(-8)
    definition = timed(**fields)
    timer = begun(definition)
    use(-7)
    after = fire_timer.by_present_rules(timer, definition, NOON)
    assert after.next == timer.next


def test_t6_a_day_that_begins_otherwise_excludes_an_interval(use: Use) -> None:
    use(-8)
    definition = timed("R/2026-12-01T13:00:00Z/PT6H", excluding=["2026-12-01"])
    timer = begun(definition)
    assert iso(timer.next["0"])[5:16] == "12-02T13:00"
    use(-14)
    after = fire_timer.by_present_rules(timer, definition, NOON)
    assert iso(after.next["0"])[5:16] == "12-02T19:00"


def test_t18_a_deadline_moves_with_its_wall_time(use: Use) -> None:
    use(-8)
    trigger = {"type": "absent", "of": {"type": "event", "event": "feed"}, "deadline": "09:00", "zone": ZONE}
    definition = schedule(trigger=trigger)
    timer = begun(definition)
    use(-7)
    assert iso(fire_timer.by_present_rules(timer, definition, NOON).next["0"])[5:16] == "12-01T16:00"


@pytest.mark.parametrize(("gap", "fires"), [("after", "12-02T10:00"), ("skip", "12-03T09:30")])
def test_t2_a_new_gap_over_a_stored_instant_follows_the_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gap: str, fires: str
) -> None:
    def rules(version: str, *changes: tuple[Instant, float]) -> None:
        made = zone_rules.made(tmp_path, version, {ZONE: zone_rules.hours(-7, *changes)})
        zone_rules.use(monkeypatch, made)

    change = parse_instant("2026-12-02T10:00:00Z")  # from 03:00 to 04:00
    rules("old")
    definition = timed("30 3 * * *", gap=gap)
    timer = begun(definition)
    assert iso(timer.next["0"])[5:16] == "12-02T10:30"
    rules("gap", (change, -6))
    assert iso(fire_timer.by_present_rules(timer, definition, NOON).next["0"])[5:16] == fires
    # A gap that is gone: the wall time of the fire exists again.
    timer = begun(definition)
    rules("none")
    assert iso(fire_timer.by_present_rules(timer, definition, NOON).next["0"])[5:16] == (
        "12-02T10:30" if gap == "after" else "12-03T10:30"
    )


@pytest.mark.parametrize(
    ("overlap", "fires"), [("first", "12-02T09:30"), ("second", "12-02T10:30"), ("both", "12-02T10:30")]
)
def test_t2_a_new_overlap_over_a_stored_instant_follows_the_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, overlap: str, fires: str
) -> None:
    zone_rules.use(monkeypatch, zone_rules.made(tmp_path, "old", {ZONE: zone_rules.hours(-7)}))
    definition = timed("30 2 * * *", overlap=overlap)
    timer = begun(definition)
    assert iso(timer.next["0"])[5:16] == "12-02T09:30"
    change = parse_instant("2026-12-02T10:00:00Z")  # from 03:00 back to 02:00
    made = zone_rules.made(tmp_path, "overlap", {ZONE: zone_rules.hours(-7, (change, -8))})
    zone_rules.use(monkeypatch, made)
    moved = fire_timer.by_present_rules(timer, definition, NOON)
    assert iso(moved.next["0"])[5:16] == (fires if overlap == "second" else "12-02T09:30")


def test_t2_a_row_without_offsets_fires_from_now_on(use: Use) -> None:
    """Earlier code stored neither the version nor the offsets."""
    use(-8)
    definition = timed("0 9 * * *")
    timer = replace(begun(definition), rules="", walls={})
    assert fire_timer.by_present_rules(timer, definition, NOON).next == timer.next
    use(-7)
    after = fire_timer.by_present_rules(timer, definition, NOON)
    assert iso(after.next["0"])[5:16] == "12-01T16:00"


def prepared(definition: Any, timer: Timer, now: Instant) -> tuple[tuple[Job, ...], Timer]:
    emission = fire_timer.emit(timer, definition, now, now + HORIZON)
    return emission.fires, emission.timer


@pytest.mark.parametrize(("old", "new", "again"), [(-8, -7, "12-01T16:00"), (-7, -8, "12-01T17:00")])
def test_t2_a_prepared_fire_is_taken_back_and_prepared_again(use: Use, old: float, new: float, again: str) -> None:
    use(old)
    definition = timed("0 9 * * *", repeats=5)
    hour = 17 if old == -8 else 16
    now = parse_instant(f"2026-12-01T{hour - 1}:58:00Z")
    fires, timer = prepared(definition, begun(definition), now)
    assert ([iso(fire.due_at)[5:16] for fire in fires], timer.fired) == ([f"12-01T{hour}:00"], {"0": 1})
    assert not fire_timer.may_have_moved(timer, definition, now)
    use(new)
    assert fire_timer.may_have_moved(timer, definition, now)
    earlier, gone = fire_timer.before_moved(timer, definition, fires, now)
    assert (iso(earlier.next["0"])[5:16], earlier.fired, gone) == (again, {"0": 0}, fires)
    assert earlier.wake_at == earlier.next["0"]


def test_t2_prepared_fires_that_the_new_rules_have_too_stay(use: Use) -> None:
    use(-8)
    definition = timed("*/1 * * * *")
    now = parse_instant("2026-12-01T16:00:30Z")
    fires, timer = prepared(definition, begun(definition, now - HOUR), now)
    use(-7)
    earlier, gone = fire_timer.before_moved(timer, definition, fires, now)
    assert (gone, iso(earlier.next["0"])[5:16]) == ((), "12-01T15:01")


def test_t2_a_fire_that_has_begun_is_not_taken_back(use: Use) -> None:
    use(-8)
    definition = timed("0 9 * * *", jitter="10m")
    now = parse_instant("2026-12-01T17:00:30Z")
    fires, timer = prepared(definition, begun(definition), now - 2 * MINUTE)
    use(-7)
    assert fire_timer.before_moved(timer, definition, fires, now) == (timer, ())


def test_t2_a_schedule_owes_nothing_from_before_it_began(use: Use) -> None:
    use(-8)
    definition = timed("0 9 * * *")
    timer = begun(definition, parse_instant("2026-12-01T16:30:00Z"))
    use(-7)
    after = fire_timer.by_present_rules(timer, definition, parse_instant("2026-12-01T16:40:00Z"))
    assert iso(after.next["0"])[5:16] == "12-02T16:00"
