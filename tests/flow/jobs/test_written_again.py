"""A fire that an emitter writes a second time does not change the job or run that it has become (E1, E6, C16).

An emitter that was killed before it moved the timer is repeated by the next tick; one that stalled writes late.
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.targets.answers import NoAnswer
from chalicelib.core.writes import Put
from chalicelib.flow.jobs import actions
from chalicelib.flow.schedules import pauses
from tests.acceptance.words import on, time
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights, full

ADA = "arn:aws:iam::123456789012:user/ada"
ONCE = "1 12 2 3 *"
APPROVED = [{"type": "approval", "people": [ADA]}]
DOWN = NoAnswer("the server is down")


@pytest.fixture
def world() -> World:
    return World()


def written_again(world: World, fire: Job) -> None:
    """A stalled emitter's row. It could not move the timer, so it hints nothing: the sweep finds it."""
    world.ports.ledger.put_all([Put(fire)])


def prepared(world: World, name: str) -> Job:
    [fire] = [job for job in world.jobs(name) if job.sort_key.startswith("FIRE#")]
    return fire


@pytest.mark.parametrize("coalesce", [True, False])
def test_e6_a_tried_delivery_keeps_its_tries_through_a_duplicate(world: World, coalesce: bool) -> None:
    patient = {"tries": 2, "delay": "3m"}
    notify = {"target": {"type": "sqs", "queue_url": "https://sqs.example/q"}, "delivery": patient}
    world.deploy(flights({"tick": at(ONCE, "notify", coalesce=coalesce)}, notify=notify))
    fire = prepared(world, "tick")
    world.targets.queue.answers = [DOWN, DOWN, DOWN]
    world.pass_by("61s")
    [tried] = world.jobs("tick")
    assert tried.tries == 1

    written_again(world, fire)
    world.pass_by("2m")
    assert [job.tries for job in world.jobs("tick")] == [1]
    assert world.targets.queue.answers == [DOWN, DOWN], "it is not asked before its time"
    world.pass_by("2m")
    [run] = world.runs("tick")
    assert (run.state, run.calls) == ("FAILED", 2)
    assert world.jobs("tick") == []


@pytest.mark.parametrize("coalesce", [True, False])
def test_c16_an_early_approval_is_kept_through_a_duplicate_fire(world: World, coalesce: bool) -> None:
    world.deploy(flights({"tick": at(ONCE, coalesce=coalesce, constraints=APPROVED)}))
    fire = prepared(world, "tick")
    actions.approve(world.ports, fire.job_id, ADA, "go")
    written_again(world, fire)
    assert actions.approve(world.ports, fire.job_id, ADA).approvals, "to say it again finds the one that has it"

    world.pass_by("59s")
    assert world.runs("tick") == []
    world.pass_by("1m")
    [run] = world.runs("tick")
    assert run.run_id == fire.job_id
    assert run.fired_by.text.endswith(f"approved by {ADA} at 2026-03-02T12:00:00.000Z: go")
    assert run.claimed_at == NOON + 60_000
    assert world.jobs("tick") == []
    assert world.limit_state("workflow:demo.flights.clean").active == 1


def test_l19_a_fire_approved_early_can_still_be_skipped(world: World) -> None:
    world.deploy(flights({"tick": at(ONCE, constraints=APPROVED)}))
    actions.approve(world.ports, prepared(world, "tick").job_id, ADA)
    pauses.skip(world.ports, full("tick"), NOON + 60_000, "tester")
    world.pass_by("2m")
    assert [record.kind for record in world.records("tick")] == ["SKIPPED"]


def test_l4_a_fire_approved_early_is_dropped_by_a_drain(world: World) -> None:
    world.deploy(flights({"tick": at(ONCE, constraints=APPROVED)}))
    actions.approve(world.ports, prepared(world, "tick").job_id, ADA)
    world.pause("tick", "drain")
    world.pass_by("2m")
    assert [record.kind for record in world.records("tick")] == ["DROPPED"]


def test_l6_a_fire_approved_early_is_dropped_by_an_earlier_end(world: World) -> None:
    world.deploy(flights({"tick": at(ONCE, constraints=APPROVED)}))
    actions.approve(world.ports, prepared(world, "tick").job_id, ADA)
    world.put("tick", at(ONCE, constraints=APPROVED, ttl="30s", on_update="carry"))
    world.pass_by("2m")
    assert [record.kind for record in world.records("tick")] == ["DROPPED"]


def test_c16_a_fire_that_only_counts_for_a_job_is_not_approved(world: World) -> None:
    either: dict[str, Any] = {"type": "any", "triggers": [time(ONCE), {"type": "partition", "dataset": "flights"}]}
    world.deploy(flights({"tick": on(either, "clean", *APPROVED)}))
    with pytest.raises(SluiceError, match="expected a job that waits for an approval"):
        actions.approve(world.ports, prepared(world, "tick").job_id, ADA)


def test_c10_a_detached_fire_is_recognized_when_written_again(world: World) -> None:
    """It waited past its timeout, and the next fire detached it. It still waits, because its timeout runs it anyway."""
    anyway = {"after": "30s", "then": "run"}
    one = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
    world.deploy(flights({"tick": at("@every 1m", timeout=anyway, constraints=one)}))
    second = sorted((job for job in world.jobs("tick")), key=lambda job: job.due_at or 0)[1]
    world.pass_by("3m10s")
    apart = [job for job in world.jobs("tick") if job.job_id == second.job_id]
    assert [job.sort_key.partition("#")[0] for job in apart] == ["JOB"]

    written_again(world, second)
    world.pass_by("90s")
    assert [job.sort_key for job in world.jobs("tick") if job.job_id == second.job_id] == [apart[0].sort_key]
    world.finish()
    world.pass_by("1s")
    assert second.job_id in [run.run_id for run in world.runs("tick")]


def test_c11_a_waiting_fire_is_recognized_after_completion(world: World) -> None:
    """It began to wait as the gathering job. When it is written again the mode is `completed`, in which
    no job gathers.
    """
    one = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
    trigger = {"type": "time", "expression": "R2/PT2M"}
    world.deploy(flights({"tick": {"workflow": "clean", "trigger": trigger, "constraints": one, "enabled": True}}))
    [fire, *_] = [job for job in world.jobs("tick") if job.sort_key.startswith("FIRE#")]
    world.run_now("tick")
    world.pass_by("2m1s")
    [waiting] = [job for job in world.jobs("tick") if job.queued_in is not None]
    assert waiting.job_id == fire.job_id
    world.pass_by("2m")
    schedule_state = world.ports.rows.get(ScheduleState, full("tick"))
    assert schedule_state is not None and schedule_state.mode == "completed"

    written_again(world, fire)
    world.pass_by("2m")
    assert [job.job_id for job in world.jobs("tick") if job.job_id == fire.job_id] == [fire.job_id]
    world.finish()
    world.pass_by("1m")
    assert [run.run_id for run in world.runs("tick")].count(fire.job_id) == 1
