"""Times in all their forms: due times, bounds, ttl, outages, jitter and exclusions (T3-T6, L10)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, iso, parse_instant
from chalicelib.flow import lookup
from tests.acceptance.words import day, dues, is_gone, kinds, on, partition, reasons, time, to_queue, why_schedule
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.world import World, flights, full

# -- T3: due_time and ttl ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["90s", "PT1M30S", "2026-03-02T12:01:30Z", "2026-03-02T13:01:30+01:00"])
def test_t3_a_due_time_alone_fires_once_in_each_of_its_forms(world: World, written: str) -> None:
    world.deploy(flights({"tick": to_queue({"type": "time", "due_time": written})}))
    world.pass_by("5m")
    assert dues(world) == [90]
    assert why_schedule(world, "tick")["state"] == "completed"


def test_t3_the_first_fire_is_at_due_time_and_the_rest_follow(world: World) -> None:
    world.deploy(
        flights({
            "tick": to_queue(time("@every 20s", due_time="15s", repeats=4)),
            "iso": to_queue(time("R3/PT20S", due_time="15s")),
            "cron": to_queue(time("* * * * *", due_time="15s", repeats=3)),
        })
    )  # fmt: skip
    world.pass_by("4m")
    assert dues(world) == [15, 35, 55, 75]
    assert dues(world, "iso") == [15, 35, 55]
    assert dues(world, "cron") == [15, 60, 120]


def test_t3_a_repeating_schedule_is_deleted_after_its_repeats(world: World) -> None:
    repeating = time("@every 10s", due_time="10s", repeats=4)
    world.deploy(flights({"tick": to_queue(repeating, when_done="delete")}))
    world.pass_by("41s")
    assert dues(world) == [10, 20, 30, 40]
    world.pass_by("2m")
    assert (is_gone(world), len(world.runs("tick"))) == (True, 4)


def test_t3_a_ttl_bounds_nominal_times_inclusively_then_deletes(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s", due_time="10s", repeats=4), ttl="10s")}))
    world.pass_by("10s")
    assert dues(world) == [10]
    world.pass_by("5s")
    assert is_gone(world)
    world.pass_by("2m")
    assert dues(world) == [10]


@pytest.mark.parametrize("written", ["35s", "PT35S", "2026-03-02T12:00:35Z"])
def test_t3_a_ttl_may_have_any_of_three_forms(world: World, written: str) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s"), ttl=written)}))
    world.pass_by("3m")
    assert (dues(world), is_gone(world)) == ([10, 20, 30], True)


def test_t3_the_same_document_again_does_not_restart_its_spans(world: World) -> None:
    document = flights({"tick": to_queue({"type": "time", "due_time": "90s"})})
    world.deploy(document)
    world.pass_by("60s")
    assert world.deploy(document)["kept"] != []
    world.put("tick", document["schedules"]["tick"])
    world.pass_by("60s")
    assert dues(world) == [90]


def test_t3_the_ttl_of_data_schedule_deletes_it_and_drops_unmet(world: World) -> None:
    world.deploy(flights({"two": on(partition(count=2), ttl="10m"), "one": on(partition(), "join", ttl="10m")}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.pass_by("10m")
    assert (is_gone(world, "two"), is_gone(world, "one")) == (True, True)
    assert len(world.runs("one")) == 1
    assert kinds(world, "two") == ["DROPPED"]
    world.upload(day(2))
    world.settle()
    assert (world.runs("two"), len(world.runs("one"))) == ([], 1)


# -- T4: lateness ------------------------------------------------------------------------------------------------------


def test_t4_each_run_shows_its_lateness(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s", repeats=2)), "two": on(partition())}))
    world.clock.pass_by("12500ms")
    world.settle()
    world.upload(day(1))
    world.pass_by("30s")
    first, second = (views.run_view(run) for run in world.runs("tick"))
    assert (first["lateness_ms"], second["lateness_ms"]) == (2_500, 0)
    assert first["due_at"] == first["nominal_at"] == iso(NOON + 10 * SECOND)
    [by_data] = world.runs("two")
    assert views.run_view(by_data)["lateness_ms"] is None


# -- T5: outages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "outage", "ran", "skipped"),
    [
        ("all", 5 * HOUR, 5, 0),
        ("latest", 5 * HOUR, 1, 4),
        ("none", 5 * HOUR, 1, 4),  # the fire of this very minute is not a missed one
        ({"mode": "all", "within": "150m"}, 5 * HOUR, 3, 2),
        ("all", DAY, 24, 0),
        ("latest", DAY, 1, 23),
        ("all", 31 * DAY, 25, 719),
        ("latest", 31 * DAY, 1, 743),
        ("none", 31 * DAY, 1, 743),
        ("none", MINUTE, 0, 0),
        ("all", MINUTE, 0, 0),
    ],
)
def test_t5_after_an_outage_the_schedule_shows_its_catch_up(
    world: World, catch_up: Any, outage: int, ran: int, skipped: int
) -> None:
    world.deploy(flights({"hourly": to_queue(time("0 * * * *"), catch_up=catch_up)}))
    world.clock.wait_until(NOON + outage)
    world.tick()
    assert len(world.runs("hourly")) == ran
    assert sum(record.count for record in world.records("hourly")) == skipped
    assert {record.kind for record in world.records("hourly")} <= {"SKIPPED"}
    world.pass_by("61m")
    assert len(world.runs("hourly")) == ran + 1


def test_t5_catch_up_latest_runs_only_the_latest_missed_fire(world: World) -> None:
    world.deploy(flights({"hourly": to_queue(time("0 * * * *"), catch_up="latest")}))
    world.clock.wait_until(NOON + 5 * HOUR + 20 * MINUTE)
    world.tick()
    assert [run.nominal_at for run in world.runs("hourly")] == [NOON + 5 * HOUR]
    assert reasons(world, "hourly") == [
        "SKIPPED: 4 fires from 2026-03-02T13:00:00.000Z to 2026-03-02T17:00:00.000Z were missed (catch_up:"
        " latest) and are skipped"
    ]


@pytest.mark.parametrize("catch_up", ["all", "latest", "none"])
def test_t5_enabling_never_catches_up(world: World, catch_up: str) -> None:
    world.deploy(flights({"hourly": to_queue(time("0 * * * *"), catch_up=catch_up)}))
    world.disable("hourly")
    world.clock.wait_until(NOON + 5 * HOUR + 20 * MINUTE)
    world.enable("hourly")
    world.tick()
    assert (world.runs("hourly"), world.records("hourly")) == ([], [])


# -- T6: jitter and exclusions -----------------------------------------------------------------------------------------


def test_t6_jitter_delays_fires_equally_and_shows_both_instants(world: World) -> None:
    jittered = to_queue(time("@every 1m", jitter="50s", repeats=6))
    world.deploy(flights({"tick": jittered, "other": jittered}))
    world.pass_by("10m")
    nominal = [((run.nominal_at or 0) - NOON) / SECOND for run in world.runs("tick")]
    late = [((run.due_at or 0) - (run.nominal_at or 0)) / SECOND for run in world.runs("tick")]
    assert nominal == [60, 120, 180, 240, 300, 360]
    assert all(0 <= each <= 50 for each in late)
    assert len(set(late)) > 1
    assert [run.start_requested_at for run in world.runs("tick")] == [run.due_at for run in world.runs("tick")]
    assert late != [((run.due_at or 0) - (run.nominal_at or 0)) / SECOND for run in world.runs("other")]


def test_t6_a_jittered_occurrence_is_skipped_by_nominal_instant(world: World) -> None:
    from chalicelib.flow.schedules import pauses

    world.deploy(flights({"tick": to_queue(time("@every 5m", jitter="4m"))}))
    pauses.skip(world.ports, full("tick"), NOON + 5 * MINUTE, "tester")
    world.pass_by("15m")
    assert world.runs("tick")[0].nominal_at == NOON + 10 * MINUTE
    assert kinds(world, "tick") == ["SKIPPED"]


def test_t6_excluded_dates_weekdays_and_windows_do_not_fire(world: World) -> None:
    excluding = ["sat", "sunday", "2026-03-04", {"from": "2026-03-05T06:00:00Z", "to": "2026-03-06T06:00:00Z"}, "03-10"]
    world.deploy(flights({"daily": to_queue(time("0 9 * * *", excluding=excluding))}))
    _, schedule = lookup.existing(world.ports, full("daily"))
    from chalicelib.core.fires import upcoming

    shown = [iso(at)[5:10] for at in upcoming.preview(schedule, NOON, 5)]
    assert shown == ["03-03", "03-06", "03-09", "03-11", "03-12"]
    for number in range(1, 10):
        world.clock.wait_until(NOON + number * DAY - 3 * HOUR - MINUTE)
        world.tick()
        world.pass_by("2m")
    assert [iso(run.nominal_at or 0)[5:10] for run in world.runs("daily")] == shown[:4]


@pytest.mark.parametrize(
    ("expression", "fires"),
    [
        ({"every": "2 weeks", "from": "2026-02-16T09:00", "day_of_week": "mon"}, ["03-16 08:00", "03-30 07:00"]),
        ("DTSTART:20260101T090000 RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=-1TU", ["03-31 07:00"]),
        ("0 17 LW,W#4 * *", ["03-05 16:00", "03-31 15:00"]),
    ],
)
def test_t30_calendar_rules_keep_their_local_time(world: World, expression: Any, fires: list[str]) -> None:
    """The clocks of Paris go forward on 29 March."""
    world.deploy(flights({"closing": to_queue(time(expression, zone="Europe/Paris", jitter="1m"))}))
    _, schedule = lookup.existing(world.ports, full("closing"))
    from chalicelib.core.fires import upcoming

    shown = [iso(at)[5:16].replace("T", " ") for at in upcoming.preview(schedule, NOON, len(fires))]
    assert shown == fires
    for text in fires:
        world.clock.wait_until(parse_instant(f"2026-{text.replace(' ', 'T')}:00Z") - 2 * MINUTE)
        world.tick()
        world.pass_by("5m")
    assert [iso(run.nominal_at or 0)[5:16].replace("T", " ") for run in world.runs("closing")] == fires


def test_t30_the_days_of_a_span_do_not_fire_in_any_year(world: World) -> None:
    excluding = [{"from": "11-15", "to": "03-05"}]
    world.deploy(flights({"daily": to_queue(time("0 9 * * *", excluding=excluding))}))
    world.clock.wait_until(parse_instant("2026-03-04T08:58:00Z"))
    for _ in range(4):
        world.tick()
        world.pass_by("1d")
    assert sorted(iso(run.nominal_at or 0)[5:10] for run in world.runs("daily")) == ["03-06", "03-07"]


def test_t6_dates_are_those_of_the_trigger_zone(world: World) -> None:
    from chalicelib.core.triggers import occurrences
    from chalicelib.core.triggers.time import TimeTrigger

    document = time("0 1 * * *", zone="Asia/Tokyo", excluding=["2026-03-03"])
    rule = TimeTrigger.model_validate(document)
    # Noon in London is nine in the evening in Tokyo: the next 01:00 is that of the 3rd, which is excluded.
    assert occurrences.next_due(rule, NOON, NOON) == parse_instant("2026-03-04T01:00:00+09:00")
