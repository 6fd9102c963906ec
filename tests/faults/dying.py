"""How a scenario is played in which Lambdas die: what is deployed, what happens, what is right in the end.

Each is first played through to learn its effects, then once per effect with a death right after it, then left to the
sweep: hints and EMR's events of a dead invocation never come again. The expectation is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import duration
from chalicelib.flow.fires import emit
from chalicelib.flow.system import sweep
from tests.faults import invariants
from tests.faults.memory_tables import QuickWorld
from tests.support.crash import CrashPoints, lost, redelivered, wrap
from tests.support.fakes import EmrRun
from tests.support.pull_workers import PULLED
from tests.support.state_machines import Execution
from tests.support.world import EMR, World, day, flights

# Long enough for every lease, backoff and silent-run question to come round several times.
RECOVERY = ("1m", "1m", "3m", "3m", "11m", "11m", "21m", "61m")
# One shard instead of four: the tick asks each of them, and nothing here is about their number.
SMALL: dict[str, Any] = {"wake_shards": 1, "history_shards": 1}
POOLS = {"p": {"size": 4, "shares": {"flights.join": {"reserved": 1}}}}
POLICIES = {"calm": {"max_events": 3, "interval": "1m"}}
# What the end of a scenario is: run states by schedule, oldest first, and how many runs EMR saw.
End = tuple[dict[str, list[str]], int]


def _succeeds(run: EmrRun) -> str:
    return "SUCCESS"


@dataclass(frozen=True)
class Scenario:
    """What is deployed, what happens while Lambdas may die, and which ends are right: the first if nobody dies.

    ``messages`` is how many were sent, None if that may be as it will. ``outcome`` is how EMR ends a run, whoever hears
    of it. ``later`` is done when all has been repaired, and followed by as much time again. ``holds`` looks closer at
    the end. ``tuned`` are settings. ``workflows`` are deployed beside those of every scenario, and ``execution`` is how
    Step Functions ends an execution, whoever hears of it.
    """

    schedules: dict[str, Any]
    act: Callable[[World], None]
    expect: Sequence[End]
    messages: int | None = 0
    outcome: Callable[[EmrRun], str] = _succeeds
    later: Callable[[World], None] | None = None
    holds: Callable[[World], bool] = lambda world: True
    tuned: Mapping[str, Any] = field(default_factory=dict)
    workflows: Mapping[str, Any] = field(default_factory=dict)
    execution: Callable[[Execution], str] = lambda execution: "SUCCEEDED"


def play(scenario: Scenario, world: World, *deaths: int) -> CrashPoints:
    """Play a scenario with a death after each of these effects, those of the recovery counting on."""
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    pulled = {"target": PULLED, "retries": {"attempts": 2, "delay": "30s"}}
    parts = flights(scenario.schedules, twice=retried, pulled=pulled, **scenario.workflows)
    world.deploy({**parts, "policies": POLICIES, "pools": POOLS})
    points = wrap(world)
    points.die_after, points.armed = deaths, True
    scenario.act(world)
    points.ends_act()
    _recover(world, scenario)
    if (later := scenario.later) is not None:
        people(world, lambda: later(world))
        _recover(world, scenario)
    points.armed = False
    tell = f"after {points.names[-3:]}"
    states = {name: [run.state for run in world.runs(name)] for name in scenario.expect[0][0]}
    end = (states, len(world.targets.emr.runs))
    assert end in (scenario.expect if deaths else scenario.expect[:1]), f"{end} {tell}"
    assert scenario.messages in (None, len({run_id for run_id, _ in world.targets.queue.messages})), tell
    assert scenario.holds(world), tell
    if isinstance(world, QuickWorld):
        invariants.check_rest(world)
    return points


def world_for(scenario: Scenario) -> QuickWorld:
    return QuickWorld(**{**SMALL, **scenario.tuned})


def _recover(world: World, scenario: Scenario) -> None:
    """Only time passes: ticks come, and runs of EMR and Step Functions end without an event of theirs arriving."""
    for span in RECOVERY:
        world.clock.wait_until(world.clock.now() + duration(span))
        tick(world)
        for run in world.targets.emr.runs.values():
            run.state = scenario.outcome(run) if run.state in ("SUBMITTED", "RUNNING") else run.state
        world.targets.machines.end_all(scenario.execution)


def upload(world: World, number: int, dataset: str = "flights", name: str = "_SUCCESS", size: int = 0) -> None:
    """A notification of S3: its queue repeats it until somebody has lived through it. Then hints arrive."""
    redelivered(lambda: world.upload(day(number, dataset, name), size=size))
    world.settle(lost)


def people(world: World, act: Callable[[], Any]) -> None:
    """Somebody asks for something, again and again until it is acknowledged. Then hints arrive."""
    redelivered(act)
    world.settle(lost)


def tick(world: World) -> None:
    """The minute's invocation; whoever dies in it leaves the rest to the next one."""
    lost(lambda: emit.emit_due(world.ports))
    lost(lambda: sweep.hint_soon(world.ports))
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def passes(world: World, *spans: str) -> None:
    """Time goes by, a tick at the end of each span."""
    for span in spans:
        world.clock.pass_by(span)
        tick(world)


def finish(world: World, outcome: Callable[[EmrRun], str] = _succeeds) -> None:
    """EMR's runs end, and tell it once. Then hints arrive."""
    for run in [run for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]:
        lost(lambda run=run: world.emr_says(run.id, "RUNNING"))
        lost(lambda run=run: world.emr_says(run.id, outcome(run), "the last line of the driver"))
    world.settle(lost)
