"""Closings and repeated deliveries that the count of closings must not hide (C13).

A batch that was leased before its instant looks at the count of closings instead of its rows. Each test here has a
change that only a closer look shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.limits import names
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.definitions import store
from chalicelib.flow.deliveries.prepare import prepare
from chalicelib.flow.deliveries.send import lease, send
from chalicelib.flow.jobs.actions import refuse
from chalicelib.flow.schedules import actions, messages
from chalicelib.flow.system.dispatch import dispatch_together
from tests.faults.dying import SMALL
from tests.support import events
from tests.support.deliveries_crossed import (
    SUB_BATCHES,
    Interfering,
    deploy,
    due,
    fires,
    ids,
    many,
    once,
    spread,
)
from tests.support.schedules import at
from tests.support.world import SQS, World, full

BOSS = "arn:aws:iam::123456789012:role/boss"
ONE_SHOT = {
    "workflow": "notify",
    "trigger": {"type": "time", "due_time": "2026-03-02T12:01:00Z"},
    "spread": {"count": 200},
}


def _world(schedules: dict[str, Any]) -> World:
    world = World(**SMALL)
    deploy(world, schedules)
    return world


def test_c13_a_put_over_a_completed_schedule_is_a_closing() -> None:
    """Its last fire is prepared, so the schedule is completed. The put keeps that mode, and closes the generation."""
    world = _world({"daily": {**ONE_SHOT, "enabled": True}})
    refs, instant = fires(world), due(world)
    state = world.ports.rows.get(ScheduleState, full("daily"))
    assert state is not None
    assert state.mode == "completed"
    Interfering(
        world, after=once(lambda: world.put("daily", {**ONE_SHOT, "properties": {"new": True}, "on_update": "drop"}))
    )

    dispatch_together(world.ports, refs, instant)

    assert len(ids(world)) == SUB_BATCHES["sqs"]


def test_c16_a_refused_job_is_not_sent_by_a_batch_from_before() -> None:
    """The batch was prepared before its workflow asked for an approval."""
    world = _world(many(120))
    refs, instant = fires(world), due(world)
    refused: list[str] = []

    def refuse_all() -> None:
        row = world.ports.rows.get(Definition, "workflow", "demo.flights.notify")
        assert row is not None
        document = {name: part for name, part in row.document.items() if part is not None}
        document["approval"] = {"type": "approval", "role": "boss"}
        store.put(world.ports, "workflow", "demo.flights.notify", document, "tester")
        waiting = [job for number in range(120) for job in world.jobs(f"s{number:03d}")]
        refused.extend(job.job_id for job in waiting if job.job_id not in ids(world))
        for job_id in refused:
            refuse(world.ports, job_id, BOSS)

    Interfering(world, after=once(refuse_all))
    dispatch_together(world.ports, refs, instant)

    assert len(refused) == 110
    assert len(ids(world)) == SUB_BATCHES["sqs"], "the sub-batch of that call was on its way"


@pytest.mark.parametrize("lately", [False, True])
@pytest.mark.parametrize("workflow", ["demo.flights.notify", "lake.core.notify"])
def test_c5_a_rate_put_during_a_burst_counts_the_starts_after_it(workflow: str, lately: bool) -> None:
    """Another schedule of the workflow names a rate. ``lately``: the batch has no count to rely on."""
    world = World(**SMALL)
    world.deploy({"workflows": {"notify": {"target": SQS}}}, "lake", "core")
    world.grant("lake", {"grants": [{"to": "demo", "run": ["*"]}]})
    deploy(world, {"daily": spread(80) | {"workflow": workflow}})
    refs, instant = fires(world), due(world)
    if lately:
        world.clock.pass_by("30s")
        world.ports.ledger.count_closing("demo")
    rated = NewSchedule.model_validate(
        at("0 9 * * *", workflow, constraints=[{"type": "rate", "max": 3, "per": "hour"}])
    )
    owner = f"{workflow.rpartition('.')[0]}.rated"
    Interfering(world, after=once(lambda: actions.put(world.ports, owner, rated, "ada")))

    assert dispatch_together(world.ports, refs, instant) == []
    world.settle()

    window = world.ports.jobs.limit_state(names.rate_limit(workflow, names.rate_rule(3, HOUR)))
    assert len(ids(world)) == len(set(ids(world))) == 80
    assert len(window.starts) == 2 * 3, "of the last starts, the window remembers twice its limit"
    uncounted = [event for run in world.runs("daily") if not run.number for event in events.of_run(run)]
    assert len(uncounted) == SUB_BATCHES["sqs"], "the sub-batch of that call was on its way"


@pytest.mark.parametrize("time_left", [None, 40 * SECOND])
def test_a_batch_that_another_sent_meanwhile_is_not_sent_again(time_left: int | None) -> None:
    """Two invocations have the same overdue jobs. One reads them; then the other sends them, or as many as it has time
    for, and its lease ends; then the first takes its lease."""
    world = _world({"daily": spread(200)})
    refs, instant = fires(world), due(world)
    world.clock.wait_until(instant)
    late = prepare(world.ports, refs, instant)
    ports = world.ports
    if time_left is not None:
        Interfering(world, takes="1s")
        ports = replace(world.ports, ends_at=instant + time_left)
    assert dispatch_together(ports, refs, instant) == []
    first = len(ids(world))
    assert first == 200 if time_left is None else 0 < first < 200
    world.clock.pass_by("60s")

    send(world.ports, lease(world.ports, late.ready, instant, late.counts))

    assert len(ids(world)) == len(set(ids(world)))


def test_a_message_that_is_registered_again_is_not_counted() -> None:
    world = _world({"daily": spread(2)})
    message = Message.model_validate({"workflow": "notify", "due_time": "2026-03-02T15:00:00Z"})

    def count() -> int:
        row = world.ports.jobs.closings({"demo"})["demo"]
        return row.closings if row is not None else 0

    counts = [count()]
    messages.put(world.ports, "demo.flights", "ping", message, "ada")
    counts.append(count())
    messages.delete(world.ports, "demo.flights", "ping", "ada")
    counts.append(count())
    messages.put(world.ports, "demo.flights", "ping", message, "ada")
    counts.append(count())
    assert counts == [0, 0, 1, 1]
