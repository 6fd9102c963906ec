"""Failures that a test plays: runs that fail or time out, targets that are throttled, answers that are lost."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.errors import WrongUsage
from sluice.testing import ApiRefused, App
from tests.testing.test_apps import AT, EMR, FLIGHTS, MESSAGES, document, on


def clean(sluice_app: type[App], target: dict[str, Any] = EMR, **workflow: Any) -> App:
    return sluice_app(document(on(FLIGHTS), target, **workflow), at=AT)


def test_a_run_that_takes_too_long_times_out(sluice_app: type[App]) -> None:
    app = clean(sluice_app, timeout="1h", retries={"attempts": 2, "on": ["timed_out"]})
    app.partition("flights", day=1)
    app.advance("59m")
    assert app.run("join").state == "RUNNING"
    app.advance("3m")
    first, second = app.runs("join")
    assert (first.state, second.state) == ("RETRYING", "RUNNING")
    assert first.reason == "timed out: the run took longer than 1h and was cancelled"


def test_retries_follow_the_outcome_of_a_failure(sluice_app: type[App]) -> None:
    app = clean(sluice_app, retries={"attempts": 2, "on": ["lost"]})
    app.partition("flights", day=1)
    app.run("join").fail("out of memory")
    assert app.run("join").state == "FAILED"
    app.partition("flights", day=2)
    app.run("join", day=2).fail("the machine is gone", outcome="lost")
    assert app.run("join", day=2).state == "RETRYING"
    with pytest.raises(WrongUsage, match="expected one of failed, timed_out, lost, got 'oom'"):
        app.run("join", day=2).fail(outcome="oom")


def test_a_throttled_target_gets_the_run_later(sluice_app: type[App]) -> None:
    app = clean(sluice_app)
    app.answer_calls("join", "throttled", "throttled")
    app.partition("flights", day=1)
    run = app.run("join")
    assert run.state == "STARTING"
    assert run.reason.startswith("the target is throttled; waits for a permit of the EMR start rate")
    app.advance("10s")
    assert run.state == "RUNNING"


def test_a_lost_answer_starts_nothing_twice(sluice_app: type[App]) -> None:
    app = clean(sluice_app)
    app.answer_calls("join", "lost", "unreachable")
    app.partition("flights", day=1)
    assert app.run("join").state == "STARTING"
    app.advance("5m")
    run = app.run("join")
    assert (run.state, len(app.targets.played("emr_serverless").started)) == ("RUNNING", 1)
    run.succeed()
    assert run.state == "SUCCEEDED"


def test_a_refused_call_fails_the_run_without_a_retry(sluice_app: type[App]) -> None:
    app = clean(sluice_app, retries={"attempts": 3})
    app.answer_calls("join", "refused")
    app.partition("flights", day=1)
    run = app.run("join")
    assert (run.state, run.reason) == ("FAILED", "the target refused the call for good")


def test_a_delivery_is_tried_again_and_given_up(sluice_app: type[App]) -> None:
    app = clean(sluice_app, MESSAGES)
    app.answer_calls("join", "unreachable")
    app.partition("flights", day=1)
    app.advance("1m")
    assert app.run("join", day=1).state == "SUCCEEDED"
    app.answer_calls("join", *["unreachable"] * 3)
    app.partition("flights", day=2)
    app.advance("1m")
    assert app.run("join", day=2).state == "FAILED"


def test_calls_are_answered_for_schedules_that_make_them(sluice_app: type[App]) -> None:
    app = clean(sluice_app, {"type": "worker", "pool": "laptops"})
    with pytest.raises(WrongUsage, match=r"expected a schedule whose target Sluice calls, got demo.flights.join"):
        app.answer_calls("join", "lost")
    app = clean(sluice_app)
    with pytest.raises(WrongUsage, match="expected one of throttled, refused, unreachable, lost, got 'gone'"):
        app.answer_calls("join", "gone")
    with pytest.raises(ApiRefused, match="no schedule named 'demo.flights.jion'"):
        app.answer_calls("jion", "lost")


def test_a_backfill_shows_its_progress(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "time", "expression": "0 5 * * *"})), at=AT)
    past = app.backfill("join", start="2026-02-01T00:00:00Z", to="2026-02-06T00:00:00Z", concurrency=2)
    assert past.counts == {"waiting": 3, "running": 2, "succeeded": 0, "failed": 0, "cancelled": 0}
    first, second = past.runs
    first.succeed()
    second.fail("out of memory")
    assert (past.state, past.counts["running"], past.counts["failed"]) == ("RUNNING", 2, 1)
    past.cancel(runs=True)
    assert (past.state, past.counts) == (
        "CANCELLED",
        {"waiting": 0, "running": 0, "succeeded": 1, "failed": 1, "cancelled": 3},
    )
    app.run_now("join")
    assert len(app.runs("join")) == len(past.runs) + 1
