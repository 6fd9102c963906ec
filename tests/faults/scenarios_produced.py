"""Runs that register the partition that they produce, for `test_crash_points.py` (L22): it counts once."""

from __future__ import annotations

from chalicelib.core.rows.event import Partition
from chalicelib.flow.schedules import actions
from tests.faults.dying import RECOVERY, Scenario, finish, passes, people, upload
from tests.faults.scenarios_reprocess import _begin, _is
from tests.support.fakes import EmrRun
from tests.support.schedules import BY_DAY, partitions
from tests.support.world import EMR, World, full

REGISTERS = {"clean": {"target": EMR, "produces": [{"dataset": "weather", "register": "on_success"}]}}
CHAIN = {"clean": partitions(by=BY_DAY), "join": partitions(workflow="join", dataset="weather", by=BY_DAY)}

MAKES_AGAIN = {"clean": {"target": EMR, "produces": [{"dataset": "made", "register": "on_success"}]}}
FIRST = {"year": "2013", "month": "01", "day": "1"}


def _runs(world: World) -> None:
    upload(world, 1)
    for _ in range(2):
        finish(world)


def _meets_its_object(world: World) -> None:
    """An object of the run arrives before its end."""
    upload(world, 1)
    upload(world, 1, "weather", "part-0.csv")
    for _ in range(2):
        finish(world)


def _fails_first(run: EmrRun) -> str:
    return "SUCCESS" if "again" in run.request["properties"] or ".join." in run.name else "FAILED"


def _again(world: World) -> None:
    """The first run of the day fails, so that of the re-processing registers the partition."""
    upload(world, 1)
    for span in RECOVERY:
        finish(world, _fails_first)
        passes(world, span)
    _begin(world)
    for _ in range(2):
        finish(world, _fails_first)


def _made_again(world: World) -> None:
    """The day is run now after its first run, and once more."""
    _runs(world)
    for request in ("r1", "r2"):
        passes(world, "1m")
        people(world, lambda request=request: actions.run_now(world.ports, full("clean"), {}, request, None, FIRST))
        for _ in range(2):
            finish(world)


def _tells_each_run(world: World) -> bool:
    """Each run that made the day is one event."""
    return len([event for run in world.runs("join") for event in world.given(run)]) == 3


def _is_registered(world: World) -> bool:
    row = world.ports.rows.get(Partition, "demo.weather", ("2013", "1", "1"))
    assert [world.jobs(name) for name in CHAIN] == [[], []]
    return row is not None and row.wake_at is None


PRODUCED = {
    "a run whose partition starts the next one": Scenario(
        CHAIN,
        _runs,
        [({"clean": ["SUCCEEDED"], "join": ["SUCCEEDED"]}, 2)],
        workflows=REGISTERS,
        holds=_is_registered,
    ),
    "a run whose partition comes as an object, too": Scenario(
        CHAIN,
        _meets_its_object,
        [({"clean": ["SUCCEEDED"], "join": ["SUCCEEDED"]}, 2)],
        workflows=REGISTERS,
        holds=_is_registered,
    ),
    "a day that is made again counts once for each run": Scenario(
        {**CHAIN, "join": partitions(workflow="join", dataset="made", by=BY_DAY)},
        _made_again,
        # Where a Lambda died, a job waits and takes the next event, too.
        [({"clean": ["SUCCEEDED"] * 3, "join": ["SUCCEEDED"] * number}, 3 + number) for number in (3, 2, 1)],
        holds=_tells_each_run,
        workflows=MAKES_AGAIN,
        datasets={"made": {"bucket": "lake", "prefix": "made/", "keys": BY_DAY, "rewritten": "again"}},
    ),
    "a failed day that is processed again with its data": Scenario(
        CHAIN,
        _again,
        [({"clean": ["FAILED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3)],
        outcome=_fails_first,
        workflows=REGISTERS,
        holds=lambda world: _is(("DONE", "succeeded", "succeeded"))(world) and _is_registered(world),
    ),
}
