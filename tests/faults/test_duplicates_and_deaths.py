"""Rows that come back, answers that come late, kills in between: the findings of a review of the code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.schedules import lifecycle
from chalicelib.core.targets.answers import Never
from chalicelib.core.writes import Put
from chalicelib.flow import lookup
from chalicelib.flow.jobs import queue
from chalicelib.flow.schedules import actions
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights, full

LIMIT = "workflow:demo.flights.clean"


def test_a_duplicate_of_waiting_fire_runs_once_and_leaks_no_slot(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10s", **at_most(1))}))
    second = sorted(world.jobs("tick"), key=lambda job: job.due_at or 0)[1]
    world.pass_by("25s")
    assert [job.job_id for job in world.jobs("tick") if job.sort_key == GATHERING] == [second.job_id]

    world.ports.ledger.put_all([Put(second)])
    world.hints.send([ref_of(second)], second.due_at or 0, 0)
    world.settle()
    world.finish()
    world.settle()
    world.finish()
    world.settle()

    assert second.job_id in [run.run_id for run in world.runs("tick")]
    assert world.limit_state(LIMIT).active == 0


def test_a_final_refusal_after_an_unknown_answer_keeps_live_run(world: World) -> None:
    world.deploy(flights({"a": partitions(**at_most(1))}))
    world.targets.emr.lose_answers = 1
    world.upload(day(1))
    world.settle()
    world.targets.emr.answers = [Never("AccessDenied: the role is gone")]
    world.pass_by("5s")

    [run] = world.runs("a")
    assert (run.state, run.target_id) == ("STARTING", "00app/jr00001")
    assert world.limit_state(LIMIT).active == 1
    world.finish()
    assert [run.state for run in world.runs("a")] == ["SUCCEEDED"]


def test_a_run_now_written_again_after_its_run_is_dropped(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    plain = world.ports

    class SlowRuns:
        """Between a request's read of the history and its write, another machine carries out the same request."""

        def attempts(self, run_id: str) -> Any:
            found = plain.runs.attempts(run_id)
            actions.run_now(plain, full("a"), {}, "key")
            world.settle()
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(plain.runs, name)

    actions.run_now(replace(plain, runs=SlowRuns()), full("a"), {}, "key")
    world.settle()

    assert len(world.runs("a")) == 1
    assert world.jobs("a") == []


def test_serving_a_queue_leaves_a_tombstone_unchanged(world: World) -> None:
    world.deploy(flights({"a": partitions(**at_most(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    schedule_state, schedule = lookup.existing(world.ports, full("a"))
    _, plan = lifecycle.disable(schedule_state, schedule, world.clock.now(), "a Lambda that dies before it drains")
    assert world.ports.ledger.commit(plan) is None

    world.finish()
    queue.serve(world.ports, LIMIT)

    tombstone = world.ports.rows.get(Job, full("a"), schedule_state.generation, GATHERING)
    assert tombstone is not None
    assert tombstone.closed
    assert [record.kind for record in world.records("a")] == ["DROPPED"]
    limit = world.limit_state(LIMIT)
    assert (limit.active, limit.waiters) == (0, 0)


def test_c1_each_concurrency_constraint_asks_for_its_own_limit(world: World) -> None:
    constraints = [
        {"type": "concurrency", "max": 1, "on_unmet": "wait"},
        {"type": "concurrency", "max": 5, "on_unmet": "abort"},
    ]
    world.deploy(flights({"a": partitions(constraints=constraints)}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()

    assert world.records("a") == []
    assert [job.state for job in world.jobs("a")] == ["PENDING_LAUNCH"]
