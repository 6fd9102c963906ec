"""Engines are called with the target role of a namespace alone (O10, W22)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
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
