"""Re-processings, for `test_crash_points.py` (L21): every step runs once, in order, and no job is left waiting."""

from __future__ import annotations

from typing import Any

from chalicelib.core.backfills.request import Reprocess as Wish
from chalicelib.flow.backfills import reprocess, reprocess_view
from tests.faults.dying import Scenario, finish, people, upload
from tests.support.fakes import EmrRun
from tests.support.schedules import BY_DAY, after, at_most, partitions
from tests.support.world import World

CHAIN = {"clean": partitions(by=BY_DAY, **at_most(1)), "join": after("clean", "join", by=BY_DAY)}
ASKED = {"dataset": "flights", "from": {"year": 2013}, "concurrency": 2, "properties": {"again": "yes"}}


def _first_time(world: World, days: int = 1) -> None:
    for number in range(1, days + 1):
        upload(world, number)
    for _ in range(days + 1):
        finish(world)


def _begin(world: World) -> None:
    people(world, lambda: reprocess.begin(world.ports, "demo", Wish.model_validate(ASKED), "tester", "r1"))


def _again(world: World) -> None:
    _first_time(world)
    _begin(world)
    for _ in range(2):
        finish(world)


def _fails(world: World) -> None:
    _first_time(world)
    _begin(world)
    finish(world, _second_fails)


def _second_fails(run: EmrRun) -> str:
    """The run of the re-processing fails; the original run succeeded."""
    return "FAILED" if "again" in run.request["properties"] else "SUCCESS"


def _cancelled(world: World) -> None:
    _first_time(world)
    _begin(world)
    people(world, lambda: reprocess.stop(world.ports, "demo", _id(world), True, "tester"))
    finish(world)


def _id(world: World) -> str:
    [row] = world.ports.jobs.reprocesses("demo")
    return row.id


def _is(*ends: tuple[str, ...]) -> Any:
    """The re-processing has one of these ends: its state, and those of its steps. Each entry ran once; no job waits."""

    def holds(world: World) -> bool:
        view = reprocess_view.reprocess_view(world.ports, reprocess.existing(world.ports, "demo", _id(world)))
        told = (view["state"], *(step["state"] for step in view["steps"]))
        assert told in ends, view
        assert [world.jobs(name) for name in CHAIN] == [[], []]
        ran = [run.backfill for name in CHAIN for run in world.runs(name) if run.backfill and run.state != "ABORTED"]
        assert len(set(ran)) == len(ran), ran
        return True

    return holds


REPROCESSED = {
    "a partition that is processed again, with its join": Scenario(
        CHAIN,
        _again,
        [({"clean": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        holds=_is(("DONE", "succeeded", "succeeded")),
    ),
    "a partition whose second time fails": Scenario(
        CHAIN,
        _fails,
        [({"clean": ["SUCCEEDED", "FAILED"], "join": ["SUCCEEDED"]}, 3)],
        outcome=_second_fails,
        holds=_is(("FAILED", "failed", "skipped")),
    ),
    "a re-processing that is cancelled with its runs": Scenario(
        CHAIN,
        _cancelled,
        # Killed in between: the run was not started yet, or had ended when its cancel was requested.
        [
            ({"clean": ["SUCCEEDED", "CANCELLED"], "join": ["SUCCEEDED"]}, 3),
            ({"clean": ["SUCCEEDED", "CANCELLED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3),
            ({"clean": ["SUCCEEDED", "ABORTED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["SUCCEEDED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED", "CANCELLED"]}, 4),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED", "SUCCEEDED"]}, 4),
        ],
        holds=_is(
            ("CANCELLED", "cancelled", "cancelled"),
            ("CANCELLED", "succeeded", "cancelled"),
            ("CANCELLED", "succeeded", "succeeded"),
            ("DONE", "succeeded", "succeeded"),
        ),
    ),
}
