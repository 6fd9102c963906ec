"""Plays a scenario in which Lambdas are killed: what is deployed, what happens, which ends are right.

A scenario is first played without a kill, to list its effects. Then it is played once per effect, with a kill right
after that effect. Only the sweep repairs the rest: hints and EMR's events of a killed invocation never come again. The
same ends are expected in every play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import duration
from chalicelib.flow.fires import emit
from chalicelib.flow.system import sweep
from tests.faults import invariants
from tests.support import events
from tests.support.batch_jobs import BatchJob
from tests.support.crash import CrashPoints, lost, redelivered, wrap
from tests.support.ecs_tasks import Task
from tests.support.fakes import EmrRun
from tests.support.glue import JobRun
from tests.support.idle import is_idle
from tests.support.pull_workers import PULLED
from tests.support.queries import Query
from tests.support.snapshot import Start
from tests.support.state_machines import Execution
from tests.support.world import EMR, World, day, flights

# Long enough for every lease, every backoff and several polls of silent runs.
RECOVERY = ("1m", "1m", "3m", "3m", "11m", "11m", "21m", "61m")
# One shard instead of four: the tick queries each shard, and no scenario depends on their number.
SMALL: dict[str, Any] = {"wake_shards": 1, "history_shards": 1}
POOLS = {"p": {"size": 4, "shares": {"flights.join": {"reserved": 1}}}}
POLICIES = {
    "calm": {"max_events": 3, "interval": "1m"},
    "fast": {"max_events": 20, "interval": "10s"},
    "faster": {"max_events": 300, "interval": "1s"},
}
# The end of a scenario: run states by schedule, oldest first, and the number of runs that EMR started.
End = tuple[dict[str, list[str]], int]


def _succeeds(run: EmrRun) -> str:
    return "SUCCESS"


@dataclass(frozen=True)
class Scenario:
    """What is deployed, what happens while Lambdas may be killed, and which ends are right. Without a kill only the
    first end is right.

    ``messages`` is the number of messages sent, None if any number is right. ``outcome`` returns the state in which EMR
    ends a run, even if its event is lost. ``later`` is called when all is repaired, and as much time passes again.
    ``holds`` checks the end more closely. ``tuned`` are settings. ``workflows`` and ``datasets`` are deployed in
    addition to those of every scenario. ``execution``, ``batch_job``, ``job_run`` and ``query`` return the state in
    which Step Functions, Batch, Glue and Athena end one, even if its event is lost; ``exit_code`` is of a task.
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
    datasets: Mapping[str, Any] = field(default_factory=dict)
    execution: Callable[[Execution], str] = lambda execution: "SUCCEEDED"
    batch_job: Callable[[BatchJob], str] = lambda job: "SUCCEEDED"
    exit_code: Callable[[Task], int] = lambda task: 0
    job_run: Callable[[JobRun], str] = lambda job_run: "SUCCEEDED"
    query: Callable[[Query], str] = lambda query: "SUCCEEDED"


def play(scenario: Scenario, world: World, *deaths: int) -> CrashPoints:
    """Play a scenario with a kill after each of these effects. The effects of the recovery are counted on."""
    deploy(scenario, world)
    return _play(scenario, world, *deaths)


class Stage:
    """A scenario that is deployed once, and played from there many times."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._start = Start(lambda: deploy(scenario, world_for(scenario)))

    def play(self, *deaths: int, scenario: Scenario | None = None) -> CrashPoints:
        """As `play`. A ``scenario`` that deploys the same may replace the own one."""
        return _play(scenario or self._scenario, self._start.again(), *deaths)


def deploy(scenario: Scenario, world: World) -> World:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    pulled = {"target": PULLED, "retries": {"attempts": 2, "delay": "30s"}}
    parts = flights(scenario.schedules, twice=retried, pulled=pulled, **scenario.workflows)
    datasets = {**parts["datasets"], **scenario.datasets}
    world.deploy({**parts, "datasets": datasets, "policies": POLICIES, "pools": POOLS})
    return world


def _play(scenario: Scenario, world: World, *deaths: int) -> CrashPoints:
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
    states = {
        name: [run.state for run in world.runs(name) for _ in events.of_run(run)] for name in scenario.expect[0][0]
    }
    end = (states, len(world.targets.emr.runs))
    assert end in (scenario.expect if deaths else scenario.expect[:1]), f"{end} {tell}"
    assert scenario.messages in (None, len({run_id for run_id, _ in world.targets.queue.messages})), tell
    assert scenario.holds(world), tell
    if world.is_in_memory:
        invariants.check_rest(world)
    return points


def world_for(scenario: Scenario) -> World:
    return World(**{**SMALL, **scenario.tuned})


def _recover(world: World, scenario: Scenario) -> None:
    """Only time passes: ticks come, and runs of EMR and the engines end, but no event of theirs arrives."""
    for span in RECOVERY:
        world.clock.wait_until(world.clock.now() + duration(span))
        tick(world)
        for run in world.targets.emr.runs.values():
            run.state = scenario.outcome(run) if run.state in ("SUBMITTED", "RUNNING") else run.state
        world.targets.machines.end_all(scenario.execution)
        world.targets.batch_jobs.end_all(scenario.batch_job)
        world.targets.tasks.end_all(scenario.exit_code)
        world.targets.jobs.end_all(scenario.job_run)
        world.targets.queries.end_all(scenario.query)


def upload(world: World, number: int, dataset: str = "flights", name: str = "_SUCCESS", size: int = 0) -> None:
    """Deliver a notification of S3, again until an invocation completes it, as its queue does. Then hints arrive."""
    redelivered(lambda: world.upload(day(number, dataset, name), size=size))
    world.settle(lost)


def people(world: World, act: Callable[[], Any]) -> None:
    """Make a user's request, again until it is acknowledged. Then hints arrive."""
    redelivered(act)
    world.settle(lost)


def tick(world: World) -> None:
    """Run the tick. If a step is killed, the next tick does the rest."""
    if not is_idle(world):
        lost(lambda: emit.emit_due(world.ports))
        lost(lambda: sweep.hint_soon(world.ports))
        lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def passes(world: World, *spans: str) -> None:
    """Let time pass, with a tick at the end of each span."""
    for span in spans:
        world.clock.pass_by(span)
        tick(world)


def finish(world: World, outcome: Callable[[EmrRun], str] = _succeeds) -> None:
    """EMR's runs end, and EMR sends the event of each state once. Then hints arrive."""
    for run in [run for run in world.targets.emr.runs.values() if run.state == "SUBMITTED"]:
        lost(lambda run=run: world.emr_says(run.id, "RUNNING"))
        lost(lambda run=run: world.emr_says(run.id, outcome(run), "the last line of the driver"))
    world.settle(lost)
