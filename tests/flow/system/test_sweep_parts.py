"""Thousands of overdue rows: full shards are handed on, so that two ticks look at all of them (O3)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import SECOND
from chalicelib.core.rows.ref import Ref, ShardPart, shard_part, shard_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.system import sweep as rules
from chalicelib.core.writes import Put
from chalicelib.flow import shards
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch, sweep
from tests.support.clock import NOON
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at, partitions
from tests.support.world import World, day, flights

MANY = 37


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows are many."""
    monkeypatch.setattr(shards, "PAGE", 10)


def stuck(wake_shards: int = 1) -> World:
    """Jobs whose hints were all lost: overdue, and not checked."""
    world = World(wake_shards=wake_shards, history_shards=1, start_burst=2 * MANY)
    world.deploy(flights({f"s{number}": partitions() for number in range(MANY)}))
    world.upload(day(1))
    world.hints.sent = []
    world.clock.pass_by("61s")
    return world


def hinted(world: World) -> Counter[Ref]:
    return Counter(ref for _, ref in world.hints.sent if ref.kind != "shard")


def work(world: World) -> None:
    """Handle the parts that were handed on, and no other hint."""
    while ready := [ref for _, ref in world.hints.sent if ref.kind == "shard"]:
        world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind != "shard"]
        for ref in ready:
            dispatch.dispatch(world.ports, ref)


@pytest.mark.parametrize("wake_shards", [1, 4])
def test_o3_one_tick_and_its_parts_look_at_every_row(wake_shards: int) -> None:
    world = stuck(wake_shards)
    sweep.sweep_all(world.ports)
    assert 0 < len(hinted(world)) < MANY
    work(world)
    assert set(hinted(world).values()) == {1}
    assert len(hinted(world)) == MANY
    jobs = [job for number in range(MANY) for job in world.jobs(f"s{number}")]
    assert [job.leases for job in jobs] == [1] * MANY
    world.settle()
    assert len(world.targets.emr.runs) == MANY


def test_o3_parts_that_are_lost_come_with_the_next_tick() -> None:
    world = stuck()
    looked_at = 0
    for _ in range(2):
        sweep.sweep_all(world.ports)
        looked_at = len(hinted(world))
        world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind != "shard"]
    assert looked_at == 20, "a page by each tick, even if no part arrives"


def test_o3_a_part_out_of_time_is_handed_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = stuck()
    monkeypatch.setattr(rules, "SLICE", 4)
    part = ShardPart("jobs", 0, world.clock.now() - rules.GRACE)
    ports = world.with_ports(ends_at=world.clock.now())
    sweep.handle_part(ports, part)
    parts = [shard_part(ref) for _, ref in world.hints.sent if ref.kind == "shard"]
    assert parts[0].cursor is not None
    assert parts[1] == part
    assert len(hinted(world)) == 4, "the first slice is handled in any case"
    world.settle()
    assert len(world.targets.emr.runs) == MANY


def test_o3_overdue_rows_beside_many_timers_are_swept_with_them() -> None:
    """Outboxes of the catalog are in the shards of timers."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({f"s{number:02d}": at("@every 10m", "notify") for number in range(30)}))
    world.clock.pass_by("9m")
    for number in range(25):
        row = world.ports.rows.get(ScheduleState, f"demo.flights.s{number:02d}")
        assert isinstance(row, ScheduleState)
        world.ports.ledger.put_all([Put(replace(row, wake_at=NOON + number))])
    world.hints.sent = []
    ports = shards.read_once(world.ports)
    emit.emit_due(ports)
    sweep.sweep_all(ports)
    work(world)
    assert sum(ref.kind == "schedule" for ref in hinted(world)) == 25
    assert sum(ref.kind == "fires" for ref in hinted(world)) == 30


def test_w7_only_the_tick_asks_emr_about_silent_runs() -> None:
    """All such hints share EMR's rate, so a part leaves them to the ticks."""
    world = stuck()
    sweep.sweep_all(world.ports)
    work(world)
    world.settle()
    runs = [run for number in range(MANY) for run in world.runs(f"s{number}")]
    assert all(isinstance(run, Run) for run in runs)
    world.hints.sent = []
    world.clock.pass_by("30m")
    sweep.handle_part(world.ports, ShardPart("runs", 0, world.clock.now()))
    assert hinted(world) == {}
    world.hints.sent = []
    sweep.sweep_all(world.ports)
    assert len(hinted(world)) == 10
    work(world)
    assert len(hinted(world)) == 10


def test_o3_a_row_that_changed_is_left_out_of_its_transaction() -> None:
    world = stuck()

    class Crossed(LedgerBetween):
        """Another invocation checks one job right before the leases."""

        done = False

        def before(self, writes: Any) -> None:
            if len(writes) > 1 and not self.done:
                self.done = True
                job = writes[0].row
                self.inner.commit([type(writes[0])(replace(job, wake_at=NOON + 3600 * SECOND))])

    sweep.sweep_all(world.with_ports(ledger=Crossed(world.ports.ledger)))
    jobs = [job for number in range(MANY) for job in world.jobs(f"s{number}")]
    leased = [job for job in jobs if job.leases == 1]
    assert len(leased) == 10
    assert sum(job.wake_at == NOON + 3600 * SECOND for job in leased) == 1


def test_o1_an_idle_tick_reads_each_shard_of_each_index_once() -> None:
    """Three steps read twelve shards: emission and sweep share the catalog, hints ahead and sweep the jobs."""
    world = World(wake_shards=4, history_shards=1)
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    world.tables.before_call = count
    ports = shards.read_once(world.ports)
    emit.emit_due(ports)
    sweep.hint_soon(ports)
    sweep.sweep_all(ports)
    assert calls == 12


def test_steps_of_a_tick_find_the_same_rows_as_alone() -> None:
    world = stuck(4)
    now = world.clock.now()
    shared = shards.read_once(world.ports).wakes
    for until in (now, now - 70 * SECOND, now + 75 * SECOND, now - rules.GRACE):
        for shard in range(4):
            once, alone = (wakes.due("jobs", shard, until, 10, None) for wakes in (shared, world.ports.wakes))
            assert once.items == alone.items
        assert shared.upcoming(now - 90 * SECOND, until) == world.ports.wakes.upcoming(now - 90 * SECOND, until)


def test_a_part_of_another_table_is_a_part_too() -> None:
    assert shard_part(shard_ref(ShardPart("runs", 2, NOON, "x"))) == ShardPart("runs", 2, NOON, "x")
