"""The demo: how many runs of Spark come before its first result, and what it says meanwhile."""

from __future__ import annotations

import io
import re
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from examples.flights import data, watch
from examples.flights.demo import AFTER_IT, ALL, REPORT, SHORT, Scene, unmet
from sluice import documents
from tests.support.world import World

APP = Path(__file__).parents[2] / "examples" / "flights" / "app.yaml"
VALUES = {"namespace": "demo", "prefix": "demo/", "lake": "lake", "code": "s3://control/code/"}


def arrive(world: World, day: date, kind: str) -> None:
    world.upload(f"{data.partition_key(f'demo/raw/{kind}/', day)}_SUCCESS")
    world.settle()


def upload(world: World, scene: Scene) -> None:
    for day in scene.complete:
        arrive(world, day, "flights")
        arrive(world, day, "weather")
    arrive(world, AFTER_IT, scene.in_part)


def finished(world: World) -> list[dict[str, Any]]:
    """Let all runs end. Returns all runs, as the API shows them to the demo."""
    while world.finish():
        world.settle()
    runs = [run for name in ("clean", "join", "report") for run in world.runs(name)]
    return [
        {"schedule": run.schedule, "state": run.state, "claimed_at": run.claimed_at, "ended_at": run.ended_at}
        for run in runs
    ]


def test_h4_the_first_result_of_the_demo_takes_three_starts(world: World) -> None:
    world.deploy(documents.load(str(APP), VALUES))
    upload(world, SHORT)
    assert unmet([], SHORT) == "1 day to be cleaned"
    runs = finished(world)
    assert (len(runs), unmet(runs, SHORT)) == (2, REPORT)

    world.pass_by("5m")
    world.run_now("report")
    world.settle()
    assert unmet(finished(world), SHORT) is None
    assert len(world.targets.emr.runs) == 3, "no clock fires while somebody looks at the result"


def test_h4_the_whole_demo_has_a_day_whose_weather_does_not_come(world: World) -> None:
    world.deploy(documents.load(str(APP), VALUES))
    upload(world, ALL)
    assert unmet([], ALL) == "4 days to be cleaned"
    runs = finished(world)
    assert [sum(run["schedule"].endswith(name) for run in runs) for name in ("clean", "join")] == [4, 3]


def test_h4_the_demo_says_what_it_does_with_the_seconds() -> None:
    out = io.StringIO()
    steps = watch.Steps(Console(file=out, width=100))
    with steps.doing("starting the local cloud"), watch.Watch(steps).open() as window:
        run = {"run_id": "r1", "schedule": "demo.flights.clean", "state": "RUNNING", "claimed_at": "2026-03-02T12:00Z"}
        window.show([run], [], "waiting for 1 day to be cleaned")
        window.show([run], [], "waiting for 1 day to be cleaned")
        window.show([{**run, "state": "SUCCEEDED"}], [], "waiting for 1 day to be joined with its weather")
    lines = [re.sub(r"\s+", " ", line).strip() for line in out.getvalue().splitlines()]
    assert lines == ["0 s starting the local cloud", "0 s RUNNING clean", "0 s SUCCEEDED clean"]


def test_h4_the_demo_says_for_what_it_waits_after_ten_seconds(monkeypatch: Any) -> None:
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    window = watch.Watch(watch.Steps(Console(file=out, width=100)))
    for now[0] in (0.0, 9.0, 10.0, 15.0, 21.0):
        window.show([], [], "waiting for 1 day to be cleaned")
    assert re.findall(r"(\d+) s  waiting", out.getvalue()) == ["10", "21"]
