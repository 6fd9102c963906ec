"""Triggers that time alone meets: quiet (T12), elapsed (T13), absent (T18)."""

from __future__ import annotations

from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.acceptance.words import (
    absent,
    all_of,
    any_of,
    day,
    days,
    doze,
    doze_until,
    elapsed,
    event,
    on,
    partition,
    quiet,
    reasons,
    size,
    started_at,
    why,
    window,
)
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import World, flights


def test_t12_quiet_waits_for_no_events_after_at_least_one(world: World) -> None:
    world.deploy(flights({"chunks": on(quiet(partition(), "10m"))}))
    doze(world, "1h")
    assert world.runs("chunks") == []

    begun = world.clock.now()
    world.upload(day(1))
    world.pass_by("6m")
    world.upload(day(2))
    world.pass_by("6m")
    assert "10m without another partition of demo.flights" in why(world, "chunks")["missing"][0]
    assert "its time at 2026-03-02T13:16:00.000Z" in why(world, "chunks")["wakes"]
    world.pass_by("4m")

    [run] = world.runs("chunks")
    assert run.claimed_at == begun + 16 * MINUTE
    assert days(world, run) == ["1", "2"]
    doze(world, "1h")
    assert len(world.runs("chunks")) == 1


def test_t12_quiet_counts_from_the_last_event_once_enough_came(world: World) -> None:
    world.deploy(flights({"chunks": on(quiet(partition(count=3), "10m"))}))
    for number in (1, 2):
        world.upload(day(number))
    doze(world, "1h")
    assert world.runs("chunks") == []
    world.upload(day(3))
    doze(world, "10m")
    assert started_at(world, "chunks") == ["2026-03-02T13:10:00.000Z"]


def test_t12_an_event_while_a_quiet_job_waits_ends_the_quiet(world: World) -> None:
    world.deploy(flights({"chunks": on(quiet(partition(), "10m"), "clean", window("14:00", "18:00"))}))
    world.upload(day(1))
    doze(world, "1h55m")
    assert world.jobs("chunks")[0].state == "PENDING_CONSTRAINTS"
    world.upload(day(2))
    world.settle()
    assert world.jobs("chunks")[0].state == "PENDING_TRIGGER"
    world.pass_by("6m")
    assert world.runs("chunks") == []
    world.pass_by("4m")
    [run] = world.runs("chunks")
    assert days(world, run) == ["1", "2"]
    assert run.claimed_at == NOON + 2 * HOUR + 5 * MINUTE


def test_t12_quiet_works_for_bytes_and_for_events(world: World) -> None:
    world.deploy(
        flights(
            {
                "bytes": on(quiet(size("10 MB"), "5m")),
                "posted": on(quiet(event("order.closed"), "5m")),
            }
        )
    )
    for number in range(3):
        world.upload(day(1, name=f"part-{number}.parquet"), size=4_000_000)
        world.post("order.closed")
        world.pass_by("2m")
    assert (world.runs("bytes"), world.runs("posted")) == ([], [])
    world.pass_by("3m")
    for name in ("bytes", "posted"):
        [run] = world.runs(name)
        assert run.claimed_at == NOON + 9 * MINUTE
        assert len(world.context(run)["events"]) == 3


def test_t13_elapsed_counts_from_enabling_then_from_each_start(world: World) -> None:
    """Interleaving 16: no data at all."""
    world.deploy(flights({"four": on(elapsed("4h")), "data": partitions()}))
    doze(world, "4h")
    assert started_at(world, "four") == ["2026-03-02T16:00:00.000Z"]

    doze(world, "3h")
    world.upload(day(1))
    world.settle()
    assert started_at(world, "data") == ["2026-03-02T19:00:00.000Z"]
    doze(world, "1h")
    assert len(world.runs("four")) == 1
    doze(world, "3h")
    assert started_at(world, "four")[1:] == ["2026-03-02T23:00:00.000Z"]


def test_t13_elapsed_counts_from_enabling_not_an_earlier_start(world: World) -> None:
    world.deploy(flights({"four": on(elapsed("4h"))}))
    doze(world, "4h")
    world.disable("four")
    doze(world, "5h")
    world.enable("four")
    doze(world, "3h59m")
    assert len(world.runs("four")) == 1
    world.pass_by("1m")
    assert started_at(world, "four")[1:] == ["2026-03-03T01:00:00.000Z"]


