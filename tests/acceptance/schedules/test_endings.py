"""How a schedule ends: bounds, repeats, ttl, and what happens to its rows (L10)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from tests.acceptance.words import (
    all_of,
    any_of,
    day,
    dues,
    elapsed,
    is_gone,
    on,
    partition,
    time,
    to_queue,
    why_schedule,
)
from tests.support.world import World, flights


def test_l10_what_is_met_at_the_ttl_end_runs_before_the_removal(
    world: World,
) -> None:
    slow = on(partition(), "clean", {"type": "delay", "after": "15m"}, ttl="10m")
    world.deploy(flights({"slow": slow}))
    world.upload(day(1))
    world.pass_by("11m")
    assert (world.runs("slow"), why_schedule(world, "slow")["state"]) == ([], "completed")
    world.pass_by("5m")
    assert len(world.runs("slow")) == 1
    world.pass_by("10m")
    assert not is_gone(world, "slow"), "its run is going, and may leave a retry"
    world.finish()
    world.pass_by("20m")
    assert is_gone(world, "slow")


@pytest.mark.parametrize("closed", ["disable", "hold", "drain"])
def test_l10_a_ttl_also_ends_a_disabled_schedule(world: World, closed: str) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10m"), ttl="15m")}))
    world.disable("tick") if closed == "disable" else world.pause("tick", closed)
    world.pass_by("20m")
    assert is_gone(world)
    assert world.runs("tick") == []


def test_l10_a_new_schedule_that_is_disabled_ends_with_its_ttl(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10m"), ttl="15m", enabled=False)}))
    world.pass_by("17m")
    assert is_gone(world)


def test_l10_a_trigger_of_several_leaves_ends_with_its_ttl(world: World) -> None:
    both = all_of(time("@every 1m"), partition())
    world.deploy(flights({"both": on(both, ttl="150s")}))
    world.pass_by("4m")
    assert is_gone(world, "both")
    assert world.runs("both") == []


def test_l10_a_span_moved_beyond_the_ttl_does_not_keep_schedule(world: World) -> None:
    """Ten minutes after the last start: new data postponed it to an instant after the end."""
    either = any_of(elapsed("10m"), partition())
    world.deploy(flights({"either": on(either, ttl="15m")}))
    world.pass_by("8m")
    world.upload(day(1))
    world.settle()
    world.finish()
    world.pass_by("8m")
    assert is_gone(world, "either")
    assert len(world.runs("either")) == 1


def test_l10_a_schedule_is_removed_after_its_last_job_and_retry(world: World) -> None:
    document = flights({"once": on({"type": "time", "due_time": "10s"}, "twice", when_done="delete")})
    document["workflows"]["twice"] = {"target": document["workflows"]["clean"]["target"], "retries": {"attempts": 2}}
    world.deploy(document)
    world.pass_by("5m")
    world.finish("FAILED")
    world.pass_by("5m")
    assert not is_gone(world, "once")
    assert world.runs("once")[0].state == "RETRYING"
    world.finish()
    world.pass_by("30m")
    assert is_gone(world, "once")
    assert [run.state for run in world.runs("once")] == ["RETRYING", "SUCCEEDED"]


def test_l10_a_completed_schedule_restarts_when_enabled(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s", repeats=2))}))
    world.pass_by("1h")
    assert why_schedule(world, "tick")["state"] == "completed"
    world.enable("tick")
    world.pass_by("1m")
    assert len(world.runs("tick")) == 4


def test_l10_start_and_end_bound_nominal_instants_inclusively(world: World) -> None:
    bounds = {"start": "2026-03-02T12:02:00Z", "end": "2026-03-02T12:04:00Z"}
    world.deploy(
        flights({"tick": to_queue(time("* * * * *", **bounds)), "span": to_queue(time("@every 50s", **bounds))})
    )
    world.pass_by("8m")
    assert dues(world) == [120, 180, 240]
    assert dues(world, "span") == [120, 170, 220]
    assert why_schedule(world, "tick")["state"] == "completed"


def test_l10_a_schedule_that_can_never_fire_is_refused(world: World) -> None:
    with pytest.raises(SluiceError, match="expected an instant from now on") as refused:
        world.deploy(flights({"tick": to_queue(time("@hourly", end="2026-03-01T00:00:00Z"))}))
    assert refused.value.field == "schedules.tick.trigger.end"
