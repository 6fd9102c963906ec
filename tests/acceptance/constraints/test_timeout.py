"""A job that is not launched in time is aborted, or runs anyway (C10). Every waiting job has a row that
wakes it (C8).
"""

from __future__ import annotations

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.acceptance.words import (
    all_of,
    calendar,
    concurrency,
    day,
    days,
    delay,
    doze,
    fresh,
    on,
    partition,
    quiet,
    rate,
    reasons,
    since_last_run,
    started_at,
    states,
    why,
    window,
)
from tests.support.clock import NOON
from tests.support.schedules import at_most, partitions
from tests.support.world import EMR, World, flights

AN_HOUR = {"after": "1h", "then": "run"}
HALF_AN_HOUR = {"from": "2026-03-02T12:30:00Z", "to": "2026-03-02T13:00:00Z"}


def test_c10_job_not_launched_in_time_is_aborted_with_its_reason(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout={"after": "1h", "then": "abort"})}))
    world.upload(day(1))
    world.settle()

    doze(world, "1h2m")

    assert world.jobs("daily") == []
    [record] = world.records("daily")
    assert record.kind == "ABORTED"
    assert "timeout of 1h" in record.reason.text
    assert "1 partition of demo.flights" in record.reason.text


def test_c10_the_timeout_is_a_day_by_default_and_may_be_never(world: World) -> None:
    world.deploy(flights({"usual": partitions(2), "patient": partitions(2, timeout="never")}))
    world.upload(day(1))
    doze(world, "24h")
    assert "not launched within its timeout of 1d" in reasons(world, "usual")[0]
    doze(world, "90d")
    assert world.jobs("patient")[0].wake_at is None
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("patient")] == [["1", "2"]]


def test_c10_a_timeout_may_run_a_job_anyway_but_never_past_limit(world: World) -> None:
    anyway = partitions(2, timeout=AN_HOUR, **at_most(1, "abort"))
    world.deploy(flights({"daily": anyway, "other": partitions(dataset="weather", by=["day"])}))
    world.upload(day(1, "weather", "x.csv"))
    world.upload(day(1))
    world.settle()

    doze(world, "1h2m")
    assert world.runs("daily") == []
    assert [job.state for job in world.jobs("daily")] == ["PENDING_LAUNCH"]

    world.finish()
    world.settle()
    [run] = world.runs("daily")
    assert "timeout" in run.fired_by.text


@pytest.mark.parametrize(
    "constraint",
    [
        delay("3h"),
        window("20:00", "21:00"),
        since_last_run("5h"),
        since_last_run("5h", on_unmet="wait"),
        fresh("join", "1h"),
        fresh("join", "1h", on_unmet="abort"),
        calendar(only=["wed"]),
        calendar(only=["2026-03-01"], on_unmet="abort"),
    ],
    ids=["C2", "C3", "C4 that aborts", "C4 that waits", "C7 that waits", "C7 that aborts", "C17", "C17 past"],
)
def test_c10_run_overrides_the_trigger_and_conditions_of_time(world: World, constraint: dict[str, object]) -> None:
    anyway = on(all_of(partition(), partition("weather")), "clean", constraint, timeout=AN_HOUR)
    world.deploy(flights({"daily": anyway, "before": partitions(dataset="weather")}))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.finish()
    doze(world, "1h")

    [run] = world.runs("daily")
    assert run.claimed_at == NOON + HOUR
    assert run.fired_by.text.startswith("run in spite of its timeout: waits for 1 partition of demo.flights")


def test_c10_run_never_overrides_a_rate(world: World) -> None:
    anyway = on(partition(count=2), "clean", rate(1, "3h"), timeout=AN_HOUR)
    world.deploy(flights({"daily": anyway, "before": partitions(dataset="weather")}))
    world.upload(day(1, "weather", "a.csv"))
    world.upload(day(1))
    world.settle()
    assert states(world, "before") == ["STARTING"]
    doze(world, "1h")
    assert (states(world, "daily"), world.jobs("daily")[0].state) == ([], "PENDING_LAUNCH")
    doze(world, "2h")
    assert started_at(world, "daily") == ["2026-03-02T15:00:00.000Z"]


