"""After a kill at any effect, all due work is handled within one tick and ten seconds (O3)."""

from __future__ import annotations

import pytest
from botocore.config import Config

from chalicelib import wiring
from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.core.runs import launch
from tests.faults import invariants
from tests.faults.dying import SMALL, Scenario, deploy, tick, world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.support.crash import CrashPoints, lost, wrap
from tests.support.schedules import partitions
from tests.support.world import World, day, flights, settings

LONGEST = 70 * SECOND
# How long the recovery is watched: a lease of a start call, a tick, and the work that follows.
WATCHED = 3 * MINUTE
SHORT = (
    "partitions, a queue for one slot, and a join by day",
    "a run that fails and is attempted again",
    "one fire each to a queue, to EMR, and to a trigger of two leaves",
)


def _begun(scenario: Scenario, *deaths: int) -> tuple[World, CrashPoints]:
    world = deploy(scenario, world_for(scenario))
    points = wrap(world)
    points.die_after, points.armed = deaths, True
    scenario.act(world)
    points.armed = False
    return world, points


def _passes(world: World, until: Instant) -> None:
    """Time passes to the second: hints at their instants, a tick each minute. No row is overdue for long from now on:
    in some scenarios minutes pass without a tick."""
    since = world.clock.now()
    while world.clock.now() < until:
        now = world.clock.now()
        next_tick = (now // MINUTE + 1) * MINUTE
        world.clock.wait_until(min([until, next_tick, *(due for due, _ in world.hints.sent if due > now)]))
        world.settle(lost)
        if world.clock.now() == next_tick:
            tick(world)
        late = [(name, now - at) for at, name in invariants.Stock(world).awake
                if max(at, since) < world.clock.now() - LONGEST]  # fmt: skip
        assert late == [], f"overdue: {late}"


def _attended_in_time(scenario: Scenario) -> None:
    _, points = _begun(scenario)
    for number, effect in enumerate(points.names, start=1):
        world, _ = _begun(scenario, number)
        try:
            _passes(world, world.clock.now() + WATCHED)
        except AssertionError as error:
            raise AssertionError(f"death after effect {number}, {effect}: {error}") from error


@pytest.mark.parametrize("name", SHORT)
def test_due_work_after_a_death_is_handled_within_a_tick_and_10s(name: str) -> None:
    _attended_in_time(SCENARIOS[name])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in SHORT])
def test_due_work_after_a_death_is_handled_in_every_scenario(name: str) -> None:
    _attended_in_time(SCENARIOS[name])


@pytest.mark.parametrize("second", range(1, 60, 3))
@pytest.mark.parametrize("deadly", ["put_context", "commit(Replace Run)", "start"])
def test_o3_a_start_whose_caller_died_resumes_within_70s(deadly: str, second: int) -> None:
    """A recorded call may still be in flight, so Sluice waits for its lease of 50 seconds. A tick before the end of the
    lease hints the run for that instant. Otherwise the next tick finds the run."""
    names = _uploaded(second).names
    world = World(**SMALL)
    _uploaded(second, world, names.index(deadly) + 1)
    died = world.clock.now()

    while not (world.runs("daily") and world.runs("daily")[0].target_id):
        _passes(world, world.clock.now() + SECOND)

    assert world.clock.now() - died <= LONGEST
    assert len(world.targets.emr.runs) == 1


def _uploaded(second: int, world: World | None = None, *deaths: int) -> CrashPoints:
    world = world or World(**SMALL)
    world.deploy(flights({"daily": partitions()}))
    points = wrap(world)
    points.die_after, points.armed = deaths, True
    world.clock.pass_by(f"{second}s")
    world.upload(day(1))
    lost(world.settle)
    points.armed = False
    return points


def test_the_lease_of_a_call_is_longer_than_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease covers the timeouts of the call, and fifteen seconds for the reads and writes between its record and
    the call.
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    names = {"catalog_table": "c", "jobs_table": "j", "runs_table": "r"}
    for target, calls in (("emr_serverless", 2), ("lambda", 1)):
        config: Config = wiring.targets(settings(names)).of(target)._client.meta.config
        attempts = calls * config.retries["total_max_attempts"]
        longest = (config.connect_timeout + config.read_timeout) * attempts
        assert (longest + 15) * SECOND <= launch.CALL_LEASE, target
