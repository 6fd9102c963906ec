"""Constraints on earlier runs: the span since the last one (C4), a rate (C5), fresh upstreams (C7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.acceptance.words import (
    concurrency,
    day,
    days,
    doze,
    doze_until,
    fresh,
    kinds,
    on,
    partition,
    rate,
    reasons,
    since_last_run,
    started_at,
    states,
    status,
    why,
)
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

CLEAN = "workflow:demo.flights.clean"


def test_c4_an_active_run_counts_and_a_failed_one_does_not(world: World) -> None:
    """Interleaving 15: run 1 is active when the second partition arrives: no launch. Run 1 fails: the
    next may start.
    """
    world.deploy(flights({"daily": on(partition(), "clean", since_last_run("5m"))}))
    world.upload(day(1))
    world.settle()
    world.pass_by("1m")
    world.upload(day(2))
    world.settle()
    assert kinds(world, "daily") == ["ABORTED"]

    world.finish("FAILED")
    world.upload(day(3))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"], ["3"]]


def test_c4_of_any_counts_failed_runs_too(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", since_last_run("5m", of="any"))}))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.pass_by("1m")
    world.upload(day(2))
    world.settle()
    assert kinds(world, "daily") == ["ABORTED"]
    world.pass_by("4m")
    world.upload(day(3))
    world.settle()
    assert started_at(world, "daily")[1:] == ["2026-03-02T12:05:00.000Z"]


def test_c4_the_gap_counts_from_the_start_of_the_last_success(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", since_last_run("5m", on_unmet="wait"))}))
    world.upload(day(1))
    world.settle()
    world.pass_by("4m")
    world.finish()
    world.upload(day(2))
    world.settle()
    assert why(world, "daily")["constraints"][0]["until"] == "2026-03-02T12:05:00.000Z"
    world.pass_by("1m")
    assert started_at(world, "daily") == ["2026-03-02T12:00:00.000Z", "2026-03-02T12:05:00.000Z"]


def test_c4_a_failure_launches_a_job_that_waited_for_active_run(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", since_last_run("1h", on_unmet="wait"))}))
    world.upload(day(1))
    world.settle()
    world.pass_by("1m")
    world.upload(day(2))
    world.settle()
    assert len(world.runs("daily")) == 1
    world.finish("FAILED")
    world.pass_by("2m")
    assert len(world.runs("daily")) == 2


def test_c4_runs_of_the_workflow_count_for_every_schedule(world: World) -> None:
    world.deploy(
        flights(
            {"careful": on(partition("weather"), "clean", since_last_run("5m")), "other": partitions(dataset="flights")}
        )
    )
    world.upload(day(1))
    world.settle()
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert kinds(world, "careful") == ["ABORTED"]


def test_c5_no_span_has_more_starts_than_rate_and_none_is_lost(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", rate(2, "10m"), by=["day"])}))
    for number, wait in ((1, "4m"), (2, "4m"), (3, "1m"), (4, "1m"), (5, "4m")):
        world.upload(day(number))
        world.settle()
        world.pass_by(wait)
        world.finish()
    doze(world, "6m")

    starts = [(run.claimed_at - NOON) // MINUTE for run in world.runs("daily")]
    assert starts == [0, 4, 10, 14, 20]
    assert world.records("daily") == []
    assert world.limit_state("rate:demo.flights.clean:2/600000").waiters == 0


@pytest.mark.parametrize(
    ("before", "after", "minutes"),
    [
        # the rate, the changed one, and when the fourth and fifth start are claimed after those at 0, 1 and 2
        (rate(3, "hour"), rate(2, "hour"), [61, 62]),
        (rate(3, "hour"), rate(1, "hour"), [62, 122]),
        (rate(3, "hour"), rate(4, "hour"), [10, 60]),
        (rate(3, "hour"), rate(3, "2h"), [120, 121]),
        (rate(3, "hour"), rate(3, "30m"), [30, 31]),
        (rate(3, "hour"), rate(2, "30m"), [31, 32]),
        (rate(6, "2h"), rate(2, "hour"), [61, 62]),
    ],
)
def test_c5_a_changed_rate_keeps_the_starts_made(
    world: World, before: dict[str, object], after: dict[str, object], minutes: list[int]
) -> None:
    world.deploy(flights({"daily": on(partition(), "notify", before, by=["day"])}))
    for number in (1, 2, 3):
        world.upload(day(number))
        world.settle()
        world.pass_by("1m")
    world.pass_by("7m")
    world.put("daily", on(partition(), "notify", after, by=["day"]))
    for number in (4, 5):
        world.upload(day(number))
        world.settle()
    world.pass_by("112m")

    assert [(run.claimed_at - NOON) // MINUTE for run in world.runs("daily")] == [0, 1, 2, *minutes]


def test_c5_a_changed_rate_counts_starts_of_other_schedules_too(world: World) -> None:
    """The schedule that had the rate is gone, and another one has the first start after the change."""
    world.deploy(
        flights(
            {
                "old": on(partition(), "clean", rate(3, "hour"), by=["day"]),
                "other": partitions(dataset="weather", by=["day"]),
            }
        )
    )
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
        world.pass_by("1m")
    world.delete("old")
    world.put("daily", on(partition(), "clean", rate(2, "hour", on_unmet="abort"), by=["day"]))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.upload(day(3))
    world.settle()
    assert (len(world.runs("other")), kinds(world, "daily")) == (1, ["ABORTED"])
    doze_until(world, NOON + 61 * MINUTE)
    world.upload(day(4))
    world.settle()
    assert len(world.runs("daily")) == 1, "the starts of minutes 0 and 1 are out of the window; that of minute 2 counts"


def test_c5_a_job_waiting_for_its_rate_shows_its_next_start(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", rate(1, "hour"), by=["day"])}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    answer = why(world, "daily")
    rule = "waits for the rate limit of workflow demo.flights.clean: at most 1 run claimed per 1h"
    assert answer["why"].startswith(f"{rule}, the next at 2026-03-02T13:00:00.000Z")
    assert answer["constraints"][0]["until"] == "2026-03-02T13:00:00.000Z"


def test_c5_an_unmet_rate_may_abort_instead(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", rate(1, "day", on_unmet="abort"))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    answer = "at most 1 run per day, else abort: not before 2026-03-03T12:00:00.000Z"
    assert reasons(world, "daily") == [f"ABORTED: {answer}"]


def test_c5_starts_of_other_schedules_run_nows_and_retries_count(world: World) -> None:
    fragile = {"target": EMR, "retries": {"attempts": 2}}
    world.deploy(
        flights(
            {
                "limited": on(partition(), "fragile", rate(4, "hour")),
                "other": partitions(workflow="fragile", dataset="weather"),
            },
            fragile=fragile,
        )
    )
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.run_now("other")
    world.settle()
    world.finish("FAILED", "disk full")
    world.pass_by("2m")
    assert len(world.runs("other")) == 4

    world.upload(day(1))
    world.settle()
    assert world.runs("limited") == []
    doze(world, "58m")
    assert len(world.runs("limited")) == 1


def test_c5_a_queue_has_a_rate_too(world: World) -> None:
    world.deploy(flights({"delivered": on(partition(), "notify", rate(1, "10m"), by=["day"])}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert len(world.targets.queue.messages) == 1
    doze(world, "10m")
    assert len(world.targets.queue.messages) == 2


def test_c5_deliveries_of_other_schedules_count_at_a_queue_too(world: World) -> None:
    world.deploy(
        flights({"delivered": on(partition(), "notify", rate(1, "10m")), "other": on(partition("weather"), "notify")})
    )
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.upload(day(1))
    world.settle()
    assert len(world.targets.queue.messages) == 1
    doze(world, "10m")
    assert len(world.targets.queue.messages) == 2


def test_c5_a_job_dropped_in_later_queue_returns_its_rate_entry(make_world: Callable[..., World]) -> None:
    world = make_world(start_burst=1, start_rate_per_second=0.1)
    world.deploy(flights({"daily": on(partition(), "clean", rate(2, "hour"), by=["day"])}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [queued] = world.jobs("daily")
    assert (queued.queued_in, len(world.limit_state(f"rate:demo.flights.clean:2/{HOUR}").starts)) == ("emr:starts", 2)
    world.disable("daily")
    assert len(world.limit_state(f"rate:demo.flights.clean:2/{HOUR}").starts) == 1


@pytest.mark.parametrize("rule", [rate(1, "10m", on_unmet="abort"), since_last_run("10m", of="any")], ids=["C5", "C4"])
def test_w1_a_retry_waits_where_another_job_would_be_aborted(world: World, rule: dict[str, object]) -> None:
    world.deploy(flights({"daily": on(partition(), "twice", rule)}, twice={"target": EMR, "retries": {"attempts": 2}}))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "disk full")
    world.pass_by("1m")
    assert (states(world, "daily"), world.records("daily")) == (["RETRYING"], [])
    doze(world, "9m")
    assert states(world, "daily") == ["RETRYING", "STARTING"]


def test_c7_a_stale_upstream_delays_a_job_until_it_succeeds(world: World) -> None:
    world.deploy(flights({"report": on(partition("weather"), "join", fresh("clean", "2h")), "clean": partitions()}))
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    [waiting] = world.jobs("report")
    assert waiting.state == "PENDING_CONSTRAINTS"
    assert waiting.wake_at == NOON + DAY  # its timeout, and nothing before
    answer = why(world, "report")
    assert answer["why"].endswith("demo.flights.clean has not succeeded yet")
    assert answer["wakes"].startswith("a success of demo.flights.clean, or its timeout at")

    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.settle()
    assert world.runs("report") == []
    world.clock.pass_by("1s")
    world.upload(day(2))
    world.settle()
    world.finish("SUCCESS")
    world.settle()
    assert [run.run_id for run in world.runs("report")] == [waiting.job_id]


def test_c7_an_upstream_success_becomes_stale(world: World) -> None:
    report = on(partition("weather"), "join", fresh("clean", "2h", on_unmet="abort"))
    world.deploy(flights({"report": report, "clean": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    doze(world, "2h")
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert len(world.runs("report")) == 1

    world.pass_by("1s")
    world.upload(day(2, "weather", "a.csv"))
    world.settle()
    assert kinds(world, "report") == ["ABORTED"]
    assert "demo.flights.clean last succeeded at 2026-03-02T12:00:00.000Z" in reasons(world, "report")[0]


def test_c7_freshness_is_no_trigger_so_it_makes_no_cycle(world: World) -> None:
    """`join` starts `clean`, and waits for a fresh `clean` itself. Freshness starts nothing, so this is no cycle."""
    report = on(partition("weather"), "join", fresh("clean", "2h", on_unmet="abort"))
    world.deploy(flights({"report": report, "again": on(status("join"), "clean"), "clean": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    world.finish()
    world.settle()
    assert (len(world.runs("report")), len(world.runs("again"))) == (1, 1)


def test_c4_c5_c1_together_are_taken_in_order_without_loss(world: World) -> None:
    rules = (concurrency(1), rate(2, "hour"), since_last_run("10m", on_unmet="wait"))
    world.deploy(flights({"daily": on(partition(), "clean", *rules, by=["day"])}))
    for number in (1, 2, 3):
        world.upload(day(number))
        world.settle()
    world.pass_by("5m")
    world.finish()
    doze(world, "5m")
    assert len(world.runs("daily")) == 2
    world.finish()
    doze(world, "50m")
    assert started_at(world, "daily") == [f"2026-03-02T{at}:00.000Z" for at in ("12:00", "12:10", "13:00")]
    world.finish()
    world.settle()
    assert states(world, "daily") == ["SUCCEEDED"] * 3
    assert (world.limit_state(CLEAN).active, world.limit_state(CLEAN).waiters) == (0, 0)
