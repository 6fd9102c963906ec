"""Orders of events in which a careless emitter loses a fire or doubles one (2, 17, 24, 25; T4, T5)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer as rules
from chalicelib.core.instants import DAY, HOUR, SECOND
from chalicelib.core.rows.schedule import Timer, Version
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.fires import emit
from chalicelib.flow.system import sweep
from tests.acceptance.words import all_of, dues, is_gone, kinds, on, partition, time, to_queue, why_schedule
from tests.support.clock import NOON
from tests.support.crash import lost, wrap
from tests.support.ledgers import Before, has_kind
from tests.support.world import World, day, flights, full


def nominals(world: World, name: str = "tick") -> list[float]:
    return sorted(((run.nominal_at or 0) - NOON) / SECOND for run in world.runs(name))


def prepared(world: World, name: str = "tick") -> rules.Emission:
    """The fires that an emitter computed from the present timer before it stalled."""
    timer, version = world.ports.rows.get(Timer, full(name)), world.ports.rows.get(Version, full(name), 1)
    assert timer is not None
    assert version is not None
    now = world.clock.now()
    horizon = now + world.ports.settings.horizon_seconds * SECOND
    return rules.emit(timer, Schedule.model_validate(version.definition), now, horizon)


@pytest.mark.parametrize("fields", [{}, {"jitter": "2s"}, {"repeats": 6}])
def test_interleaving_02_prepared_fires_run_on_their_seconds(world: World, fields: dict[str, Any]) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s", **fields))}))
    world.pass_by("60s")
    runs = world.runs("tick")
    assert nominals(world) == [10, 20, 30, 40, 50, 60][: len(runs)]
    assert len(runs) >= 5
    assert [run.start_requested_at for run in runs] == [run.due_at for run in runs]


def test_interleaving_02_a_spread_event_waits_for_its_second(world: World) -> None:
    world.deploy(flights({"batch": to_queue(time("@every 30s", repeats=1), spread={"count": 3, "over": "30s"})}))
    world.clock.pass_by("29s")
    world.settle()
    sweep.sweep_all(world.ports)
    world.settle()
    assert world.runs("batch") == []
    world.pass_by("31s")
    assert dues(world, "batch") == [30, 40, 50]


def test_interleaving_17_created_at_5_due_at_15_ttl_10_fires(world: World) -> None:
    world.deploy(flights({}))
    world.tick()
    world.clock.pass_by("5s")
    world.put("tick", to_queue({"type": "time", "due_time": "10s"}, ttl="10s"))
    world.pass_by("30s")
    assert dues(world) == [15]
    assert is_gone(world)


def test_interleaving_17_fires_also_when_tick_and_hints_are_late(world: World) -> None:
    world.deploy(flights({}))
    world.clock.pass_by("5s")
    world.hints.lose = True
    world.put("tick", to_queue({"type": "time", "due_time": "10s"}, ttl="10s"))
    world.hints.lose = False
    world.pass_by("3m")
    assert nominals(world) == [15]
    assert is_gone(world)


def test_interleaving_24_all_prepared_fires_run_when_used_up(world: World) -> None:
    for name, fields in {"iso": {}, "gone": {"when_done": "delete"}, "short": {"ttl": "12s"}}.items():
        world.deploy(flights({name: to_queue(time("R4/PT3S"), **fields)}, ), app=name)  # fmt: skip
        assert why_schedule(world, f"demo.{name}.{name}")["state"] == "completed", "used up with all four prepared"
    world.pass_by("3m")
    assert nominals(world, "demo.iso.iso") == [3, 6, 9, 12]
    assert nominals(world, "demo.gone.gone") == [3, 6, 9, 12]
    assert nominals(world, "demo.short.short") == [3, 6, 9, 12]
    assert is_gone(world, "demo.gone.gone")
    assert is_gone(world, "demo.short.short")


def test_interleaving_24_jobs_kept_by_a_hold_run_at_the_resume(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 2m", repeats=2), when_done="delete", coalesce=False)}))
    world.pause("tick")
    world.pass_by("6m")
    waiting = sorted(job.job_id for job in world.jobs("tick"))
    assert len(waiting) == 2
    world.resume("tick")
    world.pass_by("2m")
    assert sorted(run.run_id for run in world.runs("tick")) == waiting
    assert is_gone(world)


@pytest.mark.parametrize("fields", [{}, {"spread": {"count": 3, "over": "30s"}}])
def test_interleaving_25_a_stalled_emitter_writes_consumed_fires(world: World, fields: dict[str, Any]) -> None:
    """It read the timer, another emitter wrote the fires, and they ran and were deleted. Then it resumes where it
    stopped.
    """
    world.deploy(flights({"tick": to_queue(time("@every 1m"), **fields)}))
    world.pass_by("110s")
    stalled = prepared(world)
    assert stalled.fires
    world.tick()
    world.pass_by("3m")
    runs, sent = len(world.runs("tick")), len(world.targets.queue.messages)

    world.ports.ledger.put_all([Put(fire) for fire in stalled.fires])
    assert world.ports.ledger.commit([Replace(stalled.timer)]) is not None, "the timer has moved on"
    sweep.sweep_all(world.ports)
    world.settle()
    world.clock.pass_by("5s")
    sweep.sweep_all(world.ports)
    world.settle()

    assert (len(world.runs("tick")), len(world.targets.queue.messages)) == (runs, sent)
    left = {job.sort_key for job in world.jobs("tick")}
    assert not left & {fire.sort_key for fire in stalled.fires}, (
        "the duplicates are gone, and nothing hints them any more"
    )


def test_interleaving_25_a_duplicate_of_deleted_schedule_is_gone(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 1m", repeats=1), when_done="delete")}))
    duplicates = world.jobs("tick")
    world.pass_by("3m")
    assert is_gone(world)
    world.ports.ledger.put_all([Put(fire) for fire in duplicates])
    world.pass_by("3m")
    assert len(world.targets.queue.messages) == 1
    assert world.jobs("tick") == []


def test_t4_two_emitters_prepare_and_skip_each_fire_once(world: World) -> None:
    """The second emitter reads and writes everything between the first one's fires and its move of the timer."""
    world.deploy(flights({"tick": to_queue(time("0 * * * *"), catch_up={"mode": "all", "within": "3h"})}))
    world.clock.wait_until(NOON + 10 * HOUR + 90 * SECOND)
    inner = world.ports.ledger
    other = partial(emit.emit_due, world.with_ports(ledger=inner))
    emit.emit_due(world.with_ports(ledger=Before(inner, other, has_kind("Replace"))))
    world.settle()
    assert nominals(world) == [8 * 3600, 9 * 3600, 10 * 3600]
    assert [record.count for record in world.records("tick")] == [7]


