"""Job runs of AWS Glue, for `test_crash_points.py`: an attempt starts one job run although Glue has no token, in spite
of kills, lost answers, and searches that do not show it yet (W22).
"""

from __future__ import annotations

from typing import Any

from chalicelib.flow.runs import follow
from chalicelib.flow.system import sweep
from tests.faults.dying import Scenario, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.crash import lost
from tests.support.glue import GOING, TARGET, JobRun
from tests.support.reasons import says
from tests.support.world import World

ETL: dict[str, Any] = {"etl": {"target": TARGET, "retries": {"attempts": 2, "delay": "30s"}}}
SCHEDULE: dict[str, Any] = {**CLEAN, "workflow": "etl"}


def _end(world: World) -> None:
    """Job runs end, and Glue sends each event once. Then hints arrive."""
    for made in [each for each in world.targets.jobs.runs.values() if each.state in GOING]:
        lost(lambda made=made: world.job_run_says(made, _first_fails(made), "no disk"))
    world.settle(lost)


def _first_fails(made: JobRun) -> str:
    return "FAILED" if made.arguments["--sluice-run"].endswith("-1") else "SUCCEEDED"


def _fail_and_repeat(world: World) -> None:
    upload(world, 1)
    _end(world)
    passes(world, "40s")
    _end(world)


def _lose_an_answer(world: World) -> None:
    """A search within 40 s does not show the job run yet."""
    world.targets.jobs.lose_answers, world.targets.jobs.hide_starts = 1, 40_000
    upload(world, 1)
    passes(world, "1m", "1m", "3m")
    _end(world)


def _disable_with_an_unheard_start(world: World) -> None:
    world.targets.jobs.lose_answers = 1
    upload(world, 1)
    people(world, lambda: world.disable("clean"))
    world.clock.pass_by("3m")  # longer than the lease of the call
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _cancel(world: World) -> None:
    upload(world, 1)
    for run in world.runs("clean"):
        people(
            world, lambda run=run: follow.request_cancel(world.ports, run.run_id, run.attempt, says("cancelled by ada"))
        )


def _one_for_each_attempt(world: World) -> bool:
    """Each job run belongs to another attempt, and each attempt with an id knows its own."""
    made = world.targets.jobs.runs.values()
    started = {run.target_id for run in world.runs("clean") if run.target_id is not None}
    return len({each.arguments["--sluice-run"] for each in made}) == len(made) and started == {
        each.target_id for each in made
    }


GLUE = {
    "a job run that fails and is attempted again": Scenario(
        {"clean": SCHEDULE},
        _fail_and_repeat,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 0)],
        job_run=_first_fails,
        workflows=ETL,
        holds=lambda world: _one_for_each_attempt(world) and len(world.targets.jobs.runs) == 2,
    ),
    "a job run whose start is not confirmed": Scenario(
        {"clean": SCHEDULE},
        _lose_an_answer,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 0)],
        job_run=_first_fails,
        workflows=ETL,
        holds=lambda world: _one_for_each_attempt(world) and len(world.targets.jobs.runs) == 2,
    ),
    "a disable while the start of a job run is not confirmed": Scenario(
        {"clean": SCHEDULE},
        _disable_with_an_unheard_start,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=ETL,
        holds=_one_for_each_attempt,
    ),
    "a cancel of a job run": Scenario(
        {"clean": SCHEDULE},
        _cancel,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=ETL,
        holds=_one_for_each_attempt,
    ),
}
