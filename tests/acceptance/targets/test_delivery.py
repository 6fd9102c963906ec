"""Deliveries: retried by the policy, then a dead letter with the reason, redriven under the same id (E6, E7)."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.targets.answers import Answer, NotNow
from chalicelib.flow.system import dispatch
from tests.acceptance.undelivered import DOWN, NEVER, app, letters, undelivered
from tests.acceptance.words import day, partition, rate, reasons, states, time, why, window
from tests.support.world import World, full

# -- delivered -----------------------------------------------------------------------------------------------------


def test_e7_a_delivery_is_in_the_history(world: World) -> None:
    """The "done queue": each delivery is a run, found by schedule, workflow and day, with its instants."""
    world.deploy(app(trigger=time("@every 20s")))
    world.pass_by("1m")

    sent = [run_id for run_id, _ in world.targets.queue.messages]
    history = world.runs("tick")
    assert [run.run_id for run in history] == sent
    assert states(world, "tick") == ["SUCCEEDED"] * 3
    assert [run.target_id for run in history] == ["m1", "m2", "m3"]
    assert all(run.ended_at is not None and run.due_at == run.nominal_at for run in history)
    for scope, name in (("workflow", "demo.flights.notify"), ("day", "demo#2026-03-02")):
        assert {run.run_id for run in world.ports.runs.runs(scope, name, 10, None).items} == set(sent)
    assert world.jobs("tick") == [job for job in world.jobs("tick") if (job.due_at or 0) > world.clock.now()]


# -- tried again -----------------------------------------------------------------------------------------------------


def test_e6_the_default_is_three_tries_then_a_dead_letter(world: World) -> None:
    letter = undelivered(world, DOWN, DOWN, DOWN)

    [run] = world.runs("tick")
    assert (run.state, run.calls) == ("FAILED", 3)
    assert run.reason.text == "not delivered in 3 tries; last answer: the server is down"
    assert (letter.run_id, letter.attempt, letter.schedule) == (run.run_id, 1, full("tick"))
    assert (letter.target, letter.tries, letter.reason.text, letter.size) == ("sqs", 3, run.reason.text, 2)
    first = run.nominal_at or 0
    assert (letter.nominal_at, letter.first_try_at, letter.failed_at) == (first, first, first + 2 * SECOND)
    assert world.jobs("tick") == []


def test_e6_a_target_back_in_time_gets_event_once_under_its_id(world: World) -> None:
    world.deploy(app())
    world.targets.queue.answers = [DOWN, DOWN]
    world.pass_by("2m")

    assert len({run_id for run_id, _, _ in world.targets.queue.tried}) == 1
    [run] = world.runs("tick")
    assert (run.state, run.calls) == ("SUCCEEDED", 3)
    assert (run.ended_at or 0) - (run.start_requested_at or 0) == 2 * SECOND
    assert letters(world) == []


def test_e6_deliveries_back_off_as_configured_past_an_outage(world: World) -> None:
    world.deploy(app(tries=2, delay="500ms", backoff={"tries": 4, "growth": "fixed", "delay": "5m"}))
    world.targets.queue.answers = [DOWN] * 4
    world.pass_by("20m")

    [run] = world.runs("tick")
    assert (run.state, run.calls) == ("SUCCEEDED", 5)
    assert (run.ended_at or 0) - (run.start_requested_at or 0) > 7 * MINUTE


def test_e6_a_delivery_being_tried_ignores_timeout_and_aborts(world: World) -> None:
    night = window("11:00", "12:02", on_unmet="abort")
    document = app(night, tries=1, backoff={"tries": 3, "growth": "fixed", "delay": "5m"})
    document["schedules"]["tick"]["timeout"] = {"after": "1m"}
    world.deploy(document)
    world.targets.queue.answers = [DOWN]
    world.pass_by("10m")
    [job] = world.jobs("tick")
    assert "between 11:00 and 12:02" in job.reason.text, "it waits for the window, as a retry does"
    world.clock.wait_until((job.wake_at or 0) - MINUTE)
    world.pass_by("2m")
    assert (states(world, "tick"), reasons(world, "tick")) == (["SUCCEEDED"], [])


def test_e6_a_delivery_waiting_for_its_next_try_says_so(world: World) -> None:
    world.deploy(app(tries=1, backoff={"delay": "10m"}))
    world.targets.queue.answers = [DOWN]
    world.pass_by("2m")
    [job] = world.jobs("tick")
    assert job.reason.text.startswith("try 1 of 6 failed, next try in ")
    assert (job.tries, job.first_try_at) == (1, job.due_at)
    assert why(world, "tick")["why"] == job.reason.text


def test_e6_a_repeated_hint_or_a_resume_advances_no_try(world: World) -> None:
    world.deploy(app(tries=1, backoff={"delay": "10m"}))
    world.targets.queue.answers = [DOWN]
    world.pass_by("2m")
    [job] = world.jobs("tick")
    for _ in range(3):
        dispatch.dispatch(world.ports, ref_of(job))
    world.pause("tick")
    world.resume("tick")
    world.settle()
    [same] = world.jobs("tick")
    assert (len(world.targets.queue.tried), same.sort_key, same.wake_at) == (1, job.sort_key, job.retry_at)
    world.pass_by("10m")
    assert states(world, "tick") == ["SUCCEEDED"]


@pytest.mark.parametrize("answers", [[NEVER], [DOWN, NEVER]])
def test_e6_a_final_refusal_ends_a_delivery_at_once(world: World, answers: list[Answer]) -> None:
    letter = undelivered(world, *answers)
    assert (letter.reason.text, letter.tries) == ("no such queue", len(answers))


def test_e6_a_burst_at_the_account_limits_is_late_and_not_lost(world: World) -> None:
    world.deploy(app())
    world.targets.queue.answers = [NotNow("throttled")] * 8
    world.pass_by("10m")
    assert (states(world, "tick"), letters(world)) == (["SUCCEEDED"], [])


def test_e6_a_retry_after_answer_sets_the_next_try(world: World) -> None:
    world.deploy(app())
    world.targets.queue.answers = [NotNow("HTTP 429", 90 * SECOND)]
    world.pass_by("4m")
    [run] = world.runs("tick")
    assert (run.ended_at or 0) - (run.start_requested_at or 0) == 90 * SECOND


def test_e6_the_retry_policy_holds_for_a_counted_delivery_too(world: World) -> None:
    world.deploy(app(rate(5, "hour"), trigger=partition(), tries=2))
    world.targets.queue.answers = [DOWN, DOWN]
    world.upload(day(1))
    world.settle()
    world.pass_by("1m")

    [run] = world.runs("tick")
    [letter] = letters(world)
    assert (run.state, run.calls) == ("FAILED", 2)
    assert letter.reason.text == run.reason.text == "not delivered in 2 tries; last answer: the server is down"
    assert letter.failed_at - (letter.first_try_at or 0) == SECOND
