"""Approval (C16): a job waits until a user with the role approves it, or rejects and so drops it."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow import lookup
from chalicelib.flow.jobs import actions
from tests.acceptance.words import day
from tests.support.answers import explain
from tests.support.backfills import begin
from tests.support.schedules import at, partitions
from tests.support.world import EMR, World, flights

ADA = "arn:aws:sts::123456789012:assumed-role/DataOwner/ada"
BOB = "arn:aws:iam::123456789012:user/bob"
EVE = "arn:aws:sts::123456789012:assumed-role/Reader/DataOwner"


def wanting(**fields: Any) -> tuple[World, str]:
    world = World()
    approval = {"type": "approval", **fields}
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "10s"}}
    world.deploy(flights({"a": partitions(by=["day"], workflow="x", constraints=[approval])}, x=retried))
    world.upload(day(1))
    world.settle()
    [job] = world.jobs("a")
    return world, job.job_id


def test_c16_an_approved_job_starts_at_once_and_waits_before() -> None:
    world, job_id = wanting(role="DataOwner")
    world.pass_by("3h")
    assert world.runs("a") == []
    why = explain.why_job(world.ports, lookup.find_job(world.ports, job_id))["why"]
    assert why == "approved by a DataOwner, else wait: waits for approval"

    actions.approve(world.ports, job_id, ADA, "the figures are in")
    world.settle()
    [run] = world.runs("a")
    assert run.run_id == job_id
    assert run.fired_by.text.endswith(f"; approved by {ADA} at 2026-03-02T15:00:00.000Z: the figures are in")


def test_c16_approval_is_for_one_job_and_all_attempts_of_its_run() -> None:
    world, job_id = wanting(role="DataOwner")
    actions.approve(world.ports, job_id, ADA)
    world.upload(day(2))
    world.settle()
    assert len(world.runs("a")) == 1
    assert len(world.jobs("a")) == 1
    world.finish("FAILED", "broken")
    world.pass_by("11s")
    assert [run.attempt for run in world.runs("a")] == [1, 2]


def test_c16_a_refusal_drops_the_job_on_record() -> None:
    world, job_id = wanting(people=[BOB])
    actions.refuse(world.ports, job_id, BOB, "not this week")
    world.settle()
    assert world.jobs("a") == []
    [record] = world.records("a")
    assert (record.kind, record.reason.text) == (
        "ABORTED",
        f"refused by {BOB} at 2026-03-02T12:00:00.000Z: not this week",
    )
    with pytest.raises(SluiceError, match="job"):
        actions.approve(world.ports, job_id, BOB)


@pytest.mark.parametrize("caller", [EVE, BOB, "unknown", "arn:aws:iam::123456789012:user/DataOwner"])
def test_c16_a_person_without_the_role_is_refused_without_effect(caller: str) -> None:
    world, job_id = wanting(role="DataOwner")
    for act in (actions.approve, actions.refuse):
        with pytest.raises(SluiceError, match="approved by a DataOwner, got") as refused:
            act(world.ports, job_id, caller)
        assert refused.value.code == "forbidden"
    world.settle()
    assert (len(world.jobs("a")), world.runs("a")) == (1, [])


def test_c16_a_session_of_a_listed_role_may_approve() -> None:
    world, job_id = wanting(people=["arn:aws:iam::123456789012:role/DataOwner"])
    actions.approve(world.ports, job_id, ADA)
    world.settle()
    assert len(world.runs("a")) == 1


def test_c16_no_approval_in_time_aborts_and_a_second_is_ignored() -> None:
    world, job_id = wanting(role="DataOwner", timeout="2h")
    world.pass_by("2h1m")
    assert [record.kind for record in world.records("a")] == ["ABORTED"]
    assert "not approved by 2026-03-02T14:00:00.000Z" in world.records("a")[0].reason.text

    other, job_id = wanting(role="DataOwner")
    first = actions.approve(other.ports, job_id, ADA)
    assert actions.approve(other.ports, job_id, ADA).approvals == first.approvals


def test_c16_a_job_that_asks_for_no_approval_cannot_get_one() -> None:
    world = World()
    night = [{"type": "time_window", "start": "22:00", "end": "06:00"}]
    world.deploy(flights({"a": partitions(constraints=night)}))
    world.upload(day(1))
    world.settle()
    with pytest.raises(SluiceError, match="expected a job that waits for an approval"):
        actions.approve(world.ports, world.jobs("a")[0].job_id, ADA)


def test_c16_a_timeout_with_run_does_not_replace_the_approval() -> None:
    """The timeout overrides the trigger and the time window, but not the approval (C10)."""
    world = World()
    rules = [{"type": "time_window", "start": "22:00", "end": "06:00"}, {"type": "approval", "role": "DataOwner"}]
    world.deploy(flights({"a": partitions(2, constraints=rules, timeout={"after": "1h", "then": "run"})}))
    world.upload(day(1))
    world.pass_by("2h")
    [job] = world.jobs("a")
    assert (job.reason.text, world.runs("a")) == ("approved by a DataOwner, else wait: waits for approval", [])
    actions.approve(world.ports, job.job_id, ADA)
    world.settle()
    [run] = world.runs("a")
    assert "run in spite of its timeout" in run.fired_by.text


def test_c16_each_job_of_a_backfill_needs_its_own_approval() -> None:
    world = World()
    world.deploy(flights({"a": at("0 2 * * *", constraints=[{"type": "approval", "role": "DataOwner"}])}))
    begin(world, "a", from_="2026-02-26T00:00:00Z", to="2026-02-27T00:00:00Z")
    world.settle()
    [job] = world.jobs("a")
    assert (job.kind, world.runs("a")) == ("backfill", [])
    actions.approve(world.ports, job.job_id, ADA)
    world.settle()
    assert len(world.runs("a")) == 1
