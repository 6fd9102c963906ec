"""A re-processing of one namespace with steps of another: each of them moves while a step waits or runs (L14, L21)."""

from __future__ import annotations

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.flow.backfills import reprocess
from tests.faults import invariants
from tests.operations.archive.test_export import SMALL, elsewhere
from tests.support.archives import exported, given_up
from tests.support.schedules import at_most
from tests.support.world import EMR, World, flights

RAIN = {"bucket": "lake-bucket", "prefix": "raw/rain/", "keys": ["month", "day"]}
BY_DAY = {"trigger": {"type": "partition", "dataset": "lake.rain"}, "by": ["month", "day"], "enabled": True}


def begun(step: int) -> World:
    """The step of `lake` runs, or that of `demo` after it: two days, one at a time."""
    world = World(**SMALL)
    world.deploy(
        {
            "datasets": {"rain": RAIN},
            "workflows": {"count": {"target": EMR}},
            "schedules": {"daily": {"workflow": "count", **BY_DAY, **at_most(1)}},
        },
        "lake",
        "core",
    )
    world.deploy(flights({"rainy": {"workflow": "join", **BY_DAY, **at_most(1)}}))
    for number in (1, 2):
        world.upload(f"raw/rain/month=03/day={number:02}/a.csv")
    end(world)
    asked = Reprocess.model_validate({"dataset": "rain", "from": {"month": "03"}})
    made = reprocess.begin(world.ports, "lake", asked, "tester", "r1")
    assert [each["schedule"] for each in made.steps] == ["demo.flights.rainy", "lake.core.daily"]
    world.settle()
    while reprocess.existing(world.ports, "lake", made.id).steps[step]["state"] == "waiting":
        world.pass_by("61s")
        world.finish()
        world.settle()
    return world


def end(*worlds: World) -> None:
    for _ in range(14):
        for world in worlds:
            world.pass_by("61s")
            world.settle()
        for world in worlds:
            world.finish()
            world.settle()


@pytest.mark.parametrize("moving", [["demo"], ["lake"], ["demo", "lake"]], ids="-".join)
@pytest.mark.parametrize("step", [0, 1])
def test_l14_a_shared_reprocessing_ends_wherever_its_steps_are(step: int, moving: list[str]) -> None:
    world = begun(step)
    archive = exported(world, *moving)
    given_up(world, archive)
    new = elsewhere(archive, world, copy=False)
    end(world, new)
    stocks = [invariants.Stock(each) for each in (world, new)]
    assert [row for stock in stocks for row in stock.backfills if row.ended_at is None] == []
    assert [row for stock in stocks for row in stock.reprocesses if row.ended_at is None] == []
    ran = {run.run_id for stock in stocks for run in stock.runs if run.schedule == "demo.flights.rainy"}
    again = {run.run_id for stock in stocks for run in stock.runs if run.backfill is not None}
    assert len(ran - again) == 2
    [state] = {row.state for stock in stocks for row in stock.reprocesses}
    apart = step == 0 and len(moving) == 1  # the step of `demo` runs in one installation, and its plan is in the other
    assert state == ("FAILED" if apart else "DONE")


@pytest.mark.parametrize("step", [0, 1])
def test_l14_a_step_goes_on_without_its_reprocessing(step: int) -> None:
    """The plan of a step that runs stays with the step, and is in the export of the re-processing, too."""
    world = begun(step)
    archive = exported(world, "lake")
    given_up(world, archive)
    before = len([run for run in world.runs("rainy") if run.backfill is not None])
    end(world)
    after = [run for run in world.runs("rainy") if run.backfill is not None]
    assert len(after) == 2 and {run.state for run in after} == {"SUCCEEDED"}
    assert before <= 2
