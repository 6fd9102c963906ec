"""`now` with a filter: the queues, runs and paused schedules of what it keeps, and counts of these."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.why import everyone
from chalicelib.flow.schedules import actions
from chalicelib.flow.views import present
from chalicelib.flow.views.chosen import Chooser, Chosen
from chalicelib.flow.views.present import now_of
from tests.support.world import EMR, World

AT_THREE = {"type": "time", "expression": "0 3 * * *"}
QUEUE: dict[str, Any] = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]}


@pytest.fixture(scope="module")
def world() -> World:
    """Of five schedules one runs, and four wait in the queue of a workflow; a sixth one of another app is paused."""
    world = World()
    schedule = {"workflow": "clean", "trigger": AT_THREE, "enabled": True, **QUEUE}
    named = {name: {**schedule, "tags": {"team": name[0]}} for name in ("x1", "x2", "y1", "y2", "y3")}
    world.deploy({"workflows": {"clean": {"target": EMR}}, "schedules": named})
    paused = {"workflow": "w", "trigger": AT_THREE, "enabled": True, "pause_after_failures": 1}
    world.deploy({"workflows": {"w": {"target": EMR}}, "schedules": {"held": paused}}, app="other")
    actions.run_now(world.ports, "demo.other.held", {}, "r1", None)
    world.settle()
    world.finish("FAILED")
    world.settle()
    for name in named:
        world.run_now(name)
        world.settle()
    return world


def chosen(world: World, **wanted: Any) -> dict[str, Any]:
    view = now_of(world.ports, "demo", only=Chooser(world.ports, Chosen(**wanted), everyone) if wanted else None)
    groups = view["waiting"]["groups"]
    return {
        "waiting": view["waiting"]["count"],
        "groups": [(group["of"], group["count"]) for group in groups],
        "jobs": sorted(job["schedule"].rpartition(".")[2] for group in groups for job in group["jobs"]),
        "running": [run["schedule"].rpartition(".")[2] for run in view["running"]["runs"]],
        "paused": [each["schedule"] for each in view["paused"]["schedules"]],
    }


OF = "workflow demo.flights.clean"
HELD = ["demo.other.held"]


@pytest.mark.parametrize(
    ("wanted", "jobs", "running", "paused"),
    [
        ({}, ["x2", "y1", "y2", "y3"], ["x1"], HELD),
        ({"app": "demo.flights"}, ["x2", "y1", "y2", "y3"], ["x1"], []),
        ({"app": "demo.other"}, [], [], HELD),
        ({"tag": ("team", "y")}, ["y1", "y2", "y3"], [], []),
        ({"tag": ("team", "x")}, ["x2"], ["x1"], []),
        ({"workflow": "demo.flights.clean"}, ["x2", "y1", "y2", "y3"], ["x1"], []),
        ({"workflow": "demo.other.w"}, [], [], HELD),
        ({"target": "emr_serverless"}, ["x2", "y1", "y2", "y3"], ["x1"], HELD),
        ({"target": "sqs"}, [], [], []),
        ({"text": "flights.y"}, ["y1", "y2", "y3"], [], []),
        ({"text": "held"}, [], [], HELD),
        ({"late": True}, [], [], []),
    ],
)
def test_the_present_has_what_a_filter_keeps(
    world: World, wanted: dict[str, Any], jobs: list[str], running: list[str], paused: list[str]
) -> None:
    groups = [(OF, len(jobs))] if jobs else []
    expected = {"waiting": len(jobs), "groups": groups, "jobs": jobs, "running": running, "paused": paused}
    assert chosen(world, **wanted) == expected


def test_a_part_of_a_queue_that_is_not_read_makes_a_lower_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "MAX_CHOSEN", 2)
    view = now_of(world.ports, "demo", only=Chooser(world.ports, Chosen(tag=("team", "y")), everyone))
    assert (view["waiting"]["count"], view["waiting"]["at_least"]) == (3, True)
