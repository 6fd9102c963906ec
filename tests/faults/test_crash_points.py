"""A Lambda may die after any write (O3): nothing is lost and nothing runs twice, whichever write it was.

Each scenario is first run through to learn its effects, then once per effect with a death right after it, then left
to the sweep: hints and EMR's events of a dead invocation never come again. The expectation is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import pytest

from chalicelib.core.calendar import duration
from chalicelib.core.writes import Write
from chalicelib.flow import emit, sweep
from tests.support.crash import EFFECTS, CrashPoints, lost, redelivered, wrap
from tests.support.world import EMR, World, day, flights

BY = ["year", "month", "day"]
MakeWorld = Callable[..., World]
# Long enough for every lease, backoff and silent-run question to come round several times.
RECOVERY = ("1m", "1m", "3m", "3m", "11m", "11m", "21m", "61m")
# One shard instead of four: the tick asks each of them, and nothing here is about their number.
SMALL = {"wake_shards": 1, "history_shards": 1}


@dataclass(frozen=True)
class Scenario:
    """What is deployed, what happens while Lambdas may die, and what must be true in the end.

    ``expect`` lists the ends that are right: run states by schedule, and how many runs EMR saw. ``outcome`` is how
    EMR ends a run of this name, whoever hears of it.
    """

    schedules: dict[str, Any]
    act: Callable[[World], None]
    expect: list[tuple[dict[str, list[str]], int]]
    messages: int = 0
    outcome: Callable[[str], str] = lambda name: "SUCCESS"


def _gather_and_join(world: World) -> None:
    for number in (1, 2):
        redelivered(lambda number=number: world.upload(day(number)))
    world.settle(lost)
    _finish(world)
    world.settle(lost)
    redelivered(lambda: world.upload(day(1, "weather", "x.csv")))
    world.settle(lost)


def _fail_once(world: World) -> None:
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)
    _finish(world, _first_fails)
    world.clock.pass_by("40s")
    world.settle(lost)
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _fires(world: World) -> None:
    world.clock.pass_by("20s")
    lost(lambda: emit.emit_due(world.ports))
    for _ in range(5):
        world.clock.pass_by("20s")
        world.settle(lost)


def _disable_with_an_unheard_start(world: World) -> None:
    world.targets.emr.lose_answers = 1
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)
    redelivered(lambda: world.disable("clean"))
    world.settle(lost)
    world.clock.pass_by("3m")  # longer than the lease of the call
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _disable_with_a_queue(world: World) -> None:
    for number in (1, 2, 3):
        redelivered(lambda number=number: world.upload(day(number)))
    world.settle(lost)
    redelivered(lambda: world.disable("clean"))
    redelivered(lambda: world.disable("never"))
    world.settle(lost)


def _deploy_run_and_replace(world: World) -> None:
    schedules = {"clean": CLEAN, "late": {**CLEAN, "workflow": "join", "enabled": False}}
    redelivered(lambda: world.deploy(flights(schedules, extra={"target": EMR})))
    redelivered(lambda: world.run_now("late"))
    world.settle(lost)
    _finish(world)
    redelivered(lambda: world.enable("late"))
    redelivered(lambda: world.put("late", {**CLEAN, "workflow": "join", "properties": {"new": True}, "enabled": False}))
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)


def _finish(world: World, outcome: Callable[[str], str] = lambda name: "SUCCESS") -> None:
    for run in [run for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]:
        lost(lambda run=run: world.emr_says(run.id, "RUNNING"))
        lost(lambda run=run: world.emr_says(run.id, outcome(run.name), "the last line of the driver"))


def _first_fails(name: str) -> str:
    return "FAILED" if name.endswith("-1") else "SUCCESS"


ONE_AT_A_TIME = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
PARTITION = {"type": "partition", "dataset": "flights"}
CLEAN = {"workflow": "clean", "enabled": True, "trigger": PARTITION, "by": BY, "constraints": ONE_AT_A_TIME}
JOIN = {
    "workflow": "join",
    "enabled": True,
    "by": BY,
    "trigger": {
        "type": "all",
        "triggers": [
            {"type": "program_status", "workflow": "clean"},
            {"type": "partition", "dataset": "weather"},
        ],
    },
}
# Its jobs sleep without any time to wake at: only whoever closes the schedule can take them off.
NEVER_MET = {**CLEAN, "trigger": {**PARTITION, "count": 2}, "timeout": "never"}
# One fire within the time that the test lets pass: 1 March 2026, 12:01 is the only one of that day.
ONCE = {"type": "time", "expression": "1 12 2 3 *"}

SCENARIOS = {
    "partitions, a queue for one slot, and a join by day": Scenario(
        {"clean": CLEAN, "join": JOIN},
        _gather_and_join,
        [({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3)],
    ),
    "a run that fails and is attempted again": Scenario(
        {"clean": {**CLEAN, "workflow": "twice"}},
        _fail_once,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 2)],
        outcome=_first_fails,
    ),
    "one fire each to a queue, to EMR, and to a trigger of two leaves": Scenario(
        {
            "message": {"workflow": "notify", "enabled": True, "trigger": ONCE},
            "nightly": {"workflow": "clean", "enabled": True, "trigger": ONCE, "constraints": ONE_AT_A_TIME},
            "either": {"workflow": "join", "enabled": True, "trigger": {"type": "any", "triggers": [ONCE, PARTITION]}},
        },
        _fires,
        [({"message": ["SUCCEEDED"], "nightly": ["SUCCEEDED"], "either": ["SUCCEEDED"]}, 2)],
        messages=1,
    ),
    "a disable while a start call is unanswered": Scenario(
        {"clean": {**CLEAN, "by": []}},
        _disable_with_an_unheard_start,
        # Dead before the start call: nothing ran, and nothing does. After it: the run is found and cancelled.
        [({"clean": ["CANCELLED"]}, 1), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0)],
    ),
    "a disable while jobs wait in a queue": Scenario(
        {"clean": CLEAN, "never": NEVER_MET},
        _disable_with_a_queue,
        # Dead between the start call and the record of its answer: the run is alive under a closed gate, and cancelled.
        [({"clean": [state]}, 1) for state in ("SUCCEEDED", "CANCELLED")]
        + [({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0)],
    ),
    "a deployment, an enable, a run now and a replacement": Scenario(
        {},
        _deploy_run_and_replace,
        # Enabling begins a new generation: a run-now that a death had held up until then is dropped, on record.
        [({"clean": ["SUCCEEDED"], "late": late}, 1 + len(late)) for late in (["SUCCEEDED"], [])]
        + [({"clean": ["SUCCEEDED"], "late": ["ABORTED"]}, 1), ({"clean": ["SUCCEEDED"], "late": ["CANCELLED"]}, 2)],
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_o3_a_death_after_any_write_loses_and_doubles_nothing(name: str, make_world: MakeWorld) -> None:
    scenario = SCENARIOS[name]
    effects = _play(scenario, make_world(**SMALL), None).names
    print(f"{name}: {len(effects)} crash points")

    for number, effect in enumerate(effects, start=1):
        try:
            _play(scenario, make_world(**SMALL), number)
        except AssertionError as error:
            raise AssertionError(f"death after effect {number}, {effect}: {error}") from error

    assert len(effects) >= 10


def test_every_kind_of_write_and_effect_has_a_crash_point(make_world: MakeWorld) -> None:
    """A write that no scenario crosses would never be tried with a death after it: add it to one."""
    seen: set[type] = set()
    names: set[str] = set()
    for scenario in SCENARIOS.values():
        points = _play(scenario, make_world(**SMALL, inline_events=0), None)
        seen |= points.seen
        names |= {name.partition("(")[0] for name in points.names}

    assert {kind.__name__ for kind in get_args(Write)} - {kind.__name__ for kind in seen} == set()
    assert EFFECTS - names == set()


def _play(scenario: Scenario, world: World, die_after: int | None) -> CrashPoints:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    world.deploy(flights(scenario.schedules, twice=retried))
    points = wrap(world)
    points.die_after, points.armed = die_after, True
    scenario.act(world)
    points.armed = False
    _recover(world, scenario.outcome)
    _check(scenario, world, points)
    return points


def _recover(world: World, outcome: Callable[[str], str]) -> None:
    """Only time passes: ticks come, and EMR's runs end without an event of theirs arriving."""
    for span in RECOVERY:
        world.clock.wait_until(world.clock.now() + duration(span))
        world.tick()
        for run in world.targets.emr.runs.values():
            run.state = outcome(run.name) if run.state in ("SUBMITTED", "RUNNING") else run.state


def _check(scenario: Scenario, world: World, points: CrashPoints) -> None:
    states = {name: [run.state for run in world.runs(name)] for name in scenario.expect[0][0]}
    assert (states, len(world.targets.emr.runs)) in scenario.expect
    assert len({run_id for run_id, _ in world.targets.queue.messages}) == scenario.messages
    for workflow in ("clean", "join", "twice"):
        line = world.line(f"workflow:demo.flights.{workflow}")
        assert (line.active, line.waiters) == (0, 0), f"{line} after {points.names[-3:]}"
    for name in scenario.schedules:
        gate = world.ports.catalog.gate(f"demo.flights.{name}")
        closed = gate is not None and gate.mode != "enabled"
        left = [job for job in world.jobs(name) if closed or (job.kind != "gathering" and job.due_at is None)]
        assert left == []