def test_t13_elapsed_of_a_queue_counts_from_the_last_delivery(world: World) -> None:
    world.deploy(flights({"idle": on(any_of(elapsed("2h"), event("go")), "notify")}))
    doze(world, "1h")
    world.post("go")
    world.settle()
    doze(world, "1h")
    assert len(world.targets.queue.messages) == 1
    doze(world, "1h")
    assert started_at(world, "idle")[1:] == ["2026-03-02T15:00:00.000Z"]


def test_t18_nothing_by_a_time_of_day_starts_a_run_else_not(world: World) -> None:
    world.deploy(flights({"alarm": on(absent(partition(), deadline="06:00", zone="Europe/Paris"))}))
    six_in_paris = NOON + 17 * HOUR
    doze_until(world, NOON + 15 * HOUR)
    world.upload(day(1))
    doze_until(world, six_in_paris + MINUTE)
    assert (world.runs("alarm"), world.records("alarm")) == ([], [])

    doze_until(world, six_in_paris + DAY)
    [run] = world.runs("alarm")
    assert run.claimed_at == six_in_paris + DAY
    assert "no partition of demo.flights had come by 06:00 in Europe/Paris" in run.fired_by.text


def test_t18_the_days_of_a_deadline_are_those_of_its_checks(world: World) -> None:
    world.deploy(flights({"alarm": on(absent(partition(), deadline="06:00", days=["thu"]))}))
    doze_until(world, NOON + 2 * DAY)
    assert world.runs("alarm") == []
    doze_until(world, NOON + 2 * DAY + 18 * HOUR)
    assert started_at(world, "alarm") == ["2026-03-05T06:00:00.000Z"]


def test_t18_nothing_in_a_span_starts_run_and_events_restart_it(world: World) -> None:
    world.deploy(flights({"alarm": on(absent(event("heartbeat"), within="1h"))}))
    doze(world, "50m")
    world.post("heartbeat")
    doze(world, "59m")
    assert world.runs("alarm") == []
    world.pass_by("1m")
    assert started_at(world, "alarm") == ["2026-03-02T13:50:00.000Z"]

    doze(world, "1h")
    assert started_at(world, "alarm")[1:] == ["2026-03-02T14:50:00.000Z"]


def test_t18_only_events_that_match_the_pattern_are_the_feed(world: World) -> None:
    healthy = event("heartbeat", pattern={"healthy": [True]})
    world.deploy(flights({"alarm": on(absent(healthy, within="1h"))}))
    doze(world, "30m")
    world.post("heartbeat", healthy=True)
    doze(world, "30m")
    world.post("heartbeat", healthy=False)
    world.settle()
    assert world.runs("alarm") == []
    doze(world, "30m")
    assert started_at(world, "alarm") == ["2026-03-02T13:30:00.000Z"]


def test_t18_a_late_feed_before_the_launch_cancels_it_on_record(world: World) -> None:
    late = on(absent(partition(), within="1h"), "clean", window("18:00", "19:00"))
    world.deploy(flights({"alarm": late}))
    doze(world, "1h")
    assert world.jobs("alarm")[0].state == "PENDING_CONSTRAINTS"
    world.upload(day(1))
    world.settle()
    assert world.jobs("alarm") == []
    came = "year=2013/month=01/day=1 of demo.flights"
    assert reasons(world, "alarm") == [f"DROPPED: the absent event arrived before the job was launched: {came}"]


def test_t18_absence_and_presence_combine_in_one_trigger(world: World) -> None:
    """The weather came and the flights did not: report what is missing."""
    world.deploy(flights({"alarm": on(all_of(partition("weather"), absent(partition(), deadline="18:00")))}))
    world.upload(day(1, "weather", "a.csv"))
    doze_until(world, NOON + 6 * HOUR)
    [run] = world.runs("alarm")
    assert sorted(event["kind"] for event in world.context(run)["events"]) == ["absent", "partition"]


def test_t13_and_t12_in_one_trigger_fire_on_the_first(world: World) -> None:
    world.deploy(flights({"load": on(any_of(quiet(partition(), "10m"), elapsed("2h")))}))
    world.upload(day(1))
    doze(world, "10m")
    world.finish()
    assert started_at(world, "load") == ["2026-03-02T12:10:00.000Z"]
    doze(world, "1h59m")
    assert len(world.runs("load")) == 1
    world.pass_by("1m")
    assert started_at(world, "load")[1:] == ["2026-03-02T14:10:00.000Z"]
