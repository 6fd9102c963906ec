"""One line of the log for each decision: the schedule, job and run, the decision, and the text of `why` (O2). A check
that changes nothing writes no line, so many waiting jobs do not fill the log.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from chalicelib.flow.system.dispatch import dispatch_together
from tests.acceptance.words import doze, why
from tests.support.deliveries_crossed import EACH, deploy, due, fires, spread
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights

FIELDS = ("schedule", "job", "run", "attempt", "outcome", "why", "state", "runs", "size", "late_ms")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="sluice")
    return caplog


def reported(lines: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    found = [record for record in lines.records if record.message == message]
    return [{name: vars(record)[name] for name in FIELDS if name in vars(record)} for record in found]


def test_o2_a_run_can_be_followed_through_the_log_by_its_id(world: World, lines: pytest.LogCaptureFixture) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()

    [run] = world.runs("daily")
    ids = {"schedule": "demo.flights.daily", "attempt": 1}
    assert reported(lines, "checked") == [
        {**ids, "job": run.run_id, "run": run.run_id, "outcome": "launched", "why": run.fired_by.text}
    ]
    assert reported(lines, "start requested") == [{**ids, "run": run.run_id, "why": run.fired_by.text, "late_ms": 0}]
    moved = [{**ids, "run": run.run_id, "state": state, "why": ""} for state in ("RUNNING", "SUCCEEDED")]
    assert reported(lines, "run moved") == moved


def test_o2_a_waiting_job_is_logged_once_with_the_text_of_why(world: World, lines: pytest.LogCaptureFixture) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [job] = world.jobs("daily")
    [queued] = reported(lines, "checked")[1:]
    assert (queued["schedule"], queued["job"], queued["outcome"]) == (job.schedule, job.job_id, "queued")
    assert why(world, "daily")["why"].startswith(queued["why"]), "by now one waits there"
    assert "run" not in queued

    doze(world, "10m")

    assert len(reported(lines, "checked")) == 2, "ten ticks checked the head of that queue, and changed nothing"


def test_o2_a_thousand_waiting_jobs_are_a_thousand_log_records(world: World, lines: pytest.LogCaptureFixture) -> None:
    world.deploy(flights({"tick": at("@every 10s", "clean", coalesce=False, **at_most(1))}))
    world.pass_by("5m")
    said = reported(lines, "checked")
    assert len(world.jobs("tick")) >= 25
    assert len(said) == len({line["job"] for line in said})


def test_o2_a_sub_batch_is_one_log_record_with_its_run_ids(lines: pytest.LogCaptureFixture) -> None:
    world = World()
    deploy(world, {"daily": spread(30)}, delivery=EACH)
    dispatch_together(world.ports, fires(world), due(world))

    sent = reported(lines, "sent")
    assert [(line["size"], line["late_ms"]) for line in sent] == [(10, 0)] * 3
    assert {run for line in sent for run in line["runs"]} == {run.run_id for run in world.runs("daily")}
    assert reported(lines, "checked") == []
