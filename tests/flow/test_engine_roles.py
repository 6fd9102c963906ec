"""Engines are called with the target role of a namespace alone (O10, W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.runs.target_roles import TargetRole
from chalicelib.flow.definitions import target_roles
from chalicelib.ports import Ports
from tests.support.ecs_tasks import TARGET
from tests.support.schedules import at
from tests.support.world import World

ROLE = "arn:aws:iam::123456789012:role/sluice-target-demo"
APP = {"workflows": {"load": {"target": TARGET}}, "schedules": {"s": at("1 12 2 3 *", "load")}}


def world_of_account() -> World:
    world = World(target_role_arns=(ROLE,), account="123456789012")
    world.deploy({})
    return world


def test_w22_a_namespace_without_a_role_is_refused() -> None:
    world = world_of_account()
    with pytest.raises(SluiceError, match="expected a target role of the namespace") as refused:
        world.deploy(APP)
    assert refused.value.hint == "an administrator of the installation can set target_role: sluice allowed demo"
    assert (refused.value.field or "").endswith("target.type")
    world.allow("demo", target_role=ROLE)
    world.deploy(APP)
    world.pass_by("2m")
    [run] = world.runs("s")
    assert (run.state, run.target_role) == ("STARTING", ROLE)


def test_w22_a_run_without_its_role_is_not_started() -> None:
    world = world_of_account()
    world.allow("demo", target_role=ROLE)
    world.deploy(APP)
    world.allow("demo")
    world.pass_by("2m")
    [run] = world.runs("s")
    assert run.state == "FAILED"
    assert "not allowed: type: expected a target role of the namespace" in run.reason.text
    assert world.targets.tasks.tasks == {}


PUBLISH = {
    "type": "aws_api",
    "service": "sns",
    "action": "publish",
    "input": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:days", "Message": "ready"},
}


@pytest.mark.parametrize("target", [TARGET, PUBLISH], ids=["a start", "a delivery"])
def test_w22_a_run_whose_role_comes_is_called_with_it(target: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The namespace gets its role between the read for the call and the read of its list."""
    world = world_of_account()
    world.allow("demo", target_role=ROLE)
    world.deploy({**APP, "workflows": {"load": {"target": target}}})
    found = target_roles.of_namespace
    ready = world.clock.now() + 90_000

    def late(ports: Ports, namespace: str) -> TargetRole | None:
        return found(ports, namespace) if ports.clock.now() >= ready else None

    monkeypatch.setattr(target_roles, "of_namespace", late)
    world.pass_by("80s")
    assert (world.targets.tasks.calls, world.targets.calls.made) == ([], [])
    world.pass_by("5m")
    [run] = world.runs("s")
    assert (run.state in ("STARTING", "SUCCEEDED"), run.target_role) == (True, ROLE)
    assert len(world.targets.tasks.tasks) + len(world.targets.calls.made) == 1


def test_w22_a_run_that_lost_its_role_is_not_asked_with_another() -> None:
    world = world_of_account()
    world.allow("demo", target_role=ROLE)
    world.deploy(APP)
    world.pass_by("2m")
    [run] = world.runs("s")
    world.allow("demo")
    world.targets.sts.denied.add(ROLE)
    world.pass_by("90m")  # its session ends
    begun = len(world.targets.tasks.calls)
    world.pass_by("30m")
    assert len(world.targets.tasks.calls) == begun
    assert target_roles.adapter_of_begun(world.ports, run).status(run) is None
    plain = replace(run, target_role=None)
    with pytest.raises(RuntimeError, match="had no target role"):
        target_roles.adapter_of_begun(world.ports, plain).find(plain)
