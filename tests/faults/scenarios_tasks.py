"""Tasks of ECS, for `test_crash_points.py`: an attempt starts one task, in spite of kills (W22)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.system import sweep
from tests.faults.dying import Scenario, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.crash import lost
from tests.support.ecs_tasks import TARGET, Task
from tests.support.world import World

ETL: dict[str, Any] = {"etl": {"target": TARGET, "retries": {"attempts": 2, "delay": "30s"}}}
SCHEDULE: dict[str, Any] = {**CLEAN, "workflow": "etl"}


def _end(world: World) -> None:
    """Tasks run and end, and ECS sends each event once. Then hints arrive."""
    for task in [each for each in world.targets.tasks.tasks.values() if each.status != "STOPPED"]:
        lost(lambda task=task: world.task_says(task))
        lost(lambda task=task: world.task_says(task, _first_fails(task)))
    world.settle(lost)


def _first_fails(task: Task) -> int:
    return 1 if task.variables["SLUICE_RUN"].endswith("-1") else 0


def _fail_and_repeat(world: World) -> None:
    upload(world, 1)
    _end(world)
    passes(world, "40s")
    _end(world)


def _disable_with_an_unheard_start(world: World) -> None:
    world.targets.tasks.lose_answers = 1
    upload(world, 1)
    people(world, lambda: world.disable("clean"))
    world.clock.pass_by("3m")  # longer than the lease of the call
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _one_for_each_attempt(world: World) -> bool:
    started = {run.target_id for run in world.runs("clean") if run.target_id is not None}
    return started == set(world.targets.tasks.tasks)


TASKS = {
    "a task that fails and is attempted again": Scenario(
        {"clean": SCHEDULE},
        _fail_and_repeat,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 0)],
        exit_code=_first_fails,
        workflows=ETL,
        holds=lambda world: _one_for_each_attempt(world) and len(world.targets.tasks.tasks) == 2,
    ),
    "a disable while the start of a task is not confirmed": Scenario(
        {"clean": SCHEDULE},
        _disable_with_an_unheard_start,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=ETL,
        holds=_one_for_each_attempt,
    ),
}
