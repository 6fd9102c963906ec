"""Queries of Athena, for `test_crash_points.py`: an attempt starts one query, in spite of kills (W22)."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.runs import follow
from chalicelib.flow.system import sweep
from tests.faults.dying import Scenario, passes, people, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.crash import lost
from tests.support.queries import TARGET, Query
from tests.support.reasons import says
from tests.support.world import World

SQL: dict[str, Any] = {"sql": {"target": TARGET, "retries": {"attempts": 2, "delay": "30s"}}}
SCHEDULE: dict[str, Any] = {**CLEAN, "workflow": "sql", "by": ["day"]}


def _first_fails(query: Query) -> str:
    return "FAILED" if query.text.endswith("-1") else "SUCCEEDED"


def _end(world: World) -> None:
    """Queries run and end, and Athena sends each event once. Then hints arrive."""
    for made in [each for each in world.targets.queries.queries.values() if each.state == "QUEUED"]:
        lost(lambda made=made: world.query_says(made, "RUNNING"))
        lost(lambda made=made: world.query_says(made, _first_fails(made), "no capacity"))
    world.settle(lost)


def _fail_and_repeat(world: World) -> None:
    upload(world, 1)
    _end(world)
    passes(world, "40s")
    _end(world)


def _disable_with_an_unheard_start(world: World) -> None:
    world.targets.queries.lose_answers = 1
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
    started = {run.target_id for run in world.runs("clean") if run.target_id is not None}
    return started == set(world.targets.queries.queries)


QUERIES = {
    "a query that fails and is attempted again": Scenario(
        {"clean": SCHEDULE},
        _fail_and_repeat,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 0)],
        query=_first_fails,
        workflows=SQL,
        holds=lambda world: _one_for_each_attempt(world) and len(world.targets.queries.queries) == 2,
    ),
    "a disable while the start of a query is not confirmed": Scenario(
        {"clean": SCHEDULE},
        _disable_with_an_unheard_start,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=SQL,
        holds=_one_for_each_attempt,
    ),
    "a cancel of a query": Scenario(
        {"clean": SCHEDULE},
        _cancel,
        [({"clean": ["CANCELLED"]}, 0), ({"clean": ["SUCCEEDED"]}, 0)],
        workflows=SQL,
        holds=_one_for_each_attempt,
    ),
}
