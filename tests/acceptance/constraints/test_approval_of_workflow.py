"""An approval that a workflow asks for: every job that runs it waits, also that of a schedule of others (C16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.constraints.approval import waiters_key
from chalicelib.core.errors import SluiceError
from chalicelib.core.jobs import check
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.jobs import actions
from chalicelib.flow.runs.actions import rerun
from tests.acceptance.words import day
from tests.support.answers import explain, present
from tests.support.backfills import begin
from tests.support.crossings import at_each_call, cross
from tests.support.schedules import at, partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, SQS, World, flights

ADA = "arn:aws:sts::123456789012:assumed-role/DataOwner/ada"
BY_OWNER = {"type": "approval", "role": "DataOwner"}
ASKING = {"target": EMR, "retries": {"attempts": 2, "delay": "10s"}, "approval": BY_OWNER}
CLEAN, SEND = "lake.core.clean", "lake.core.send"
WAITS = f"approved by a DataOwner for workflow {CLEAN}, else wait: waits for approval"


def owning(schedules: dict[str, Any], **workflows: Any) -> World:
    """Namespace ``lake`` has workflows that ask for an approval, and grants them to the schedules of ``demo``."""
    world = World(authorization="enforce")
    asked = {"clean": ASKING, "send": {"target": SQS, "approval": BY_OWNER}, **workflows}
    world.deploy({"workflows": asked}, "lake", "core")
    world.grant("lake", {"grants": [{"to": "demo", "run": ["*"]}]})
    world.deploy(flights(schedules))
    return world


def ask(world: World, workflow: str, document: dict[str, Any]) -> None:
    namespace, app, name = workflow.split(".")
    world.deploy({"workflows": {name: document}}, namespace, app)


def waiting(world: World, name: str = "a") -> Job:
    world.settle()
    [job] = [job for job in world.jobs(name) if not check.is_prepared(job)]
    assert world.runs(name) == [], "it has not started"
    return job


def fires(world: World) -> None:
    world.tick()
    world.pass_by("61s")


NOON = at("1 12 2 3 *", CLEAN)
WAYS: dict[str, tuple[dict[str, Any], Callable[[World], Any]]] = {
    "a partition": (partitions(workflow=CLEAN), lambda world: world.upload(day(1))),
    "each partition": (partitions(workflow=CLEAN, coalesce=False), lambda world: world.upload(day(1))),
    "a fire": (NOON, fires),
    "each fire": ({**NOON, "coalesce": False}, fires),
    "a run now": (NOON, lambda world: world.run_now("a")),
    "a backfill": (
        at("0 2 * * *", CLEAN),
        lambda world: begin(world, "a", from_="2026-02-26T00:00:00Z", to="2026-02-27T00:00:00Z"),
    ),
    "a delivery": (at("1 12 2 3 *", SEND), fires),
    "a delivery now": (at("1 12 2 3 *", SEND), lambda world: world.run_now("a")),
    "a job that its timeout runs": (
        partitions(2, CLEAN, timeout={"after": "1h", "then": "run"}),
        lambda world: (world.upload(day(1)), world.pass_by("2h")),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_c16_each_way_to_a_start_waits_for_a_foreign_workflow(way: str) -> None:
    schedule, comes = WAYS[way]
    world = owning({"a": schedule})
    comes(world)
    job = waiting(world)
    assert f" for workflow {schedule['workflow']}, else wait: waits for approval" in job.reason.text
    actions.approve(world.ports, job.job_id, ADA)
    world.settle()
    [run] = world.runs("a")
    assert run.run_id == job.job_id
    sent = schedule["workflow"] == SEND
    assert len(world.targets.queue.tried) == int(sent)


def test_c16_a_rerun_waits_again_and_a_retry_does_not() -> None:
    world = owning({"a": partitions(workflow=CLEAN)})
    world.upload(day(1))
    actions.approve(world.ports, waiting(world).job_id, ADA)
    world.settle()
    world.finish("FAILED", "broken")
    world.pass_by("11s")
    assert [run.attempt for run in world.runs("a")] == [1, 2]
    world.finish()
    again = rerun(world.ports, world.runs("a")[0].run_id, "r2")
    world.settle()
    [job] = world.jobs("a")
    assert (job.job_id, job.reason.text) == (again, WAITS)
    assert len(world.runs("a")) == 2


def test_c16_a_schedules_approval_does_not_replace_the_workflows() -> None:
    """Both ask for the same role, in different namespaces."""
    world = owning({"a": partitions(workflow=CLEAN, constraints=[BY_OWNER])})
    world.upload(day(1))
    job = waiting(world)
    actions.approve(world.ports, job.job_id, ADA, duty=lambda name: name.startswith("demo."))
    job = waiting(world)
    assert (list(job.approvals), job.reason.text) == (["DataOwner"], WAITS)
    with pytest.raises(SluiceError, match="expected the role approver in namespace demo and lake"):
        actions.approve(world.ports, job.job_id, ADA, duty=lambda name: False)
    actions.approve(world.ports, job.job_id, ADA, duty=lambda name: name.startswith("lake."))
    world.settle()
    [run] = world.runs("a")
    assert run.fired_by.text.count("; approved by ") == 2


def test_c16_a_workflow_of_the_same_namespace_asks_too() -> None:
    world = World()
    world.deploy(flights({"a": partitions()}, clean=ASKING))
    world.upload(day(1))
    job = waiting(world)
    assert job.reason.text.startswith("approved by a DataOwner for workflow demo.flights.clean")
    with pytest.raises(SluiceError, match="expected the job to be approved by a DataOwner for workflow"):
        actions.refuse(world.ports, job.job_id, "arn:aws:iam::123456789012:user/bob")
    actions.refuse(world.ports, job.job_id, ADA)
    world.settle()
    assert [record.kind for record in world.records("a")] == ["ABORTED"]


def test_c16_why_and_present_name_the_approval_of_the_workflow() -> None:
    world = owning({"a": partitions(workflow=CLEAN)})
    world.upload(day(1))
    job = waiting(world)
    view = explain.why_job(world.ports, lookup.find_job(world.ports, job.job_id))
    assert (view["why"], view["wakes"].partition(", or")[0]) == (WAITS, "an approval")
    [constraint] = view["constraints"]
    assert (constraint["type"], constraint["met"]) == ("approval", False)
    now = present.now_of(world.ports, "demo")
    assert now["approvals"]["count"] == 1


@pytest.mark.parametrize("after", [None, {"type": "approval", "role": "Other"}])
def test_c16_a_changed_workflow_decides_again_about_what_waits(after: Any) -> None:
    world = owning({"a": partitions(workflow=CLEAN)})
    world.upload(day(1))
    job = waiting(world)
    ask(world, CLEAN, {**ASKING, "approval": after})
    if after is None:
        world.settle()
        assert len(world.runs("a")) == 1, "nobody has to approve it any more"
        return
    assert "a Other for workflow" in waiting(world).reason.text
    with pytest.raises(SluiceError, match="a Other"):
        actions.approve(world.ports, job.job_id, ADA)


def test_c16_an_unchanged_workflow_leaves_what_waits_alone() -> None:
    """A put of the same document wakes nothing, and the next change still wakes the job."""
    world = owning({"a": partitions(workflow=CLEAN)})
    ask(world, CLEAN, {**ASKING, "properties": {"depth": 1}})
    world.upload(day(1))
    waiting(world)
    rows = world.ports.catalog.subscriptions(waiters_key(CLEAN), 10, None).items
    workflow = world.ports.rows.get(Definition, "workflow", CLEAN)

    assert rows
    assert workflow is not None
    assert store.put(world.ports, "workflow", CLEAN, workflow.document, "tester").did == "unchanged"

    assert world.ports.catalog.subscriptions(waiters_key(CLEAN), 10, None).items == rows
    assert world.hints.sent == []
    ask(world, CLEAN, {"target": EMR})
    world.settle()
    assert len(world.runs("a")) == 1


@pytest.mark.parametrize("target", [EMR, SQS])
def test_c16_an_approval_asked_for_at_any_point_holds_what_waits(target: dict[str, Any]) -> None:
    """The workflow begins to ask while a job is processed. Once the request has returned, nothing is claimed."""

    def begun() -> World:
        world = owning({"a": at("1 12 2 3 *", CLEAN)}, clean={"target": target})
        world.tick()
        world.clock.pass_by("61s")
        return world

    start = Start(begun)

    def play(before: int | None) -> int:
        world = start.again()
        claimed: list[int] = []

        def begin_to_ask() -> None:
            ask(world, CLEAN, {"target": target, "approval": BY_OWNER})
            claimed.append(len(world.runs("a")) + len(world.targets.queue.tried))

        calls = cross(world, before, begin_to_ask, world.settle)
        started = len(world.runs("a"))
        assert started + len(world.jobs("a")) == 1
        if target is EMR:
            assert started == claimed[0], "a claim after the request would rely on the former definition"
        else:
            assert len(world.targets.queue.tried) <= 1
            assert started or not world.targets.queue.tried
        return calls

    print(f"{at_each_call(play, least=6)} crossings")
