"""An update that carries also applies to fires that are already prepared, up to 135 s ahead (L6, E4)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.writes import Put
from chalicelib.flow.deliveries import prepare, send
from tests.acceptance.words import elapsed, on, time
from tests.support import events
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights

CARRY = {"on_update": "carry"}
AT_TWO_PAST = "2 12 2 3 *"


@pytest.fixture
def world() -> World:
    return World()


def many(count: int, over: str | None = None, expression: str = AT_TWO_PAST, **fields: Any) -> dict[str, Any]:
    spread = {"count": count} | ({"over": over} if over else {})
    return at(expression, "notify", spread=spread, **fields)


def called(world: World, name: str) -> list[int]:
    """The nominal instants of the events that were sent, in seconds from noon."""
    return sorted(((run.nominal_at or 0) - NOON) // SECOND for run in world.runs(name))


def instants(world: World, name: str) -> list[float]:
    """When the events were sent, in seconds from noon."""
    return sorted((run.claimed_at - NOON) / SECOND for run in world.runs(name))


def sent_once(world: World) -> bool:
    answer = [run_id for run_id, _ in world.targets.queue.messages]
    return len(set(answer)) == len(answer)


def test_l6_carry_of_an_earlier_end_drops_later_fires_on_record(world: World) -> None:
    world.deploy(flights({"tick": at("@every 15s", "notify")}))
    world.pass_by("20s")
    world.put("tick", at("@every 15s", "notify", ttl="30s", **CARRY))  # until 12:00:50
    world.pass_by("4m")

    assert called(world, "tick") == [15, 30, 45]
    assert {record.kind for record in world.records("tick")} == {"DROPPED"}
    assert "2026-03-02T12:00:50.000Z" in world.records("tick")[0].reason.text
    assert world.ports.rows.get(ScheduleState, "demo.flights.tick").mode == "deleted"


def test_l6_carry_of_a_later_end_lets_the_times_go_on(world: World) -> None:
    either = {"type": "any", "triggers": [time("@every 1m"), {"type": "partition", "dataset": "flights"}]}
    world.deploy(flights({"tick": on(either, "notify", ttl="150s")}))
    world.pass_by("30s")
    world.put("tick", on(either, "notify", ttl="4m", **CARRY))  # until 12:04:30
    world.pass_by("8m")
    assert instants(world, "tick") == [60, 120, 180, 240]


def test_l6_carry_of_a_later_end_restores_a_cut_elapsed_span(world: World) -> None:
    world.deploy(flights({"idle": on(elapsed("10m"), "clean")}))
    world.put("idle", on(elapsed("10m"), "clean", ttl="5m", **CARRY))
    world.pass_by("1m")
    world.put("idle", on(elapsed("10m"), "clean", ttl="20m", **CARRY))
    world.pass_by("12m")
    [run] = world.runs("idle")
    assert run.claimed_at == NOON + 10 * MINUTE


def test_l6_carry_of_an_earlier_end_drops_a_fire_to_be_an_event(world: World) -> None:
    both = {"type": "any", "triggers": [time(AT_TWO_PAST), {"type": "partition", "dataset": "flights"}]}
    world.deploy(flights({"daily": on(both)}))
    world.put("daily", on(both, "clean", ttl="1m", **CARRY))
    world.pass_by("150s")
    assert world.runs("daily") == []
    assert [record.kind for record in world.records("daily")] == ["DROPPED"]


@pytest.mark.parametrize(("before", "after"), [(10, 3), (3, 10), (1, 4)])
def test_l6_carry_of_another_count_applies_to_the_prepared_fire(world: World, before: int, after: int) -> None:
    world.deploy(flights({"burst": many(before)}))
    world.pass_by("30s")
    assert sum(job.waiting for job in world.jobs("burst")) == before

    world.put("burst", many(after, **CARRY))
    world.pass_by("3m")
    assert sum(run.count for run in world.runs("burst")) == after
    assert sent_once(world)
    assert {record.kind for record in world.records("burst")} <= {"DROPPED"}
    assert sum(record.count for record in world.records("burst")) == max(before - after, 0)


def test_l6_carry_of_another_window_moves_the_prepared_events(world: World) -> None:
    world.deploy(flights({"burst": many(4, "8s")}))
    world.pass_by("30s")
    world.put("burst", many(4, "4s", **CARRY))
    world.pass_by("3m")
    assert instants(world, "burst") == [120, 121, 122, 123]
    assert sent_once(world)


def test_l6_carry_during_a_fire_applies_to_what_is_not_prepared(world: World) -> None:
    world.deploy(flights({"burst": many(10, "10m")}))
    world.pass_by("5m30s")  # three minutes and a half into the window: four are sent, two are prepared
    assert len(world.runs("burst")) == 4
    world.put("burst", many(8, "10m", **CARRY))
    world.pass_by("10m")
    assert len(world.runs("burst")) == 8
    assert sent_once(world)


def test_l6_carry_without_a_spread_leaves_one_event_of_the_fire(world: World) -> None:
    world.deploy(flights({"burst": many(5)}))
    world.put("burst", at(AT_TWO_PAST, "notify", **CARRY))
    world.pass_by("3m")
    assert len(world.runs("burst")) == 1


def test_l6_carry_reaches_fires_already_read_by_a_batch(world: World) -> None:
    world.deploy(flights({"burst": many(10)}))
    world.pass_by("117s")
    due = NOON + 2 * MINUTE
    refs = [ref for at_, ref in world.hints.sent if at_ == due]
    ready = prepare.prepare(world.ports, refs, due)
    assert len(ready.ready) == 10

    world.put("burst", many(3, **CARRY))
    world.clock.pass_by("3s")
    sent = send.send(world.ports, send.lease(world.ports, ready.ready, due))
    assert (sent.ends, len(sent.changed)) == ({}, 1)
    world.pass_by("2m")
    assert len(events.sent(world, "burst")) == 3


def test_l6_carry_leaves_no_fire_of_an_emitter_that_wrote_late(world: World) -> None:
    """It has read the timer before the update, and writes its fires after it: its write of the timer fails."""
    world.deploy(flights({"burst": many(10, expression="4 12 2 3 *")}))
    old = world.ports.rows.get(Timer, "demo.flights.burst")
    world.clock.pass_by("3m")
    world.put("burst", many(3, expression="4 12 2 3 *", **CARRY))
    assert old is not None

    version = world.ports.rows.get(Version, "demo.flights.burst", 1)
    assert version is not None
    late = timer.emit(old, Schedule.model_validate(version.definition), NOON, NOON + 10 * MINUTE)
    world.ports.ledger.put_all([Put(fire) for fire in late.fires])
    world.pass_by("5m")
    assert len(world.runs("burst")) == 3
    assert len([record for record in world.records("burst") if record.kind == "DROPPED"]) == 7
    assert world.ports.jobs.jobs("demo.flights.burst", old.generation, 50, None).items == ()


def test_l6_carry_keeps_a_count_of_repeats(world: World) -> None:
    world.deploy(flights({"beat": many(2, expression="R5/PT1M")}))
    world.pass_by("5s")
    world.put("beat", many(3, expression="R5/PT1M", **CARRY))
    world.pass_by("7m")
    assert called(world, "beat") == [instant for instant in (60, 120, 180, 240, 300) for _ in range(3)]
    assert sent_once(world)
