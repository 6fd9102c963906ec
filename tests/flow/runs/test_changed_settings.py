"""A redeployment changes the stack's EMR application and role: active runs keep those of their claim (C12, W10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.flow.runs import actions, follow
from tests.faults.dying import SMALL
from tests.support.emr_client import EmrClient
from tests.support.fakes import APPLICATION
from tests.support.schedules import partitions
from tests.support.world import World, day, flights

ROLE = "arn:aws:iam::000000000000:role/job"
NEW_APPLICATION, NEW_ROLE = "00new", "arn:aws:iam::000000000000:role/new"


class RealTargets:
    """The real target of EMR Serverless, as a process creates it from its settings."""

    def __init__(self, inner: Any, client: EmrClient, application: str, role: str) -> None:
        self._inner = inner
        self._emr = EmrServerlessTarget(client, application, role, "control", lambda _: None)

    def of(self, kind: str) -> Any:
        return self._emr if kind == "emr_serverless" else self._inner.of(kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def emr() -> EmrClient:
    return EmrClient()


@pytest.fixture
def world(emr: EmrClient) -> World:
    made = World(**SMALL)
    made.deploy(flights({"daily": partitions()}))
    made.ports = made.with_ports(targets=RealTargets(made.targets, emr, APPLICATION, ROLE))
    return made


def redeploy(world: World, emr: EmrClient) -> None:
    """A new version of the stack, with another default application and role."""
    settings = replace(world.ports.settings, emr_application_id=NEW_APPLICATION, emr_job_role_arn=NEW_ROLE)
    targets = RealTargets(world.targets, emr, NEW_APPLICATION, NEW_ROLE)
    world.ports = world.with_ports(settings=settings, targets=targets)


def places(emr: EmrClient) -> list[tuple[str, str]]:
    return [(run.application, run.role) for run in emr.runs]


def test_an_unanswered_start_is_repeated_at_its_original_target(world: World, emr: EmrClient) -> None:
    emr.lose_answers = 2  # of a call and of its repeat at once
    world.upload(day(1))
    world.settle()
    redeploy(world, emr)
    world.pass_by("5m")
    assert places(emr) == [(APPLICATION, ROLE)]
    [run] = world.runs("daily")
    assert run.target_id == f"{APPLICATION}/jr00001"
    assert (run.request.target["application_id"], run.request.target["execution_role_arn"]) == (APPLICATION, ROLE)


def test_an_unanswered_start_of_a_closed_schedule_is_cancelled(world: World, emr: EmrClient) -> None:
    emr.lose_answers = 100
    world.upload(day(1))
    world.settle()
    redeploy(world, emr)
    world.disable("daily")
    world.pass_by("10m")
    assert [(run.application, run.state) for run in emr.runs] == [(APPLICATION, "CANCELLED")]
    assert [run.state for run in world.runs("daily")] == ["CANCELLED"]


def test_an_active_run_is_polled_and_cancelled_where_it_runs(world: World, emr: EmrClient) -> None:
    world.upload(day(1))
    world.settle()
    redeploy(world, emr)
    [run] = world.runs("daily")
    follow.poll(world.ports, run)
    actions.cancel(world.ports, run.run_id, "tester")
    world.settle()
    assert [(run.application, run.state) for run in emr.runs] == [(APPLICATION, "CANCELLED")]
    assert [run.state for run in world.runs("daily")] == ["CANCELLED"]


def test_a_waiting_job_is_started_by_the_settings_of_its_claim(world: World, emr: EmrClient) -> None:
    one = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
    world.put("daily", partitions(by=["day"], constraints=one))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    redeploy(world, emr)
    emr.runs[0].state = "SUCCESS"
    world.pass_by("30m")
    assert places(emr) == [(APPLICATION, ROLE), (NEW_APPLICATION, NEW_ROLE)]