def test_c10_a_timeout_with_run_waits_for_the_end_of_a_hold(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout=AN_HOUR)}))
    world.upload(day(1))
    world.settle()
    world.pause("daily")
    doze(world, "2h")
    assert (states(world, "daily"), world.records("daily")) == ([], [])
    world.resume("daily")
    world.settle()
    [run] = world.runs("daily")
    assert run.fired_by.text.startswith("run in spite of its timeout")


def test_c10_a_constraint_that_waits_too_long_times_out_by_name(world: World) -> None:
    night = on(partition(), "clean", window("22:00", "06:00"), timeout={"after": "2h", "then": "abort"})
    world.deploy(flights({"daily": night}))
    world.upload(day(1))
    doze(world, "2h")
    assert reasons(world, "daily") == [
        "ABORTED: not launched within its timeout of 2h: between 22:00 and 06:00 in UTC, else wait: "
        "not before 2026-03-02T22:00:00.000Z"
    ]


def test_c10_a_timeout_in_a_queue_leaves_the_queue(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1), timeout={"after": "1h", "then": "abort"})}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    doze(world, "1h")
    assert "waits for a slot of workflow demo.flights.clean: 1 of 1 in use" in reasons(world, "daily")[0]
    limit = world.limit_state("workflow:demo.flights.clean")
    assert (limit.active, limit.waiters) == (1, 0)


def test_c8_every_waiting_job_is_found_by_tick_if_hints_are_lost(world: World) -> None:
    schedules = {
        "delayed": on(partition(), "clean", delay("10m")),
        "windowed": on(partition(), "clean", window("12:30", "13:00")),
        "by_day": on(partition(), "clean", calendar(only=[HALF_AN_HOUR])),
        "spaced": on(partition(), "clean", since_last_run("35m", of="any", on_unmet="wait")),
        "rated": on(partition(), "join", rate(1, "20m"), by=["day"]),
        "single": on(partition(), "report", concurrency(1)),
        "quiet": on(quiet(partition(), "15m"), "report"),
    }
    world.deploy(flights(schedules, report={"target": EMR}))
    world.hints.lose = True
    for number in (1, 2):
        world.upload(day(number))
    for _ in range(40):
        world.clock.pass_by("1m")
        world.finish()
        world.hints.lose = False
        world.tick()
        world.hints.lose = True
        world.hints.sent.clear()

    answer = {name: len(world.runs(name)) for name in schedules}
    assert answer == {"delayed": 1, "windowed": 1, "by_day": 1, "spaced": 1, "rated": 2, "single": 1, "quiet": 1}
    assert [record for name in schedules for record in world.records(name)] == []


@pytest.mark.parametrize(
    ("constraint", "wakes", "instant"),
    [
        (delay("3h"), "its time at 2026-03-02T15:01:00.000Z", NOON + 3 * HOUR + MINUTE),
        (window("22:00", "06:00"), "its time at 2026-03-02T22:00:00.000Z", NOON + 10 * HOUR),
        (calendar(only=["tue"]), "its time at 2026-03-03T00:00:00.000Z", NOON + 12 * HOUR),
        (since_last_run("5h", on_unmet="wait"), "its time at 2026-03-02T17:00:00.000Z", NOON + 5 * HOUR),
        (
            fresh("join", "1h"),
            "a success of demo.flights.join, or its timeout at 2026-03-03T12:01:00.000Z",
            NOON + DAY + MINUTE,
        ),
        (
            concurrency(1),
            "a permit of workflow demo.flights.clean, or its timeout at 2026-03-03T12:01:00.000Z",
            NOON + DAY + MINUTE,
        ),
        (
            rate(1, "hour"),
            "a permit of workflow demo.flights.clean, or its timeout at 2026-03-03T12:01:00.000Z",
            NOON + DAY + MINUTE,
        ),
    ],
    ids=["C2", "C3", "C17", "C4", "C7", "C1", "C5"],
)
def test_c8_each_wait_names_its_wake_and_has_no_earlier_check(
    world: World, constraint: dict[str, object], wakes: str, instant: int
) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", constraint), "before": partitions(dataset="weather")}))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.clock.pass_by("1m")
    world.upload(day(1))
    world.settle()

    [job] = world.jobs("daily")
    assert (job.wake_at, why(world, "daily")["wakes"]) == (instant, wakes)
    doze(world, "30m")
    [later] = world.jobs("daily")
    assert (later.rev, later.leases) == (job.rev, 0)
