"""The limit of an EMR application is a setting of the stack. Tests of jobs when a deployment changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.limits.names import EMR_STARTS
from chalicelib.settings import Settings
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.schedules import partitions
from tests.support.world import World, day, flights

OWN, NEW = "00app", "00new"
AT_OWN, AT_NEW = f"application:{OWN}", f"application:{NEW}"


def world_of(limit: int, **tuned: Any) -> World:
    world = World(**{**SMALL, "start_burst": 1_000, "emr_run_limits": ((OWN, limit),), **tuned})
    world.deploy(flights({"a": partitions(by=["day"])}))
    return world


def come(world: World, *days: int) -> None:
    for number in days:
        world.upload(day(number))
    world.settle()


def redeploy(world: World, **changed: Any) -> None:
    world.ports = world.with_ports(settings=replace(world.ports.settings, **changed))


def finish_all(world: World) -> None:
    for _ in range(5):
        world.finish()
        world.settle()
        world.pass_by("2m")
    assert [run.state for run in world.runs("a")] == ["SUCCEEDED"] * len(world.runs("a"))
    assert (world.limit_state(AT_OWN).active, world.limit_state(AT_NEW).active, world.jobs("a")) == (0, 0, [])
    invariants.check_rest(world)


def test_a_larger_limit_starts_waiting_jobs_within_two_minutes() -> None:
    world = world_of(1)
    come(world, 1, 2, 3)
    redeploy(world, emr_run_limits=((OWN, 3),))
    world.pass_by("2m")
    assert len(world.targets.emr.runs) == 3
    finish_all(world)


def test_a_smaller_limit_starts_nothing_until_enough_runs_ended() -> None:
    world = world_of(3)
    come(world, 1, 2, 3)
    redeploy(world, emr_run_limits=((OWN, 1),))
    come(world, 4)
    for _ in range(2):
        first = next(run.id for run in world.targets.emr.runs.values() if run.state == "SUBMITTED")
        world.emr_says(first, "RUNNING")
        world.emr_says(first, "SUCCESS")
        world.settle()
    assert len(world.targets.emr.runs) == 3
    finish_all(world)


def test_jobs_wait_for_an_application_only_while_it_has_a_limit() -> None:
    world = world_of(1)
    come(world, 1, 2, 3)
    redeploy(world, emr_run_limits=())
    world.pass_by("2m")
    assert len(world.targets.emr.runs) == 3
    finish_all(world)


def test_jobs_waiting_for_the_old_stack_application_use_new_one() -> None:
    world = world_of(1)
    come(world, 1, 2, 3)
    redeploy(world, emr_application_id=NEW, emr_run_limits=((NEW, 1),))
    world.pass_by("2m")
    assert [run.request.target["application_id"] for run in world.runs("a")] == [OWN, NEW]
    assert (world.limit_state(AT_OWN).active, world.limit_state(AT_OWN).waiters, world.limit_state(AT_NEW).waiters) == (
        1,
        0,
        1,
    )
    finish_all(world)


def test_a_job_holding_old_application_slot_keeps_it_to_run_end() -> None:
    """As with pools: it counts at both, and both slots are released."""
    world = world_of(9, start_burst=1, start_rate_per_second=0.02)
    come(world, 1, 2)
    [waiting] = world.jobs("a")
    assert (waiting.queued_in, AT_OWN in waiting.held) == (EMR_STARTS, True)
    redeploy(world, emr_application_id=NEW, emr_run_limits=((NEW, 9),))
    world.pass_by("3m")
    assert (world.limit_state(AT_OWN).active, world.limit_state(AT_NEW).active) == (2, 1)
    finish_all(world)


def test_runs_from_before_a_limit_do_not_count_and_end_normally() -> None:
    """The limit counts claims after the deployment. Until then EMR's own limit delays the rest."""
    world = world_of(1)
    redeploy(world, emr_run_limits=())
    come(world, 1, 2)
    redeploy(world, emr_run_limits=((OWN, 1),))
    come(world, 3, 4)
    assert (len(world.targets.emr.runs), world.limit_state(AT_OWN).active) == (3, 1)
    finish_all(world)


def test_an_inherited_priority_moves_an_application_waiter_ahead() -> None:
    world = world_of(1)
    weather = partitions(1, "join", "weather", by=["day"])
    world.put("b", weather)
    come(world, 1, 2)
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    waits_for_join = {"type": "program_status", "workflow": "join", "statuses": ["COMPLETED"], "count": 9}
    world.put("urgent", {"workflow": "notify", "enabled": True, "trigger": waits_for_join, "priority": 9})
    assert [waiter.job_schedule for waiter in world.ports.jobs.head_of(AT_OWN, 9)] == [
        "demo.flights.b",
        "demo.flights.a",
    ]
    world.disable("urgent")
    finish_all(world)


def test_settings_are_read_as_the_template_writes_them() -> None:
    names = ("catalog_table", "jobs_table", "runs_table", "hints_queue_url", "lake_bucket", "control_bucket")
    environment = {f"SLUICE_{name.upper()}": "x" for name in names} | {"SLUICE_EMR_APPLICATION_ID": OWN}
    lists = {"SLUICE_EMR_APPLICATION_IDS": f"{NEW},00third", "SLUICE_EMR_RUN_LIMITS": f"{OWN}=2,{NEW}=30"}
    made = Settings.from_environment(environment | lists)
    assert made.all_emr_applications == (OWN, NEW, "00third")
    assert made.emr_run_limits == ((OWN, 2), (NEW, 30))
    empty = dict.fromkeys(("SLUICE_EMR_APPLICATION_IDS", "SLUICE_EMR_ROLE_ARNS"), "") | {"SLUICE_EMR_RUN_LIMITS": ","}
    nothing = Settings.from_environment(environment | empty)
    assert (nothing.all_emr_applications, nothing.all_emr_roles, nothing.emr_run_limits) == ((OWN,), (), ())


@pytest.mark.parametrize("text", ["00app", "00app=", "00app=0", "=3", "00app=many", "00app=-1"])
def test_an_invalid_limit_is_refused_when_the_lambda_starts(text: str) -> None:
    names = ("catalog_table", "jobs_table", "runs_table", "hints_queue_url", "lake_bucket", "control_bucket")
    environment = {f"SLUICE_{name.upper()}": "x" for name in names}
    with pytest.raises(RuntimeError, match="expected <application>=<runs> in SLUICE_EMR_RUN_LIMITS"):
        Settings.from_environment(environment | {"SLUICE_EMR_RUN_LIMITS": text})
