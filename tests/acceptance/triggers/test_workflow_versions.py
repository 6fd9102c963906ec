"""A status counts for any version of a workflow, or for the one that a leaf names (T10)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.flow.definitions import store
from chalicelib.flow.lookup import existing
from chalicelib.web.bodies import DryRun
from tests.acceptance.words import day, on, status
from tests.support.answers import views
from tests.support.schedules import after, partitions
from tests.support.world import EMR, World, flights, full


def of_version(number: int, **more: Any) -> dict[str, Any]:
    return {**status("clean"), "version": number, **more}


@pytest.fixture
def world(world: World) -> World:
    world.deploy(flights({"a": partitions(), "any": after("clean", "join"), "second": on(of_version(2), "join")}))
    return world


def replace_workflow(world: World, **changed: Any) -> int:
    document = {"target": EMR, **changed}
    return store.put(world.ports, "workflow", full("clean"), document, "tester").version


def run_once(world: World, number: int) -> None:
    world.upload(day(number))
    world.settle()
    world.finish()
    world.settle()


def test_t10_a_leaf_with_a_version_counts_only_runs_of_it(world: World) -> None:
    for number in (1, 2, 3):
        run_once(world, number)
        world.pass_by("1s")
        if number < 3:
            assert replace_workflow(world, properties={"n": number}) == number + 1
    assert [run.workflow_version for run in world.runs("a")] == [1, 2, 3]
    [second] = world.runs("second")
    assert world.context(second)["events"][0]["run_id"] == world.runs("a")[1].run_id
    assert len(world.runs("any")) == 3


def test_t10_a_run_keeps_the_version_of_its_claim_to_the_end(world: World) -> None:
    world.upload(day(1))
    world.settle()
    replace_workflow(world, properties={"n": 1})
    world.finish()
    world.settle()
    assert (len(world.runs("any")), world.runs("second")) == (1, [])


def test_t10_the_run_and_the_reason_show_the_version(world: World) -> None:
    answer = views.schedule_view(*existing(world.ports, full("second")))["triggered_by"]
    assert answer == "demo.flights.clean (version 2) reaching COMPLETED"
    replace_workflow(world, properties={"n": 1})
    run_once(world, 1)
    assert views.run_view(world.runs("a")[0])["workflow_version"] == 2


def test_t10_a_quiet_of_one_version_ignores_other_versions(world: World) -> None:
    quiet = {"type": "quiet", "of": of_version(2), "after": "1m"}
    world.put("quiet", on(quiet, "join"))
    run_once(world, 1)
    world.pass_by("5m")
    assert world.runs("quiet") == []
    replace_workflow(world, properties={"n": 1})
    run_once(world, 2)
    world.pass_by("5m")
    assert len(world.runs("quiet")) == 1


def test_t10_a_dry_run_plays_a_status_of_a_version(world: World) -> None:
    events = [{"type": "program_status", "workflow": "clean"}]
    events += [{"type": "program_status", "workflow": "clean", "version": number} for number in (1, 2)]
    _, schedule = existing(world.ports, full("second"))
    given = DryRun.model_validate({"events": events}).events
    steps, _ = dry_run(full("second"), schedule, given, world.clock.now())
    assert [step.fires for step in steps] == [0, 0, 1]


@pytest.mark.parametrize("version", [0, -1, "latest"])
def test_t10_an_invalid_version_is_refused(version: Any) -> None:
    with pytest.raises((ValueError, SluiceError)):
        NewSchedule.model_validate({"workflow": "w", "trigger": of_version(version)})
