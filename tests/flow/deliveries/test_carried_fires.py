"""What an update that carries does to fires that are already prepared, up to 135 s ahead (L6, E4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.fires import timer
from chalicelib.core.instants import HOUR, MINUTE, SECOND, duration
from chalicelib.core.rows.run import Fire
from chalicelib.core.rows.schedule import ScheduleState, Timer, Version
from chalicelib.core.writes import Put
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.deliveries import prepare, send
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs import actions
from chalicelib.flow.schedules import pauses
from chalicelib.flow.views import fires
from tests.acceptance.words import elapsed, on, time, window
from tests.support import events
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import SQS, World, flights, full

CARRY = {"on_update": "carry"}
AT_TWO_PAST = "2 12 2 3 *"
EACH_FOURTH = "4-8/4 12 2 3 *"  # at 12:04 and 12:08


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


def counted(world: World) -> Counter[int]:
    """How many events of each fire were sent, by its nominal instant."""
    return Counter(context["events"][0]["instant"] for _, context in world.targets.queue.messages)


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


@pytest.mark.parametrize(("before", "after"), [(10, 3), (3, 10), (1, 4), (300, 7)])
def test_l6_carry_of_another_count_begins_with_the_next_fire(world: World, before: int, after: int) -> None:
    world.deploy(flights({"burst": many(before, expression=EACH_FOURTH)}))
    world.pass_by("2m")
    assert sum(job.waiting for job in world.jobs("burst")) == before

    world.put("burst", many(after, expression=EACH_FOURTH, **CARRY))
    world.pass_by("7m")
    assert counted(world) == {NOON + 4 * MINUTE: before, NOON + 8 * MINUTE: after}
    assert world.records("burst") == []


def test_l6_carry_without_a_spread_begins_with_the_next_fire(world: World) -> None:
    world.deploy(flights({"burst": many(5, expression=EACH_FOURTH)}))
    world.pass_by("2m")
    world.put("burst", at(EACH_FOURTH, "notify", **CARRY))
    world.pass_by("7m")
    assert counted(world) == {NOON + 4 * MINUTE: 5, NOON + 8 * MINUTE: 1}


@pytest.mark.parametrize(("count", "before", "after"), [(4, "8s", "4s"), (4, "4s", None), (30, "5s", "50s")])
def test_l6_carry_of_another_window_begins_with_the_next_fire(
    world: World, count: int, before: str, after: str | None
) -> None:
    world.deploy(flights({"burst": many(count, before, EACH_FOURTH)}))
    world.pass_by("2m")
    world.put("burst", many(count, after, EACH_FOURTH, **CARRY))
    world.pass_by("7m")
    assert sum(counted(world).values()) == 2 * count
    for number, over in enumerate((before, after)):
        first = NOON + (4 + 4 * number) * MINUTE
        planned = [first + index * (duration(over) if over else 0) // count for index in range(count)]
        sent = sorted(at_ for at_ in world.targets.queue.sent_at if first <= at_ < first + 2 * MINUTE)
        assert all(plan <= at_ < plan + 2 * SECOND for plan, at_ in zip(planned, sent, strict=True))


@pytest.mark.parametrize("on_update", ["carry", "drop"])
@pytest.mark.parametrize("count", [8, 5, 3])
def test_l6_an_update_during_a_fire(world: World, on_update: str, count: int) -> None:
    """With ``drop``, what is left of the fire has the new spread. Events that it has no longer are on record, prepared
    or not."""
    world.deploy(flights({"burst": many(10, "10m")}))
    world.pass_by("5m30s")  # three minutes and a half into the window: four are sent, two are prepared
    assert len(world.runs("burst")) == 4
    world.put("burst", many(count, "10m", on_update=on_update))
    world.pass_by("12m")
    ran = 10 if on_update == "carry" else max(4, count)
    assert len(world.runs("burst")) == ran
    assert {record.kind for record in world.records("burst")} <= {"DROPPED"}
    assert sum(record.count for record in world.records("burst")) == 10 - ran
    assert sent_once(world)
    spreads = {context["spread"]["count"] for _, context in world.targets.queue.messages}
    assert spreads == ({10} if ran == 10 or ran == 4 else {10, count})


def test_l6_carry_keeps_fires_already_read_by_a_batch(world: World) -> None:
    world.deploy(flights({"burst": many(10)}))
    world.pass_by("117s")
    due = NOON + 2 * MINUTE
    refs = [ref for at_, ref in world.hints.sent if at_ == due]
    ready = prepare.prepare(world.ports, refs, due)
    assert len(ready.ready) == 10

    world.put("burst", many(3, **CARRY))
    world.clock.pass_by("3s")
    send.send(world.ports, send.lease(world.ports, ready.ready, due))
    world.pass_by("2m")
    assert len(events.sent(world, "burst")) == 10
    assert sent_once(world)


@pytest.mark.parametrize(("before", "after"), [(10, 3), (4, 30), (10, 30), (30, 10), (3, 7)])
def test_l6_an_emitter_that_wrote_late_doubles_nothing(world: World, before: int, after: int) -> None:
    """It has read the timer before the update, and writes its fires after it: its write of the timer fails. Others have
    written the fire in the new shape, as jobs or as bundles."""
    world.deploy(flights({"burst": many(before, expression="4 12 2 3 *")}))
    old = world.ports.rows.get(Timer, "demo.flights.burst")
    world.put("burst", many(after, expression="4 12 2 3 *", **CARRY))
    world.clock.pass_by("3m")
    world.tick()
    assert old is not None

    version = world.ports.rows.get(Version, "demo.flights.burst", 1)
    assert version is not None
    late = timer.emit(old, Schedule.model_validate(version.definition), NOON, NOON + 10 * MINUTE)
    world.ports.ledger.put_all([Put(fire) for fire in late.fires])
    world.pass_by("5m")
    numbers = sorted(context["spread"]["index"] for _, context in world.targets.queue.messages)
    assert numbers == list(range(max(before, after)))
    assert sent_once(world)
    assert world.ports.jobs.jobs("demo.flights.burst", old.generation, 50, None).items == ()


def test_l6_carry_keeps_a_count_of_repeats(world: World) -> None:
    world.deploy(flights({"beat": many(2, expression="R5/PT1M")}))
    world.pass_by("5s")
    world.put("beat", many(3, expression="R5/PT1M", **CARRY))
    world.pass_by("7m")
    assert called(world, "beat") == [60, 60, 120, 120, *(instant for instant in (180, 240, 300) for _ in range(3))]
    assert sent_once(world)


@pytest.mark.parametrize(("count", "over"), [(4, None), (4, "20s"), (30, None), (60, "6s")])
@pytest.mark.parametrize("waits", [False, True])
def test_l6_the_events_of_a_begun_fire_never_join_each_other(
    world: World, count: int, over: str | None, waits: bool
) -> None:
    """The update takes the spread away. Of a fire of one event, one that waits joins the waiting job."""
    closed = [window("12:10", "13:00")] if waits else []
    world.deploy(flights({"burst": many(count, over, constraints=closed)}))
    world.pass_by("30s")
    world.put("burst", at(AT_TWO_PAST, "notify", constraints=closed, **CARRY))
    world.pass_by("15m")
    numbers = sorted(context["spread"]["index"] for _, context in world.targets.queue.messages)
    assert numbers == list(range(count))
    assert world.records("burst") == []


@pytest.mark.parametrize("spread", [None, {"count": 5, "over": "5m"}, {"count": 7, "over": "10s"}, {"count": 100}])
@pytest.mark.parametrize("when", ["before", "held", "after"])
@pytest.mark.parametrize("begins", ["115s", "124s"])
def test_l4_a_held_fire_is_spread_again_in_its_own_window(
    world: World, spread: dict[str, Any] | None, when: str, begins: str
) -> None:
    """An update gives another spread before the hold, in it, or after it."""
    world.deploy(flights({"burst": many(60, "10s")}))
    world.pass_by("30s")

    def update(now: str) -> None:
        if now == when:
            world.put("burst", at(AT_TWO_PAST, "notify", **({"spread": spread} if spread else {}), **CARRY))
        world.settle()

    update("before")
    world.pass_by(f"{int(begins[:-1]) - 30}s")
    world.pause("burst", "hold")
    world.pass_by("30s")
    update("held")
    resumed = world.clock.now()
    world.resume("burst")
    world.settle()
    update("after")
    world.pass_by("3m")
    assert counted(world) == {NOON + 2 * MINUTE: 60}
    late = [at_ for at_ in world.targets.queue.sent_at if at_ >= resumed]
    assert late and max(late) <= resumed + 10 * SECOND
    assert world.records("burst") == []


@pytest.mark.parametrize("count", [10, 300, 600])
def test_l4_a_fire_that_is_prepared_again_after_a_drain(world: World, count: int) -> None:
    """The drain ends before the fire. An event that was cancelled stays out, and the view of the fire is whole."""
    world.deploy(flights({"burst": many(count)}))
    world.pass_by("30s")
    cancelled = events.of_job(world.jobs("burst")[0])[1]
    fire_id = cancelled.rpartition("-")[0]
    actions.withdraw(world.ports, cancelled, "ann")
    world.pause("burst", "drain")
    world.settle()
    world.resume("burst")
    world.pass_by("30s")
    row = world.ports.rows.get(Fire, fire_id)
    assert row is not None and list(row.starts) == sorted(set(row.starts))
    world.pass_by("3m")
    assert len(world.targets.queue.messages) == count - 1
    assert [record.id for record in world.records("burst")] == [cancelled]
    line = fires.of_fire(world.ports, fire_id)
    assert (line["events"], line["sent"], line["unknown"]) == (count, count - 1, 0)


def test_l4_a_fire_whose_events_were_all_cancelled_is_over(world: World) -> None:
    world.deploy(flights({"burst": many(7)}))
    world.pass_by("30s")
    for event in events.of_job(world.jobs("burst")[0]):
        actions.withdraw(world.ports, event, "ann")
    world.pause("burst", "drain")
    world.settle()
    world.resume("burst")
    world.pass_by("3m")
    assert (world.targets.queue.messages, world.jobs("burst")) == ([], [])
    assert sum(record.count for record in world.records("burst")) == 7


def _updated(world: World, count: int | None) -> None:
    spread = {} if count is None else {"spread": {"count": count}}
    world.put("burst", at("4 12 2 3 *", "notify", **spread, **CARRY))


def _separate(world: World) -> None:
    store.put(world.ports, "workflow", "demo.flights.notify", {"target": SQS, "delivery": {"records": "each"}}, "ann")


THEN: dict[str, tuple[Callable[[World], object], bool]] = {  # what a user does then, and whether it ends the fire
    "disable": (lambda world: world.disable("burst"), True),
    "delete": (lambda world: world.delete("burst"), True),
    "smaller": (lambda world: _updated(world, 3), False),
    "one event": (lambda world: _updated(world, None), False),
    "separate": (_separate, False),
}


@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize(("before", "after"), [(4, 30), (10, 30), (4, 7)])
@pytest.mark.parametrize("is_sent", [False, True])
def test_l6_a_late_emitter_doubles_no_event_of_a_bundle(
    world: World, before: int, after: int, then: str, is_sent: bool
) -> None:
    """A stalled emitter writes jobs of the former definition beside the bundles of the fire."""
    world.deploy(flights({"burst": many(before, expression="4 12 2 3 *")}))
    old = world.ports.rows.get(Timer, full("burst"))
    version = world.ports.rows.get(Version, full("burst"), 1)
    assert old is not None and version is not None
    world.put("burst", many(after, expression="4 12 2 3 *", **CARRY))
    world.clock.pass_by("3m")
    world.tick()
    if is_sent:
        world.pass_by("70s")
    late = timer.emit(old, Schedule.model_validate(version.definition), NOON, NOON + 10 * MINUTE)
    world.ports.ledger.put_all([Put(fire) for fire in late.fires])
    act, ends = THEN[then]
    act(world)
    world.pass_by("6m")
    runs, dropped = len(events.sent(world, "burst")), sum(record.count for record in world.records("burst"))
    assert (runs, dropped) == ((0, after) if ends and not is_sent else (after, 0))
    assert len(world.targets.queue.messages) == runs


def test_l19_a_skipped_fire_in_progress_stays_skipped(world: World) -> None:
    """An update has taken its window of days away when another skip removes old ones."""
    daily = "0 13 * * *"
    world.deploy(flights({"burst": many(8, "4d", daily)}))
    pauses.skip(world.ports, full("burst"), NOON + HOUR, "ann")
    world.pass_by("2h")
    world.put("burst", at(daily, "notify", **CARRY))
    world.pass_by("30h")
    pauses.skip(world.ports, full("burst"), NOON + 49 * HOUR, "ann")
    world.pass_by("80h")
    assert set(counted(world)) == {NOON + (1 + 24 * day) * HOUR for day in (1, 3, 4)}
    assert sum(record.kind == "SKIPPED" for record in world.records("burst")) == 9


ENDS: dict[str, Callable[[World], object]] = {  # each takes what is left of the fire, or all but three events
    "fewer events": lambda world: world.put("burst", many(3, on_update="drop")),
    "one event": lambda world: world.put("burst", at(AT_TWO_PAST, "notify", on_update="drop")),
    "another trigger": lambda world: world.put("burst", many(3, expression="4 13 2 3 *")),
    "a put that disables": lambda world: world.put("burst", many(60, "10m", enabled=False)),
    "disable": lambda world: world.disable("burst"),
    "delete": lambda world: world.delete("burst"),
    "drain": lambda world: world.pause("burst", "drain"),
}


@pytest.mark.parametrize("end", ENDS)
def test_l6_events_that_a_dead_emitter_wrote_are_on_record_once(
    world: World, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has written them as jobs, and not moved the timer."""
    _separate_at_first(world)
    world.pass_by("3m")
    world.clock.pass_by("45s")

    def dies(ports: Any, steps: Any, now: int, hints: Any, many: bool = False) -> list[Any]:
        ports.ledger.put_all([Put(job) for step in steps for job in step.fires])
        return []

    with monkeypatch.context() as patched:
        patched.setattr(emit, "_carry_out", dies)
        before = len(world.jobs("burst"))
        emit.emit_timer(world.ports, full("burst"), world.clock.now(), emit.horizon_of(world.ports))
    assert len(world.jobs("burst")) > before
    ENDS[end](world)
    world.pass_by("15m")
    ran = len(world.runs("burst"))
    assert ran + sum(record.count for record in world.records("burst")) == 60
    assert ran < 60


