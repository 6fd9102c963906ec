"""Skip one occurrence, undo the skip, and pause a schedule whose runs keep failing (L19)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.flow import lookup
from chalicelib.flow.schedules import pauses
from tests.acceptance.words import all_of, day, doze, kinds, on, partition, reasons, states, time, why_schedule
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import World, flights, full


def test_l19_one_occurrence_is_skipped_on_record_and_others_run(world: World) -> None:
    world.deploy(flights({"tick": at("*/10 * * * *", "notify")}))
    _skip(world, NOON + 20 * MINUTE)
    for _ in range(3):
        doze(world, "10m")

    assert [run.nominal_at for run in world.runs("tick")] == [NOON + 10 * MINUTE, NOON + 30 * MINUTE]
    assert reasons(world, "tick") == ["SKIPPED: the occurrence of 2026-03-02T12:20:00.000Z was skipped on request"]


def test_l19_a_skip_that_is_undone_lets_the_occurrence_run(world: World) -> None:
    world.deploy(flights({"tick": at("*/10 * * * *", "notify")}))
    _skip(world, NOON + 10 * MINUTE)
    schedule_state, schedule = lookup.existing(world.ports, full("tick"))
    assert views.schedule_view(schedule_state, schedule)["skips"] == ["2026-03-02T12:10:00.000Z"]
    pauses.skip(world.ports, full("tick"), NOON + 10 * MINUTE, "tester", wanted=False)
    doze(world, "11m")

    assert len(world.runs("tick")) == 1
    assert world.records("tick") == []


def test_l19_a_skip_still_holds_for_an_already_prepared_fire(world: World) -> None:
    world.deploy(flights({"tick": at("*/10 * * * *", "notify")}))
    doze(world, "9m30s")
    assert [job.kind for job in world.jobs("tick")] == ["fire"]
    _skip(world, NOON + 10 * MINUTE)
    world.pass_by("1m")

    assert world.runs("tick") == []
    assert kinds(world, "tick") == ["SKIPPED"]


def test_l19_a_skipped_time_counts_in_no_combined_trigger(world: World) -> None:
    world.deploy(flights({"tick": on(all_of(time("*/10 * * * *"), partition()))}))
    world.upload(day(1))
    _skip(world, NOON + 10 * MINUTE)
    doze(world, "11m")
    assert (world.runs("tick"), kinds(world, "tick")) == ([], ["SKIPPED"])
    doze(world, "9m")
    assert len(world.runs("tick")) == 1


def test_l19_only_an_upcoming_occurrence_can_be_skipped(world: World) -> None:
    world.deploy(flights({"tick": at("*/10 * * * *", "notify"), "daily": partitions()}))
    with pytest.raises(SluiceError, match="an upcoming fire of this schedule") as refused:
        _skip(world, NOON + 7 * MINUTE)
    assert "the next ones are 2026-03-02T12:10:00.000Z" in str(refused.value.hint)
    with pytest.raises(SluiceError) as refused:
        pauses.skip(world.ports, full("daily"), NOON + 10 * MINUTE, "tester")
    assert refused.value.hint == "it has no time trigger"


def test_l19_a_schedule_with_failing_runs_is_held_with_reason(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), pause_after_failures=2)}))
    _runs(world, 1, "FAILED")
    _runs(world, 2, "SUCCESS")
    _runs(world, 3, "FAILED")
    assert why_schedule(world, "daily")["state"] == "enabled"
    _runs(world, 4, "FAILED")

    answer = why_schedule(world, "daily")
    assert answer["state"] == "hold"
    assert "2 runs failed in a row; the last one was" in answer["why"]
    world.upload(day(5))
    world.pass_by("2m")
    assert states(world, "daily") == ["FAILED", "SUCCEEDED", "FAILED", "FAILED"]


def test_l19_a_resume_resets_failures_and_runs_what_was_held(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), pause_after_failures=2)}))
    for number in (1, 2):
        _runs(world, number, "FAILED")
    world.clock.pass_by("1s")
    world.upload(day(3))
    world.settle()

    world.resume("daily")
    world.settle()
    assert states(world, "daily") == ["FAILED", "FAILED", "STARTING"]
    world.finish("FAILED")
    world.settle()
    assert why_schedule(world, "daily")["state"] == "enabled"
    _runs(world, 4, "FAILED")
    assert why_schedule(world, "daily")["state"] == "hold"


def test_l19_only_the_last_attempt_of_a_run_counts_as_a_failure(world: World) -> None:
    retried = {"target": {"type": "emr_serverless", "entry_point": "s3://code/a.py"}, "retries": {"attempts": 2}}
    world.deploy(flights({"daily": on(partition(), "fragile", pause_after_failures=1)}, fragile=retried))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.settle()
    assert why_schedule(world, "daily")["state"] == "enabled"
    world.pass_by("1m")
    world.finish("FAILED")
    world.settle()
    assert why_schedule(world, "daily")["state"] == "hold"


def test_l19_a_held_timer_keeps_one_fire_for_its_resume(world: World) -> None:
    world.deploy(flights({"tick": on(time("@every 1m"), pause_after_failures=1)}))
    world.pass_by("1m")
    world.finish("FAILED")
    world.pass_by("2m")
    assert len(world.runs("tick")) == 1
    world.resume("tick")
    world.settle()
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + MINUTE, NOON + 2 * MINUTE]


def _skip(world: World, at_instant: int) -> None:
    pauses.skip(world.ports, full("tick"), at_instant, "tester")


def _runs(world: World, number: int, state: str) -> None:
    world.clock.pass_by("1s")
    world.upload(day(number))
    world.settle()
    world.finish(state)
    world.settle()
