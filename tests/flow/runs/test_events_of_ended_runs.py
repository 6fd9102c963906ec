"""The events of a run are those that it got at its claim, however late they are read (H1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.tables import items
from chalicelib.core.backfills.request import Backfill
from chalicelib.core.rows.event import AppliedEvent
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Never
from chalicelib.core.writes import Delete
from chalicelib.flow.backfills import backfill
from chalicelib.flow.repair.repair import Repair
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.runs import context, dead_letters
from chalicelib.flow.schedules import actions
from tests.support.answers import lineage, views
from tests.support.archives import copies_of
from tests.support.world import World, full

DAY = {"event_day": "2026-03-01"}
ORDERS = "s3://lake-bucket/orders-v2/event_day=2026-03-01/"
RATES = "s3://lake-bucket/fx_rates/event_day=2026-03-01/"
EMR = {"type": "emr_serverless", "entry_point": "s3://code/work.py"}
SQS = {"type": "sqs", "queue_url": "https://sqs.us-east-1.amazonaws.com/000000000000/work"}


def joined(world: World, target: dict[str, Any] = EMR, **extra: Any) -> None:
    """A join of two datasets, of which only the first has data for the day."""
    prefixes = {"orders": "orders-v2/", "rates": "fx_rates/"}
    leaves = [{"type": "partition", "dataset": name} for name in prefixes]
    app: dict[str, Any] = {
        "namespace": "demo",
        "app": "flights",
        "datasets": {
            name: {"bucket": "lake-bucket", "prefix": prefix, "keys": ["event_day"]}
            for name, prefix in prefixes.items()
        },
        "workflows": {"work": {"target": target, **extra.pop("workflow", {})}},
        **extra.pop("app", {}),
    }
    world.deploy(app)
    world.upload("orders-v2/event_day=2026-03-01/part-0.parquet")
    world.settle()
    schedule = {"workflow": "work", "enabled": True, "by": ["event_day"], **extra}
    world.deploy({**app, "schedules": {"clean": {**schedule, "trigger": {"type": "all", "triggers": leaves}}}})


def backfilled(world: World) -> Run:
    asked = {"partitions": {"dataset": "orders", "values": [DAY]}}
    backfill.begin(world.ports, full("clean"), Backfill.model_validate(asked), "tester", "r1")
    world.settle()
    return world.runs("clean")[-1]


def rates_come(world: World) -> None:
    world.clock.pass_by("1d")
    world.upload("fx_rates/event_day=2026-03-01/part-0.parquet")
    world.settle()


def paths(world: World, run: Run) -> list[str | None]:
    return [event.get("path") for event in views.events_view(world.ports, run)]


def test_h1_an_ended_backfilled_run_keeps_the_events_it_got(world: World) -> None:
    joined(world)
    run = backfilled(world)
    world.finish()
    before = lineage.lineage(world.ports, run.run_id, 1, 0)["nodes"]

    rates_come(world)

    ended = world.ports.runs.attempts(run.run_id)[-1]
    assert paths(world, ended) == [ORDERS]
    assert context.build(world.ports, ended) == world.context(ended)
    assert lineage.lineage(world.ports, run.run_id, 1, 0)["nodes"] == before


def test_h1_a_run_now_keeps_the_events_that_it_got(world: World) -> None:
    joined(world)
    actions.run_now(world.ports, full("clean"), {}, "r1", partition=DAY)
    world.settle()
    [run] = world.runs("clean")
    world.finish()

    rates_come(world)

    assert paths(world, run) == [None, ORDERS]


def test_r1_the_next_attempt_gets_the_events_of_the_first(world: World) -> None:
    joined(world, workflow={"retries": {"attempts": 2, "delay": "2d"}})
    run = backfilled(world)
    world.finish("FAILED")
    rates_come(world)
    world.pass_by("2d")

    _, second = world.ports.runs.attempts(run.run_id)

    assert [event.get("path") for event in world.context(second)["events"]] == [ORDERS]
    assert paths(world, second) == [ORDERS]


def test_w15_a_rerun_without_its_context_gets_the_same_events(world: World) -> None:
    joined(world)
    run = backfilled(world)
    world.finish("FAILED")
    rates_come(world)
    del world.payloads.contexts[run.run_id]

    again = run_actions.rerun(world.ports, run.run_id, "k")
    world.settle()

    [repeated] = world.ports.runs.attempts(again)
    assert [event.get("path") for event in world.context(repeated)["events"]] == [ORDERS]
    assert paths(world, repeated) == [ORDERS]


@pytest.mark.parametrize("policy", [False, True])
def test_e6_a_delivery_and_its_redrive_carry_the_same_events(world: World, policy: bool) -> None:
    """Whether the job is claimed, or waits in the queue of a policy and is delivered without a claim."""
    paced = {"policy": "slow"} if policy else {}
    policies = {"policies": {"slow": {"max_events": 10, "interval": "1m"}}} if policy else {}
    joined(world, SQS, app=policies, **paced)
    world.targets.queue.answers.append(Never("no such queue"))
    backfilled(world)
    world.pass_by("1m")
    [failed] = world.runs("clean")
    assert failed.state == "FAILED"
    rates_come(world)

    dead_letters.redrive(world.ports, "demo", failed.run_id)
    world.pass_by("1m")

    for run in world.ports.runs.attempts(failed.run_id):
        assert paths(world, run) == [ORDERS]
    _, sent = world.targets.queue.messages[-1]
    assert [event.get("path") for event in sent["events"]] == [ORDERS]


def test_h1_named_events_never_make_the_row_of_a_run_too_large(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MAX_NAMED", 1)
    joined(world)
    rates_come(world)
    run = backfilled(world)
    assert run.named is None
    assert [event.get("path") for event in world.context(run)["events"]] == [ORDERS, RATES]


def test_a_run_of_earlier_code_gets_its_named_data_as_it_is_now(world: World) -> None:
    joined(world)
    run = backfilled(world)
    rates_come(world)
    stored = items.to_item(replace(run, named=None), 1, 1)
    assert "named" not in stored
    assert paths(world, items.from_item(Run, stored)) == [ORDERS, RATES]


@pytest.mark.parametrize("inline", [1000, 1])
def test_h1_a_gathered_run_shows_events_whose_rows_expired(inline: int) -> None:
    """Also if they are in a manifest."""
    world = World(inline_events=inline)
    joined(world)
    world.upload("fx_rates/event_day=2026-03-01/part-0.parquet")
    world.upload("orders-v2/event_day=2026-03-02/part-0.parquet")
    world.upload("fx_rates/event_day=2026-03-02/part-0.parquet")
    world.settle()
    [run] = world.runs("clean")
    world.finish()
    before = views.events_view(world.ports, run)
    assert len(before) == 2
    world.clock.pass_by("50d")
    for event in world.ports.jobs.events_of(run.run_id, run.schedule, run.generation):
        world.ports.ledger.commit([Delete(AppliedEvent(run.schedule, run.generation, event, run.run_id))])

    assert views.events_view(world.ports, run) == before


def test_a_run_that_a_repair_adopts_keeps_the_events_that_it_got(world: World) -> None:
    joined(world)
    before, since = world.tables.saved(), world.clock.now()
    run = backfilled(world)
    world.finish()
    rates_come(world)
    restored = world.tables.saved()
    world.tables.restore({**restored, "RunsTable": before["RunsTable"]})

    Repair(world.ports, copies_of(world), since, world.targets.emr.started_since(since)).run()

    [adopted] = world.ports.runs.attempts(run.run_id)
    assert paths(world, adopted) == [ORDERS]
