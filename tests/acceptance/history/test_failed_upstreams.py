"""Why a join waits: the run of its upstream for the same day has failed, which `why` says with the error."""

from __future__ import annotations

import pytest

from chalicelib.flow.schedules.actions import run_now
from tests.acceptance.words import all_of, day, on, partition, status
from tests.support.answers import explain, glance
from tests.support.schedules import BY_DAY
from tests.support.world import World, flights, full

CLEAN = full("clean")
OF_DAY = f"the last run of {CLEAN} for year=2013 month=01 day=1 FAILED at 2026-03-02T12:00:00.000Z: no such column"


def played(world: World, *ends: str) -> None:
    """A join of two datasets and a workflow. The runs of the workflow for the first days end so."""
    join = on(all_of(partition("weather"), status("clean")), "join", by=BY_DAY)
    world.deploy(flights({"clean": on(partition(), "clean", by=BY_DAY), "join": join}))
    for number, end in enumerate(ends, 1):
        world.upload(day(number))
        world.settle()
        if end:
            world.finish(end, "no such column" if end == "FAILED" else "")
            world.settle()


def why(world: World, number: int = 1) -> str:
    [job] = [job for job in world.jobs("join") if job.correlation and job.correlation["day"] == str(number)]
    return str(explain.why_job(world.ports, job)["why"])


def test_c14_why_of_a_join_names_the_failed_upstream_run(world: World) -> None:
    played(world, "FAILED", "SUCCESS")
    for number in (1, 2):
        world.upload(day(number, "weather", "x.csv"))
    world.settle()

    view = explain.why_job(world.ports, world.jobs("join")[0])

    failed = next(run for run in world.runs("clean") if run.state == "FAILED")
    assert view["why"].endswith(f"; {OF_DAY} (run {failed.run_id})")
    assert {"text": failed.run_id, "kind": "run", "name": failed.run_id} in view["refs"]
    assert OF_DAY in explain.why_schedule(world.ports, full("join"))["why"]
    assert len(world.runs("join")) == 1, "the other day has run"


def test_c14_why_of_a_schedule_without_a_job_names_it_too(world: World) -> None:
    played(world, "FAILED")

    assert f"the last run of {CLEAN} FAILED at" in explain.why_schedule(world.ports, full("join"))["why"]


@pytest.mark.parametrize("ends", [("",), ("FAILED", "SUCCESS")], ids=["runs", "another day failed"])
def test_c14_why_names_no_run_of_another_day_or_one_that_runs(world: World, ends: tuple[str, ...]) -> None:
    played(world, *ends)
    world.upload(day(3, "weather", "x.csv"))
    world.upload(day(1, "weather", "x.csv"))
    world.settle()

    assert "the last run" not in why(world, 3)
    assert ("the last run" in why(world)) == ("FAILED" in ends)


def test_c14_a_repeat_that_succeeds_ends_the_sentence(world: World) -> None:
    played(world, "FAILED")
    world.clock.pass_by("1s")
    run_now(world.ports, CLEAN, {}, "r1", partition={"year": "2013", "month": "01", "day": "1"})
    world.settle()
    world.finish()
    world.settle()

    assert "the last run" not in explain.why_schedule(world.ports, full("join"))["why"]


def test_c14_the_list_of_schedules_searches_no_runs(world: World) -> None:
    """It explains up to 50 schedules in one request."""
    played(world, "FAILED")

    assert "the last run" not in glance.glance(world.ports, [full("join")])["items"][0]["why"]
