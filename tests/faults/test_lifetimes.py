"""No active row expires (H1, C9): a row has a TTL only from the write that makes it final."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from chalicelib.core.instants import DAY
from chalicelib.core.rows import kinds
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Pointer
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.writes import CloseGeneration, Delete
from tests.faults.dying import SMALL, play, tick
from tests.faults.invariants import Stock
from tests.faults.test_crash_points import SCENARIOS
from tests.support import lifetimes
from tests.support.fakes import APPLICATION
from tests.support.pull_workers import PULLED
from tests.support.schedules import at_most, partitions
from tests.support.world import EMR, World, day, flights

LIMIT = "workflow:demo.flights.clean"
EVERY = 8  # calls between two checks, with another remainder for each scenario


def test_every_kind_of_row_expires_when_final_or_never() -> None:
    with_end = {row for row in kinds.ROWS if "expires_at" in {field.name for field in fields(row)}}
    assert set(lifetimes.FINAL) == with_end


def test_c9_no_live_row_has_a_ttl_between_any_two_calls() -> None:
    """Plays the crash scenarios once without a kill, and checks every row between the calls of the tables."""
    seen: set[type] = set()
    for number, (name, scenario) in enumerate(SCENARIOS.items()):
        world = World(**{**SMALL, **scenario.tuned})
        calls = 0

        def observe(world: World = world, number: int = number) -> None:
            nonlocal calls
            calls += 1
            if (calls + number) % EVERY == 0:
                seen.update(lifetimes.check(world))

        world.tables.before_call = observe
        try:
            play(scenario, world)
            seen.update(lifetimes.check(world))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    # Only requests of the API write audit records, and only `lake` the ends of periods; `web/test_audit.py` and
    # `core/backfills/test_period_ends.py` check their ends.
    assert set(lifetimes.FINAL) - seen == {AuditRow, PeriodEnds}, "each kind that ends was seen with its end"


def lives_on(world: World, span: int) -> None:
    """The tables delete the expired rows, as DynamoDB does; a tick comes."""
    world.clock.wait_until(world.clock.now() + span)
    for name, row in list(world.tables.rows()):
        if "ttl" in row and int(row["ttl"]["N"]) * 1000 < world.clock.now():
            world.tables.delete_item(TableName=name, Key={"pk": row["pk"], "sk": row["sk"]})
    tick(world)


def test_h1_a_run_without_a_timeout_keeps_its_row_and_its_slot() -> None:
    world = World(**SMALL)
    endless = {"target": EMR, "timeout": "never"}
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}, clean=endless))
    world.upload(day(1))
    world.settle()
    world.emr_says("jr00001", "RUNNING")

    for _ in range(5):
        lives_on(world, HISTORY // 4 + DAY)

    [run] = world.runs("daily")
    assert (run.state, world.limit_state(LIMIT).active) == ("RUNNING", 1)
    world.emr_says("jr00001", "SUCCESS")
    assert world.limit_state(LIMIT).active == 0
    [run] = world.runs("daily")
    assert run.expires_at == world.clock.now() + HISTORY, "it is kept for as long as any other, from its end on"
    lives_on(world, HISTORY + 2 * DAY)
    assert world.runs("daily") == []


def test_w5_a_pool_offer_outlives_the_history_period() -> None:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(workflow="pulled")}, pulled={"target": PULLED}))
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    assert len(world.ports.jobs.offers("demo.etl", 5)) == 1

    lives_on(world, HISTORY + DAY)
    lives_on(world, DAY)

    assert world.runs("daily")[0].run_id == run.run_id
    assert len(world.ports.jobs.offers("demo.etl", 5)) == 1


def test_w7_a_run_without_its_pointer_is_found_by_its_name() -> None:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    target_id = f"{APPLICATION}/jr00001"
    [run] = world.runs("daily")
    world.ports.ledger.commit([Delete(Pointer(target_id, run.run_id, 1, 0))])
    assert world.ports.rows.get(Pointer, target_id) is None

    world.emr_says("jr00001", "SUCCESS")

    assert (world.runs("daily")[0].state, world.limit_state(LIMIT).active) == ("SUCCEEDED", 0)


def test_w1_a_failed_attempt_is_kept_until_its_retry_is_a_run() -> None:
    world = World(**SMALL)
    retried: dict[str, Any] = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    world.deploy(flights({"daily": partitions(timeout="never")}, clean=retried))
    world.upload(day(1))
    world.settle()
    world.pause("daily")
    world.finish("FAILED")

    assert [(run.state, run.expires_at) for run in world.runs("daily")] == [("RETRYING", None)]
    world.resume("daily")
    world.pass_by("1m")
    first, second = world.runs("daily")
    assert first.expires_at == second.claimed_at + HISTORY
    assert second.expires_at is None


@pytest.mark.parametrize("days", [1, 30, 180])
def test_h1_the_history_period_sets_when_rows_expire(days: int) -> None:
    world = World(**SMALL, history_days=days)
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.finish()
    ended = world.clock.now()

    [item] = [row for name, row in world.tables.rows() if name == "RunsTable" and row["sk"]["S"] == "A#001"]
    assert int(item["ttl"]["N"]) * 1000 == ended + days * DAY


def test_l3_tombstone_closed_again_never_expires_before_its_end() -> None:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(2)}))
    world.upload(day(1))
    world.disable("daily")
    world.settle()
    [tombstone] = [job for job in Stock(world).jobs if job.closed]
    assert (tombstone.wake_at, tombstone.expires_at is not None) == (None, True)

    now = world.clock.now()
    world.ports.ledger.commit([CloseGeneration(tombstone.schedule, tombstone.generation, now)])
    [again] = [job for job in Stock(world).jobs if job.closed]
    assert (again.wake_at, again.expires_at) == (now, None)
    lifetimes.check(world)
    world.pass_by("1m")
    [settled] = [job for job in Stock(world).jobs if job.closed]
    assert (settled.wake_at, settled.expires_at is not None) == (None, True)
