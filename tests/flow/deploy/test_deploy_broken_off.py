"""A deployment is killed after any of its effects. The same request then completes it (L8, O3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.deploy import deploy
from tests.flow.stored import living, note, rows, send, workflows
from tests.support.crash import Crashing, CrashPoints, lost, redelivered, wrap
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, day, flights

MakeWorld = Callable[..., World]
SMALL = {"wake_shards": 1, "history_shards": 1}

BEFORE = flights(
    {"a": partitions(2), "b": partitions(2, "join"), "c": at("0 5 * * *", "notify")}, extra={"target": EMR}
)
AFTER = flights({"a": partitions(2), "b": partitions(3, "join"), "d": after("clean", "join")})
AFTER = {**AFTER, "owner": "ops", "workflows": {name: AFTER["workflows"][name] for name in ("clean", "join")}}


def _delete(world: World) -> None:
    """Delete the app as a caller does: "not found" counts as success."""
    try:
        deploy.delete_app(world.ports, "demo.flights", "tester")
    except SluiceError as error:
        if error.code != "not_found":
            raise


@dataclass(frozen=True)
class Scenario:
    """The first deployment (if any), the request that is killed, and the schedules and workflows that it leaves."""

    before: dict[str, Any] | None
    act: Callable[[World], object]
    schedules: set[str]
    workflows: list[str]


SCENARIOS = {
    "a first deployment": Scenario(
        None, lambda world: send(world, AFTER), {"a", "b", "d"}, ["clean", "join"]
    ),
    "a first deployment that is not to update schedules": Scenario(
        None, lambda world: send(world, AFTER, update_schedules=False), {"a", "b", "d"}, ["clean", "join"]
    ),
    "a deployment over another": Scenario(
        BEFORE, lambda world: send(world, AFTER), {"a", "b", "d"}, ["clean", "join"]
    ),
    "one that is not to update schedules": Scenario(
        BEFORE, lambda world: send(world, AFTER, update_schedules=False), {"a", "b", "by-hand"}, ["clean", "join"]
    ),
    "the deletion of an app": Scenario(BEFORE, _delete, set(), []),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_l8_a_request_that_dies_after_any_effect_can_be_repeated(name: str, make_world: MakeWorld) -> None:
    scenario = SCENARIOS[name]
    whole = make_world(**SMALL)
    effects = _play(scenario, whole, None).names
    expected = _end(whole)
    assert (set(living(whole)), workflows(whole)) == (scenario.schedules, scenario.workflows)

    for number, effect in enumerate(effects, start=1):
        world = make_world(**SMALL)
        _play(scenario, world, number)
        assert _end(world) == expected, f"death after effect {number}, {effect}"

    assert len(effects) >= 6


@pytest.mark.parametrize("update", [True, False])
def test_l8_a_deployment_is_recorded_only_when_all_is_done(make_world: MakeWorld, update: bool) -> None:
    world = make_world(**SMALL)
    points = _arm(world, None)
    send(world, AFTER, update_schedules=update)
    effects = points.count

    for number in range(1, effects):
        world = make_world(**SMALL)
        _arm(world, number)
        assert lost(lambda world=world: send(world, AFTER, update_schedules=update))
        if world.ports.rows.get(Definition, "app", "demo.flights") is not None:
            assert note(world) is None
        send(world, AFTER, update_schedules=update)
        assert note(world)["counts"] == {"datasets": 2, "workflows": 2, "schedules": 3}


def _play(scenario: Scenario, world: World, die_after: int | None) -> CrashPoints:
    """Deploy, let events gather, and send the request, again if it is killed."""
    if scenario.before is not None:
        world.deploy(scenario.before)
        world.put("by-hand", partitions(5))
        world.upload(day(1))
        world.settle()
        world.clock.pass_by("1m")
    points = _arm(world, die_after)
    redelivered(lambda: scenario.act(world))
    points.armed = False
    for _ in range(3):
        world.clock.pass_by("1m")
        world.tick()
    return points


def _arm(world: World, die_after: int | None) -> CrashPoints:
    points = wrap(world)
    world.ports = world.with_ports(payloads=Crashing(world.payloads, points, ("put_deployment",)))
    points.die_after, points.armed = die_after, True
    return points


def _end(world: World) -> Any:
    """The whole catalog, the deployed document, the waiting jobs, and the records."""
    names = ("a", "b", "c", "d", "by-hand")
    waiting = {name: [(job.kind, job.state, dict(job.leaves)) for job in world.jobs(name)] for name in names}
    records = {name: sorted(record.kind for record in world.records(name)) for name in names}
    return rows(world, "catalog"), dict(world.payloads.deployments), waiting, records
