"""The metrics of Sluice itself (O2), in a world whose clock the test moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.runs import metrics
from chalicelib.core.system.sweep import PARKED_AFTER
from chalicelib.core.targets.answers import Never, NotNow
from chalicelib.core.writes import Create, Replace
from chalicelib.flow.schedules import actions
from chalicelib.flow.system.dispatch import dispatch_together
from tests.acceptance.words import delay, doze, fresh, on, partition
from tests.acceptance.words import rate as rate_of
from tests.support import rows
from tests.support.deliveries_crossed import Interfering, deploy, due, fires, spread
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights


def test_o2_fire_sent_three_seconds_late_is_measured_as_3000_ms(world: World) -> None:
    world.deploy(flights({"tick": at("@every 1h", "notify")}))
    world.pass_by("59m")
    world.clock.wait_until(world.clock.now() + MINUTE + 3 * SECOND)
    world.settle()

    assert len(world.runs("tick")) == 1
    assert world.metrics.of(metrics.FIRE_LATENESS) == [3_000]


def test_o2_each_sub_batch_of_a_batch_is_measured_by_its_sending() -> None:
    world = World()
    deploy(world, {"daily": spread(30)})
    refs, instant = fires(world), due(world)
    Interfering(world, takes="3s")

    dispatch_together(world.ports, refs, instant)

    assert sorted(world.metrics.of(metrics.FIRE_LATENESS)) == [0] * 10 + [3_000] * 10 + [6_000] * 10


def test_o2_a_start_is_measured_once_from_its_event(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.clock.wait_until(world.clock.now() + 2 * SECOND)
    world.targets.emr.answers = [NotNow("too many")]
    world.settle()
    world.pass_by("5m")

    assert len(world.targets.emr.calls) == 2
    assert world.metrics.of(metrics.EVENT_TO_START) == [2_000]


def test_o2_a_delay_by_a_limit_is_measured_as_wait_not_lateness(world: World) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    assert world.metrics.of(metrics.WAITS_BEGUN, "slots") == [1]
    world.pass_by("10m")
    world.finish()
    world.settle()

    assert len(world.runs("daily")) == 2
    assert world.metrics.of(metrics.EVENT_TO_START) == [0]
    assert world.metrics.of(metrics.QUEUE_LENGTH, "slots")[-1] == 0
    assert max(world.metrics.of(metrics.QUEUE_LENGTH, "slots")) == 1


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        (delay("10m"), "time"),
        (fresh("demo.flights.join", "1h"), "upstream"),
        ({"type": "approval", "people": ["arn:aws:iam::000000000000:user/ann"]}, "approval"),
    ],
    ids=["delay", "fresh", "approval"],
)
def test_o2_a_wait_is_counted_once_by_the_class_of_its_cause(
    world: World, constraint: dict[str, object], reason: str
) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", constraint)}))
    world.upload(day(1))
    doze(world, "5m")

    assert world.runs("daily") == []
    assert {key: values for key, values in world.metrics.kept.items() if key[0] == "WaitsBegun"} == {
        ("WaitsBegun", reason): [1]
    }


def test_o2_jobs_kept_by_a_pause_are_counted(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.pause("daily")
    world.upload(day(1))
    world.settle()

    assert world.metrics.of(metrics.WAITS_BEGUN, "paused") == [1]


def test_o2_a_job_that_waits_for_a_rate_is_counted_as_such(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", rate_of(1, "1h"))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()

    assert world.metrics.of(metrics.WAITS_BEGUN, "rate") == [1]


def test_o2_every_tick_measures_how_long_oldest_row_is_overdue(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.tick()
    assert world.metrics.of(metrics.OVERDUE_AGE) == [0]
    world.hints.lose = True
    world.upload(day(1))
    world.clock.wait_until(world.clock.now() + 4 * MINUTE)

    world.tick()

    assert world.metrics.of(metrics.OVERDUE_AGE)[1:] == [240_000]
    assert world.metrics.of(metrics.ROWS_PARKED) == []


def test_o2_a_row_that_keeps_failing_is_counted_when_parked(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.hints.lose = True
    world.upload(day(1))
    [job] = world.jobs("daily")
    world.ports.ledger.commit([Replace(replace(job, leases=PARKED_AFTER, rev=job.rev + 1))])
    world.clock.wait_until(world.clock.now() + 4 * MINUTE)

    world.tick()

    assert world.metrics.of(metrics.ROWS_PARKED) == [1]


def test_o2_a_write_overtaken_by_another_counts_as_a_conflict(world: World) -> None:
    assert world.ports.ledger.commit([Create(rows.job())]) is None
    assert world.metrics.of(metrics.WRITE_CONFLICTS) == []
    assert world.ports.ledger.commit([Create(rows.job())]) is not None
    assert world.metrics.of(metrics.WRITE_CONFLICTS) == [1]


def test_o2_a_delivery_that_is_given_up_is_counted(world: World) -> None:
    world.deploy(flights({"tick": at("@every 1h", "notify")}))
    world.targets.queue.answers = [Never("no such queue")]
    world.pass_by("1h1s")

    assert [run.state for run in world.runs("tick")] == ["FAILED"]
    assert world.metrics.of(metrics.DEAD_LETTERS) == [1]


def test_o2_the_costs_of_a_run_are_measured_once_at_its_end(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    world.pass_by("1h")

    [run] = world.runs("daily")
    prices = world.ports.settings.prices
    cost = 0.025 * prices.vcpu_hour + 0.1 * prices.memory_gb_hour
    assert run.billed == (25, 100, 0)
    assert world.metrics.of(metrics.RUN_COST) == [pytest.approx(cost, abs=1e-6)]


def test_o2_costs_known_later_are_measured_then(world: World) -> None:
    world.targets.emr.reckons_after = 5 * MINUTE
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    assert world.metrics.of(metrics.RUN_COST) == []
    world.pass_by("30m")

    assert len(world.metrics.of(metrics.RUN_COST)) == 1


def test_o2_a_run_asked_for_by_a_person_is_no_fire_and_no_event(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    actions.run_now(world.ports, "demo.flights.daily", {}, "r1")
    world.pass_by("1m")

    assert len(world.runs("daily")) == 1
    assert world.metrics.of(metrics.FIRE_LATENESS) == world.metrics.of(metrics.EVENT_TO_START) == []
