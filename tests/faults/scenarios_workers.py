"""Scenarios of pull workers, for `test_crash_points.py`: each of their requests may be killed, and most are repeated
(W5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.flow.runs import follow
from tests.faults.dying import Scenario, passes, people, tick
from tests.support.crash import done_before, lost, redelivered
from tests.support.pull_workers import POOL, PULLED, PullWorker
from tests.support.reasons import says
from tests.support.world import World

NOW: dict[str, Any] = {"workflow": "pulled", "enabled": True, "trigger": {"type": "time", "expression": "1 12 2 3 *"}}
AFTER: dict[str, Any] = {
    "workflow": "notify",
    "enabled": True,
    "trigger": {"type": "program_status", "workflow": "pulled", "statuses": ["COMPLETED", "FAILED", "KILLED"]},
}


def _fires(world: World) -> None:
    tick(world)
    passes(world, "20s", "50s")


def _asks(act: Callable[[], Any]) -> None:
    """A worker's request, repeated until it gets an answer. "The lease is lost" is an answer, too."""

    def ask() -> None:
        with done_before():
            act()

    redelivered(ask)


def _work_off(world: World, name: str = "bob") -> None:
    """A worker does all work of the pool. Runs of a claim whose answer was lost wait for the end of their lease."""
    worker = PullWorker(world, name)
    lost(lambda: worker.claim(10))
    for place in range(len(worker.leases)):
        _asks(lambda place=place: worker.beat(place))
        world.settle(lost)
        _asks(lambda place=place: worker.succeed(place, output="all is well"))
        world.settle(lost)


def _worked_off(world: World) -> None:
    _fires(world)
    _work_off(world)


def _dies(world: World) -> None:
    _fires(world)
    ann = PullWorker(world, "ann")
    lost(lambda: ann.claim())
    if ann.leases:
        _asks(ann.beat)
    passes(world, "1m", "1m", "1m")
    if ann.leases:
        _asks(ann.succeed)  # too late
    _work_off(world)


def _given_back(world: World) -> None:
    _fires(world)
    ann = PullWorker(world, "ann")
    lost(lambda: ann.claim())
    if ann.leases:
        _asks(ann.release)
    _work_off(world)


def _cancelled(world: World) -> None:
    _fires(world)
    ann = PullWorker(world, "ann")
    lost(lambda: ann.claim())
    if ann.leases:
        _asks(ann.beat)
    for run in world.runs("night"):
        people(
            world, lambda run=run: follow.request_cancel(world.ports, run.run_id, run.attempt, says("somebody said so"))
        )
    if ann.leases:
        _asks(lambda: ann.fail(exit_code=-15))


def _closed(world: World) -> None:
    _fires(world)
    people(world, lambda: world.disable("night"))
    _work_off(world)


def _nobody_comes(world: World) -> None:
    _fires(world)
    passes(world, "4m", "2m")


def _empty(world: World) -> bool:
    return world.ports.jobs.offers(POOL, 10) == ()


DONE, AGAIN = {"night": ["SUCCEEDED"]}, {"night": ["RETRYING", "SUCCEEDED"]}
# The run that was lost with the answer to its claim may have been the second attempt.
TWICE = {"night": ["RETRYING", "FAILED"]}
WORKERS = {
    "a run of a pool that a worker takes, keeps and ends": Scenario(
        {"night": NOW, "after": AFTER}, _worked_off, [(DONE, 0), (AGAIN, 0)], messages=1, later=_work_off, holds=_empty
    ),
    "a worker that dies, and another that does its work": Scenario(
        {"night": NOW, "after": AFTER},
        _dies,
        [(AGAIN, 0), (DONE, 0), (TWICE, 0)],
        messages=1,
        later=_work_off,
        holds=_empty,
    ),
    "a pool without workers, until the time of the start is over": Scenario(
        {"night": {**NOW, "workflow": "brief"}},
        _nobody_comes,
        [({"night": ["FAILED"]}, 0)],
        holds=_empty,
        workflows={"brief": {"target": PULLED, "start_timeout": "5m"}},
    ),
    "a run that is given back unstarted": Scenario(
        {"night": NOW}, _given_back, [(DONE, 0), (AGAIN, 0)], later=_work_off, holds=_empty
    ),
    "a cancel while a worker holds the run": Scenario(
        {"night": NOW},
        _cancelled,
        [({"night": [state]}, 0) for state in ("CANCELLED", "SUCCEEDED")],
        later=_work_off,
        holds=_empty,
    ),
    "a disable while a run lies in its pool": Scenario(
        {"night": NOW},
        _closed,
        [({"night": ["ABORTED"]}, 0), ({"night": []}, 0)],
        later=_work_off,
        holds=_empty,
    ),
}