def test_t4_clock_that_goes_backwards_loses_and_doubles_nothing(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10s"))}))
    world.pass_by("2m")
    world.clock._now -= 90 * SECOND
    world.tick()
    world.pass_by("5m")
    end = (world.clock.now() - NOON) / SECOND
    assert nominals(world) == [10 * number for number in range(1, int(end // 10) + 1)]
    assert world.records("tick") == []


@pytest.mark.parametrize("catch_up", ["all", "latest", "none"])
def test_t5_an_emitter_that_dies_in_a_catch_up_loses_nothing(make_world: Any, catch_up: str) -> None:
    """This holds also for one that reaches its Lambda's timeout: the next tick continues where it stopped."""
    expected = {"all": (23, 7), "latest": (1, 29), "none": (1, 29)}[catch_up]
    number, died = 0, True
    while died:
        number += 1
        world = make_world(wake_shards=1, history_shards=1)
        world.deploy(flights({"tick": to_queue(time("0 * * * *"), catch_up={"mode": catch_up, "within": "23h"})}))
        world.clock.wait_until(NOON + 30 * HOUR + SECOND)
        points = wrap(world)
        points.armed, points.die_after = True, number
        died = lost(lambda world=world: emit.emit_due(world.ports))
        points.armed = False
        world.clock.pass_by("20s")
        world.tick()
        world.clock.pass_by("40s")
        world.tick()
        answer = (len(world.runs("tick")), sum(record.count for record in world.records("tick")))
        assert answer == expected, f"death after effect {number}"
    assert number > 3


def test_t5_catch_up_continues_portion_by_portion_to_the_end(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 5s"), catch_up={"mode": "all", "within": "2h"})}))
    world.clock.wait_until(NOON + HOUR)
    emit.emit_due(world.ports)
    timer = world.ports.rows.get(Timer, full("tick"))
    assert timer is not None
    assert (timer.wake_at or 0) > world.clock.now()
    overdue = [ref for due, ref in world.hints.sent if ref.kind == "job" and due <= world.clock.now()]
    assert len(set(overdue)) == len(overdue) == 720


def test_t5_in_a_tree_each_time_leaf_catches_up_and_data_waits(world: World) -> None:
    both = all_of(time("0 * * * *"), partition())
    world.deploy(flights({"both": on(both, catch_up="latest")}))
    world.clock.wait_until(NOON + 5 * HOUR)
    world.tick()
    world.upload(day(1))
    world.settle()
    assert len(world.runs("both")) == 1
    assert kinds(world, "both") == ["SKIPPED"]


def test_t5_a_schedule_ended_in_an_outage_catches_up_and_is_gone(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("@every 10m"), ttl="35m")}))
    world.clock.wait_until(NOON + 6 * HOUR)
    world.tick()
    world.pass_by("2m")
    assert nominals(world) == [600, 1200, 1800]
    assert is_gone(world)


def test_l10_two_simultaneous_removals_remove_a_schedule_once(world: World) -> None:
    """A schedule that was put again between the removals is not removed."""
    from chalicelib.flow.schedules import lifetime

    world.deploy(flights({"tick": to_queue(time("@every 10s", repeats=1), when_done="delete")}))
    world.pass_by("10s")
    stale = world.ports.rows.get(Timer, full("tick"))
    world.put("tick", to_queue(time("@every 1m")))
    world.clock.pass_by("5s")
    assert lifetime.end(world.ports, full("tick")) is None
    assert stale is not None
    assert world.ports.ledger.commit([Replace(replace(stale, rev=stale.rev + 1))]) is not None
    world.clock.wait_until(world.clock.now() + DAY // 24)
    assert not is_gone(world)
