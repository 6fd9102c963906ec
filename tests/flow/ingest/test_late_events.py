"""An event that is accepted after the timeout of the waiting job counts for the next job, even without a check at the
timeout (C10).

No hint arrives and no tick comes between the timeout and the event.
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import MINUTE
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs.check import check_job
from tests.acceptance.words import concurrency, days, delay, on, partition, reasons
from tests.support.clock import NOON
from tests.support.schedules import at, at_most, partitions
from tests.support.world import EMR, World, day, flights

AN_HOUR = {"after": "1h", "then": "abort"}
ANYWAY = {"after": "1h", "then": "run"}
LIMIT = "workflow:demo.flights.clean"


@pytest.fixture
def world() -> World:
    return World()


def unseen(world: World, span: str) -> None:
    """Time passes, and every hint of that time is lost."""
    world.clock.pass_by(span)
    world.hints.sent.clear()


def test_c10_an_event_after_the_timeout_begins_the_next_job(world: World) -> None:
    world.deploy(flights({"pairs": partitions(2, timeout=AN_HOUR)}))
    world.upload(day(1))
    unseen(world, "1h")

    world.upload(day(2))
    world.settle()
    [waiting] = world.jobs("pairs")
    assert [progress.count for progress in waiting.leaves.values()] == [1]
    assert reasons(world, "pairs") == [
        "ABORTED: not launched within its timeout of 1h: waits for 1 partition of demo.flights"
        " (1 partition of demo.flights came at 2026-03-02T12:00:00.000Z)"
    ]

    world.upload(day(3))
    world.settle()
    assert [days(world, run) for run in world.runs("pairs")] == [["2", "3"]]


def test_c10_an_event_before_the_timeout_still_joins(world: World) -> None:
    world.deploy(flights({"pairs": partitions(2, timeout=AN_HOUR)}))
    world.upload(day(1))
    unseen(world, "59m59s")
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("pairs")] == [["1", "2"]]


def test_c10_job_run_anyway_after_its_timeout_has_its_own_events(world: World) -> None:
    world.deploy(flights({"pairs": partitions(2, timeout=ANYWAY)}))
    world.upload(day(1))
    unseen(world, "61m")

    for number in (2, 3):
        world.upload(day(number))
        world.settle()
    runs = world.runs("pairs")
    assert [days(world, run) for run in runs] == [["1"], ["2", "3"]]
    assert "run in spite of its timeout" in runs[0].fired_by.text


def test_c10_of_two_correlated_jobs_the_timed_out_is_detached(world: World) -> None:
    by_month = partitions(2, timeout=AN_HOUR, by=["month"])
    world.deploy(flights({"pairs": by_month}))
    world.upload("raw/flights/year=2013/month=1/day=1/_SUCCESS")
    world.clock.pass_by("30m")
    world.upload("raw/flights/year=2013/month=2/day=1/_SUCCESS")
    unseen(world, "31m")

    for month in (1, 2):
        world.upload(f"raw/flights/year=2013/month={month}/day=2/_SUCCESS")
        world.settle()
    [run] = world.runs("pairs")
    assert run.correlation == {"month": "2"}
    [waiting] = world.jobs("pairs")
    assert waiting.correlation == {"month": "1"}
    assert [record.kind for record in world.records("pairs")] == ["ABORTED"]


def test_l4_a_timeout_stopped_in_a_pause_is_not_over(world: World) -> None:
    world.deploy(flights({"pairs": partitions(2, timeout=AN_HOUR)}))
    world.upload(day(1))
    world.clock.pass_by("30m")
    world.pause("pairs", stop_timeouts=True)
    world.clock.pass_by("5h")
    world.resume("pairs")
    unseen(world, "29m")

    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("pairs")] == [["1", "2"]]


def test_c10_a_job_without_a_timeout_takes_events_for_ever(world: World) -> None:
    world.deploy(flights({"pairs": partitions(2, timeout="never")}))
    world.upload(day(1))
    unseen(world, "40d")
    world.upload(day(2))
    world.settle()
    assert [days(world, run) for run in world.runs("pairs")] == [["1", "2"]]


@pytest.mark.parametrize("timeout", [AN_HOUR, ANYWAY])
def test_c10_a_job_queued_past_its_timeout_takes_no_event(world: World, timeout: dict[str, Any]) -> None:
    world.deploy(flights({"daily": partitions(timeout=timeout, **at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    unseen(world, "61m")

    world.upload(day(3))
    world.settle()
    states = sorted(job.state for job in world.jobs("daily"))
    assert states == (["PENDING_LAUNCH"] if timeout is AN_HOUR else ["PENDING_LAUNCH", "PENDING_LAUNCH"])
    assert world.limit_state(LIMIT).waiters == len(states)
    for _ in range(3):
        world.clock.pass_by("1s")
        world.finish()
        world.settle()
    answer = [days(world, run) for run in world.runs("daily")]
    assert answer == ([["1"], ["3"]] if timeout is AN_HOUR else [["1"], ["2"], ["3"]])
    assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (0, 0)


def test_c10_a_job_past_its_timeout_at_constraint_takes_no_event(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", delay("2h"), timeout=AN_HOUR)}))
    world.upload(day(1))
    world.settle()
    unseen(world, "61m")
    world.upload(day(2))
    world.settle()

    assert [record.kind for record in world.records("daily")] == ["ABORTED"]
    [waiting] = world.jobs("daily")
    assert waiting.created_at == NOON + 61 * MINUTE


def test_w9_an_abort_caused_by_an_event_sends_a_notice(world: World) -> None:
    tell = [{"on": ["aborted"], "to": {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}}]
    world.deploy(flights({"pairs": partitions(2, timeout=AN_HOUR, notify=tell)}))
    world.upload(day(1))
    unseen(world, "61m")
    world.upload(day(2))
    world.settle()
    world.pass_by("2s")
    assert len(world.targets.queue.messages) == 1


def test_c11_a_fire_after_the_timeout_of_waiting_one_is_separate(world: World) -> None:
    hourly = at("0 * * * *", "clean", constraints=[concurrency(1)], timeout={"after": "90m", "then": "abort"})
    world.deploy(flights({"hourly": hourly}, clean={"target": EMR, "timeout": "never"}))
    world.pass_by("1h")  # 13:00 runs
    world.pass_by("1h")  # 14:00 waits, until 15:30 at the latest
    [second] = world.jobs("hourly")[-1:]
    world.pass_by("1h")  # 15:00 joins it
    assert [record.kind for record in world.records("hourly")] == ["COALESCED"]

    world.tick()
    world.clock.pass_by("59m")
    world.hints.sent.clear()  # no check at 15:30
    emit.emit_due(world.ports)
    world.hints.sent.clear()
    world.clock.pass_by("1m")
    fire = next(job for job in world.jobs("hourly") if job.sort_key.startswith("FIRE#"))
    check_job(world.ports, (fire.schedule, fire.generation, fire.sort_key))
    world.settle()

    assert [record.kind for record in world.records("hourly")] == ["COALESCED", "ABORTED"]
    [waiting] = [job for job in world.jobs("hourly") if not job.sort_key.startswith("FIRE#")]
    assert (waiting.job_id, waiting.nominal_at or waiting.due_at) == (fire.job_id, fire.due_at)
    assert waiting.job_id != second.job_id
    assert world.limit_state(LIMIT).waiters == 1