def _separate_at_first(world: World) -> None:
    notify = {"target": SQS, "delivery": {"records": "each"}}
    world.deploy(flights({"burst": many(60, "10m")}, notify=notify))


def test_e2_a_fire_that_went_on_as_jobs_has_no_more_bundles(world: World) -> None:
    """So its row tells which bundle has an event."""
    world.deploy(flights({"burst": many(3000, "5m")}))
    world.pass_by("90s")
    _separate(world)
    world.pass_by("60s")
    store.put(world.ports, "workflow", full("notify"), {"target": SQS}, "ann")
    world.pass_by("30s")
    waiting = [event for job in world.jobs("burst") if job.is_bundle for event in events.of_job(job)]
    for event in waiting[:3]:
        assert lookup.find_job(world.ports, event).job_id == event
    world.pass_by("8m")
    assert (len(world.targets.queue.messages), sent_once(world)) == (3000, True)


@pytest.mark.parametrize("count", [3, 600])
def test_l6_a_fire_that_has_not_come_loses_nothing(world: World, count: int) -> None:
    """Some of its events are prepared. It comes with the new number of events."""
    world.deploy(flights({"burst": many(60, "10m")}))
    world.pass_by("60s")
    assert 0 < len(world.jobs("burst")) < 60
    world.put("burst", many(count, "10m", on_update="drop"))
    world.pass_by("15m")
    assert counted(world) == {NOON + 2 * MINUTE: count}
    assert world.records("burst") == []


def test_l6_a_fire_after_a_new_end_is_on_record_as_a_whole(world: World) -> None:
    world.deploy(flights({"burst": many(60, "10m")}))
    world.pass_by("60s")
    world.put("burst", many(60, "10m", ttl="30s", **CARRY))
    world.pass_by("15m")
    assert counted(world) == {}
    assert sum(record.count for record in world.records("burst")) == 60
