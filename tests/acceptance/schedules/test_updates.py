"""The effect of an update on gathered events (L6): dropped on record, or carried if the trigger did not change."""

from __future__ import annotations

from chalicelib.core.instants import MINUTE
from tests.acceptance.words import concurrency, day, days, delay, doze, kinds, on, partition, reasons, why
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import World, flights

CARRY = {"on_update": "carry"}


def test_l6_update_drops_progress_on_record_and_no_old_job_runs(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert world.jobs("daily")[0].state == "PENDING_LAUNCH"

    world.clock.pass_by("1s")
    world.put("daily", on(partition(), "clean", concurrency(2), properties={"version": 2}, on_update="drop"))
    world.finish()
    world.pass_by("2m")
    assert len(world.runs("daily")) == 1
    assert reasons(world, "daily") == ["DROPPED: the schedule was replaced or enabled again"]
    limit = world.limit_state("workflow:demo.flights.clean")
    assert (limit.active, limit.waiters) == (0, 0)


def test_l6_a_change_of_description_interrupts_nothing(world: World) -> None:
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.settle()
    world.clock.pass_by("1s")
    world.put("daily", partitions(2, description="what it is for", owner="ann"))
    world.upload(day(2))
    world.settle()

    [run] = world.runs("daily")
    assert days(world, run) == ["1", "2"]


def test_l6_carry_keeps_gathered_events_with_the_new_properties(world: World) -> None:
    world.deploy(flights({"daily": partitions(3, properties={"version": 1})}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [before] = world.jobs("daily")

    world.clock.pass_by("1s")
    world.put("daily", partitions(3, properties={"version": 2}, **CARRY))
    [carried] = world.jobs("daily")
    assert carried.job_id == before.job_id
    world.upload(day(1))
    world.upload(day(3))
    world.settle()

    [run] = world.runs("daily")
    assert run.run_id == before.job_id
    assert days(world, run) == ["1", "2", "3"]
    assert world.context(run)["properties"] == {"version": 2}
    assert world.records("daily") == []


def test_l6_carry_checks_waiting_jobs_at_once_by_new_constraints(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", delay("2h"))}))
    world.upload(day(1))
    world.settle()
    assert why(world, "daily")["constraints"][0]["until"] == "2026-03-02T14:00:00.000Z"

    world.clock.pass_by("10m")
    world.put("daily", on(partition(), "clean", delay("5m"), **CARRY))
    world.settle()
    [run] = world.runs("daily")
    assert run.claimed_at == NOON + 10 * MINUTE


def test_l6_carry_launches_jobs_queued_at_a_raised_limit(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert len(world.runs("daily")) == 1

    world.clock.pass_by("1s")
    world.put("daily", on(partition(), "clean", concurrency(2), **CARRY))
    world.pass_by("3m")
    assert len(world.runs("daily")) == 2


def test_l6_carry_to_another_workflow_leaves_the_old_queue(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()

    world.clock.pass_by("1s")
    world.put("daily", on(partition(), "join", concurrency(1), **CARRY))
    world.settle()
    assert [run.workflow for run in world.runs("daily")] == ["demo.flights.clean", "demo.flights.join"]
    world.finish()
    for workflow in ("clean", "join"):
        limit = world.limit_state(f"workflow:demo.flights.{workflow}")
        assert (limit.active, limit.waiters) == (0, 0)


def test_l6_carry_of_a_timer_keeps_its_anchor_instants(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10m", "notify")}))
    doze(world, "7m")
    world.put("tick", at("@every 10m", "notify", properties={"version": 2}, **CARRY))
    doze(world, "4m")

    [run] = world.runs("tick")
    assert (run.nominal_at, run.request.properties) == (NOON + 10 * MINUTE, {"version": 2})


def test_l6_carry_of_another_trigger_drops_gathered_events(world: World) -> None:
    world.deploy(flights({"daily": partitions(3)}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()

    world.clock.pass_by("1s")
    world.put("daily", partitions(2, **CARRY))
    assert kinds(world, "daily") == ["DROPPED"]
    world.upload(day(3))
    world.settle()
    assert world.runs("daily") == []
    world.upload(day(4))
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["3", "4"]]


def test_l6_carry_in_a_hold_keeps_the_hold_and_its_jobs(world: World) -> None:
    world.deploy(flights({"daily": partitions(1)}))
    world.pause("daily")
    world.upload(day(1))
    world.settle()
    [held] = world.jobs("daily")

    world.clock.pass_by("1s")
    without = {key: value for key, value in partitions(1).items() if key != "enabled"}
    world.put("daily", without | {"properties": {"version": 2}} | CARRY)
    world.pass_by("1m")
    assert world.runs("daily") == []

    world.resume("daily")
    world.settle()
    [run] = world.runs("daily")
    assert (run.run_id, run.request.properties) == (held.job_id, {"version": 2})
