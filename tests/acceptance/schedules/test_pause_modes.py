"""The pause modes (L4): hold, backlog and drain, with timeouts that count or are stopped."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.words import (
    all_of,
    concurrency,
    day,
    days,
    doze,
    kinds,
    on,
    partition,
    quiet,
    reasons,
    states,
    why,
    why_schedule,
)
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import World, flights


def test_l4_a_hold_gathers_without_launching_until_the_resume(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    [before] = world.jobs("daily")

    world.pause("daily", "hold")
    world.upload(day(2))
    world.upload(day(3))
    world.pass_by("2m")
    [held] = world.jobs("daily")
    assert held.job_id == before.job_id
    assert world.runs("daily") == []
    answer = why(world, "daily")
    assert answer["why"] == "the schedule has been paused (hold) since 2026-03-02T12:00:00.000Z"
    assert "resuming the schedule" in answer["wakes"]
    assert "1 job waiting: resume the schedule" in why_schedule(world, "daily")["why"]

    world.resume("daily")
    world.settle()
    [run] = world.runs("daily")
    assert run.run_id == before.job_id
    assert days(world, run) == ["1", "2", "3"]
    assert world.records("daily") == []


def test_l4_a_hold_keeps_one_fire_and_others_coalesce_on_record(world: World) -> None:
    world.deploy(flights({"tick": at("@every 1m")}))
    world.pause("tick")
    world.pass_by("3m")
    assert world.runs("tick") == []

    world.resume("tick")
    world.settle()
    [run] = world.runs("tick")
    assert run.nominal_at == NOON + MINUTE
    assert kinds(world, "tick") == ["COALESCED", "COALESCED"]


def test_l4_a_queued_job_leaves_its_queue_in_a_hold_and_returns(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [queued] = world.jobs("daily")
    assert queued.state == "PENDING_LAUNCH"

    world.pause("daily")
    world.finish()
    world.pass_by("3m")
    assert len(world.runs("daily")) == 1
    assert world.limit_state("workflow:demo.flights.clean").waiters == 0

    world.resume("daily")
    world.settle()
    assert world.runs("daily")[1].run_id == queued.job_id


def test_l4_backlog_keeps_each_match_as_job_that_runs_on_resume(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.pause("daily", "backlog")
    for number in (2, 3, 4, 5):
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1s")
    assert sorted(job.kind for job in world.jobs("daily")) == ["detached", "detached", "gathering"]
    assert world.runs("daily") == []

    world.resume("daily")
    world.settle()
    assert sorted(days(world, run) for run in world.runs("daily")) == [["1", "2"], ["3", "4"]]
    world.upload(day(6))
    world.settle()
    assert sorted(days(world, run) for run in world.runs("daily"))[2:] == [["5", "6"]]
    assert world.records("daily") == []


def test_l4_a_backlog_also_separates_matches_completed_by_time(world: World) -> None:
    world.deploy(flights({"chunks": on(quiet(partition(), "5m"), by=["month"])}))
    world.pause("chunks", "backlog")
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
        world.pass_by("6m")
    assert [job.kind for job in world.jobs("chunks")] == ["detached", "detached"]
    world.resume("chunks")
    world.settle()
    assert sorted(days(world, run) for run in world.runs("chunks")) == [["1"], ["2"]]


def test_l4_a_backlog_of_a_timer_runs_each_missed_fire(world: World) -> None:
    world.deploy(flights({"tick": at("@every 1m")}))
    world.pause("tick", "backlog")
    world.pass_by("3m")
    assert world.runs("tick") == []

    world.resume("tick")
    world.settle()
    assert sorted(run.nominal_at or 0 for run in world.runs("tick")) == [NOON + step * MINUTE for step in (1, 2, 3)]
    assert world.records("tick") == []


def test_l4_a_drain_launches_what_is_met_and_drops_what_is_not(world: World) -> None:
    world.deploy(
        flights(
            {"daily": on(partition(), "clean", concurrency(1)), "both": on(all_of(partition(), partition("weather")))}
        )
    )
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [waiting] = world.jobs("daily")
    for name in ("daily", "both"):
        world.pause(name, "drain")
    assert reasons(world, "both") == ["DROPPED: the schedule was paused to drain before its trigger was met"]
    world.upload(day(3))
    world.settle()
    assert [job.job_id for job in world.jobs("daily")] == [waiting.job_id]

    world.finish()
    world.settle()
    assert world.runs("daily")[1].run_id == waiting.job_id
    assert "has taken no new work" in why_schedule(world, "daily")["why"]

    world.clock.pass_by("1s")
    world.resume("daily")
    world.upload(day(4))
    world.settle()
    world.finish()
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"], ["2"], ["4"]]


def test_l4_a_drain_decides_for_each_correlation(world: World) -> None:
    world.deploy(flights({"join": on(all_of(partition(), partition("weather")), "join", concurrency(1), by=["day"])}))
    for number in (1, 2, 3):
        world.upload(day(number))
    for number in (1, 2):
        world.upload(day(number, "weather", "a.csv"))
        world.settle()
    assert sorted(job.state for job in world.jobs("join")) == ["PENDING_LAUNCH", "PENDING_TRIGGER"]
    world.pause("join", "drain")
    assert [job.state for job in world.jobs("join")] == ["PENDING_LAUNCH"]
    assert kinds(world, "join") == ["DROPPED"]
    world.finish()
    world.settle()
    world.upload(day(3, "weather", "a.csv"))
    world.clock.pass_by("1s")
    world.resume("join")
    world.upload(day(4))
    world.upload(day(4, "weather", "a.csv"))
    world.settle()
    world.finish()
    world.settle()
    assert sorted(days(world, run)[0] for run in world.runs("join")) == ["1", "2", "4"]


def test_l4_one_pause_may_follow_another(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.pause("daily", "hold")
    _arrive(world, 1, 2)
    world.pause("daily", "backlog")
    _arrive(world, 3, 4, 5, 6)
    world.pause("daily", "hold")
    _arrive(world, 7)
    assert (world.runs("daily"), len(world.jobs("daily"))) == ([], 3)
    world.pause("daily", "drain")
    world.settle()

    # Day 3 joined the held job of days 1 and 2 before the backlog detached it.
    assert sorted(days(world, run) for run in world.runs("daily")) == [["1", "2", "3"], ["4", "5"], ["6", "7"]]
    assert world.records("daily") == []


def _arrive(world: World, *numbers: int) -> None:
    for number in numbers:
        world.upload(day(number))
        world.settle()
        world.clock.pass_by("1s")


def test_l4_a_drain_takes_no_further_fire(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10s", "notify")}))
    world.pass_by("25s")
    world.pause("tick", "drain")
    world.pass_by("2m")
    assert len(world.runs("tick")) == 2

    world.resume("tick")
    world.pass_by("30s")
    assert len(world.runs("tick")) == 5


def test_l4_timeouts_go_on_in_a_hold_unless_asked_to_stop(world: World) -> None:
    two = {
        name: partitions(2, dataset=dataset, timeout={"after": "2h", "then": "abort"})
        for name, dataset in (("counting", "flights"), ("still", "weather"))
    }
    world.deploy(flights(two))
    world.upload(day(1))
    world.upload(day(1, "weather", "a.csv"))
    doze(world, "1h")
    world.pause("counting", "hold")
    world.pause("still", "hold", stop_timeouts=True)
    doze(world, "3h")
    assert world.jobs("counting") == []
    assert "not launched within its timeout of 2h" in reasons(world, "counting")[0]
    assert len(world.jobs("still")) == 1

    world.resume("still")
    doze(world, "59m")
    assert len(world.jobs("still")) == 1
    assert "its timeout at 2026-03-02T17:00:00.000Z" in why(world, "still")["wakes"]
    doze(world, "2m")
    assert kinds(world, "still") == ["ABORTED"]
    assert world.records("still")[0].recorded_at == NOON + 5 * HOUR


def test_l4_stopped_timeouts_may_count_again_during_the_pause(world: World) -> None:
    world.deploy(flights({"daily": partitions(2, timeout={"after": "2h", "then": "abort"})}))
    world.upload(day(1))
    doze(world, "1h")
    world.pause("daily", "hold", stop_timeouts=True)
    doze(world, "3h")
    world.pause("daily", "hold")
    doze(world, "59m")
    assert world.records("daily") == []
    world.pass_by("1m")
    assert kinds(world, "daily") == ["ABORTED"]


def test_l4_run_now_and_retries_go_on_in_a_hold(world: World) -> None:
    """They were decided on separately; a hold stops only what the trigger starts."""
    retried = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 2}}
    world.deploy(flights({"daily": partitions(workflow="fragile")}, fragile=retried))
    world.upload(day(1))
    world.settle()
    world.pause("daily")
    world.finish("FAILED", "disk full")
    world.pass_by("1m")
    assert states(world, "daily") == ["RETRYING", "STARTING"]
    world.run_now("daily")
    world.settle()
    assert len(world.runs("daily")) == 3


def test_l4_enable_resumes_a_pause_and_disabled_one_cannot_pause(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.pause("daily")
    world.upload(day(1))
    world.settle()
    world.enable("daily")
    world.settle()
    assert len(world.runs("daily")) == 1

    world.disable("daily")
    with pytest.raises(SluiceError, match="got one that is disabled") as refused:
        world.pause("daily")
    assert refused.value.code == "conflict"
