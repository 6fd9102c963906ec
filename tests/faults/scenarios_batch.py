"""Jobs of AWS Batch, for `test_crash_points.py`: an attempt submits one job, in spite of kills. SubmitJob has no token,
so a call whose answer was lost is followed by a search (W22)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.runs import follow
from chalicelib.flow.system import sweep
from tests.faults.dying import Scenario, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.batch_jobs import TARGET, BatchJob
from tests.support.crash import lost
from tests.support.reasons import says
from tests.support.world import World

LOAD: dict[str, Any] = {"load": {"target": TARGET, "retries": {"attempts": 2, "delay": "30s"}}}
SCHEDULE: dict[str, Any] = {**CLEAN, "workflow": "load"}


def _end(world: World) -> None:
    """Jobs run and end, and Batch sends each event once. Then hints arrive."""
    for made in [each for each in world.targets.batch_jobs.jobs.values() if each.ended is None]:
        lost(lambda made=made: world.batch_says(made, "RUNNING"))
        lost(lambda made=made: world.batch_says(made, first_fails(made), "Essential container in task exited"))
    world.settle(lost)


def first_fails(job: BatchJob) -> str:
    return "FAILED" if job.variable("SLUICE_RUN").endswith("-1") else "SUCCEEDED"


def _fail_and_repeat(world: World) -> None:
    for number in (1, 2):
        upload(world, number)
    _end(world)
    passes(world, "40s")
    _end(world)


def _unheard(world: World) -> None:
    """The answer is lost. For half a minute the job is not listed."""
    world.targets.batch_jobs.lose_answers = 1
    upload(world, 1)
    hidden = list(world.targets.batch_jobs.jobs.values())
    for job in hidden:
        job.shown = False
    passes(world, "30s")
    for job in hidden:
        job.shown = True
    passes(world, "40s", "1m")


def _disable_with_an_unheard_submit(world: World) -> None:
    world.targets.batch_jobs.lose_answers = 1
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


def one_for_each_attempt(world: World) -> bool:
    started = {run.target_id for run in world.runs("clean") if run.target_id is not None}
    return started == set(world.targets.batch_jobs.jobs)


BATCH_JOBS = {
    "a job of Batch that fails and is attempted again": Scenario(
        {"clean": SCHEDULE},
        _fail_and_repeat,
        [({"clean": ["RETRYING"] * 2 + ["SUCCEEDED"] * 2}, 0), ({"clean": ["RETRYING", "SUCCEEDED"] * 2}, 0)],
        batch_job=first_fails,
        workflows=LOAD,
        holds=lambda world: one_for_each_attempt(world) and len(world.targets.batch_jobs.jobs) == 4,
    ),
    "a job of Batch whose answer is lost and that is listed late": Scenario(
        {"clean": SCHEDULE},
        _unheard,
        [({"clean": ["SUCCEEDED"]}, 0)],
        workflows=LOAD,
        holds=lambda world: one_for_each_attempt(world) and len(world.targets.batch_jobs.jobs) == 1,
    ),
    "a disable while the submit of a job is not confirmed": Scenario(
        {"clean": SCHEDULE},
        _disable_with_an_unheard_submit,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=LOAD,
        holds=one_for_each_attempt,
    ),
    "a cancel of a job of Batch": Scenario(
        {"clean": SCHEDULE},
        _cancel,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=LOAD,
        holds=one_for_each_attempt,
    ),
}
