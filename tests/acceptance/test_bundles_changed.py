"""Fires of many events that share rows, and what changes before they are sent: outages and updates (E1, E2, L6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.fires import bundles, fire
from chalicelib.core.instants import HOUR, MINUTE, SECOND, duration
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.rows.stops import Scope
from chalicelib.core.writes import Put
from chalicelib.flow import lookup
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs import actions as actions_of_jobs
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.runs import actions
from chalicelib.flow.schedules import carried, pauses, stops
from tests.acceptance.words import on, time
from tests.support import events
from tests.support.clock import NOON
from tests.support.deliveries_crossed import Interfering, once
from tests.support.schedules import at
from tests.support.world import World, flights, full


def _deployed(cron: str, count: int, over: str | None = None, **rest: Any) -> World:
    world = World(wake_shards=1, history_shards=1)
    spread = {"count": count} | ({"over": over} if over else {})
    world.deploy(flights({"batch": at(cron, "notify", spread=spread, **rest)}))
    return world


def _sent(world: World) -> Counter[str]:
    return Counter(run_id for run_id, _ in world.targets.queue.messages)


def test_e1_bundles_of_many_fires_are_prepared_after_an_outage() -> None:
    world = _deployed("* * * * *", 7)
    world.clock.wait_until(NOON + 3 * HOUR)
    world.pass_by("5m")
    sent = _sent(world)
    assert set(sent.values()) == {1}
    assert len(sent) == 185 * 7
    assert len(events.sent(world, "batch")) == 185 * 7


SQS = {"type": "sqs", "queue_url": "https://sqs.example/sluice-target"}


def _put(
    world: World, count: int, over: str | None = None, records: str = "fire", cron: str = "* * * * *"
) -> None:  # fmt: skip
    spread = {"count": count} | ({"over": over} if over else {})
    batch = at(cron, "notify", spread=spread, on_update="carry")
    world.deploy(flights({"batch": batch}, notify={"target": SQS, "delivery": {"records": records}}))


@pytest.mark.parametrize(("before", "after"), [("fire", "each"), ("each", "fire")])
@pytest.mark.parametrize("emitted", [False, True])
@pytest.mark.parametrize("spread", [(10, None), (5, None), (7, "1s"), (30, "5s")])
def test_l6_another_spread_after_another_kind_of_records(
    before: str, after: str, emitted: bool, spread: tuple[int, str | None]
) -> None:
    world = World(wake_shards=1, history_shards=1)
    _put(world, 7, records=before)
    world.pass_by("4m20s")
    _put(world, 7, records=after)
    if emitted:
        world.pass_by("60s")
    _put(world, *spread, records=after)
    changed_at = world.clock.now()
    world.pass_by("6m")
    sent = _sent(world)
    assert set(sent.values()) == {1}
    by_minute = Counter(sent_at // MINUTE for sent_at in world.targets.queue.sent_at)
    for minute, found in by_minute.items():  # what was prepared at the update keeps its events
        assert found in (7, spread[0]), minute
        assert found == 7 or minute * MINUTE > changed_at, minute
        assert found == spread[0] or minute * MINUTE <= changed_at + fire.PREPARED_FOR // 4, minute


@pytest.mark.parametrize("behind", [1, 900])
@pytest.mark.parametrize(("old", "new"), [((7, None), (10, None)), ((30, "5s"), (30, "6s")), ((30, "5s"), (60, "5s"))])
def test_l6_another_spread_at_the_instant_sends_nothing_twice(
    behind: int, old: tuple[int, str | None], new: tuple[int, str | None]
) -> None:
    """The clock of the update is behind, or it reads the clock before the fire and is committed after that."""
    world = World(wake_shards=1, history_shards=1)
    _put(world, *old)
    first = world.clock.now() + 4 * MINUTE
    world.pass_by("3m")

    def put() -> None:
        world.clock.now = lambda: first - behind  # type: ignore[method-assign]
        try:
            _put(world, *new)
        finally:
            del world.clock.now

    sent_before = len(world.targets.queue.messages)
    assert sent_before
    Interfering(world, after=once(put))
    world.pass_by("4m")
    sent = _sent(world)
    assert set(sent.values()) == {1}
    runs = events.sent(world, "batch")
    assert sorted(runs) == sorted(sent)


def test_w15_a_rerun_of_an_event_carries_its_data() -> None:
    world = _deployed("0 13 * * *", 7, data={"batch": "first"})
    world.clock.wait_until(NOON + HOUR - MINUTE)
    world.pass_by("2m")
    run_id, _ = world.targets.queue.messages[3]
    first = lookup.find_run(world.ports, run_id)[-1].request.data
    world.put("batch", at("0 13 * * *", "notify", spread={"count": 7}, data={"batch": "second"}))
    again = actions.rerun(world.ports, run_id, "request-1")
    world.pass_by("1m")
    assert lookup.find_run(world.ports, again)[-1].request.data == first


@pytest.mark.parametrize("later", ["1ms", "300ms"])
def test_l6_a_divided_bundle_goes_on_in_the_next_generation(later: str) -> None:
    """Its events are jobs, of which some are not due yet, when an update begins a generation."""
    world = _deployed("2 12 2 3 *", 30, "5s")
    world.pass_by("120200ms")
    over = {"spread": {"count": 30, "over": "5s"}}
    each = {"target": SQS, "delivery": {"records": "each"}}
    world.deploy(flights({"batch": at("2 12 2 3 *", "notify", on_update="carry", **over)}, notify=each))
    bundle = world.jobs("batch")[0]
    world.clock.wait_until(bundle.due_at or 0)
    check_job(world.ports, (bundle.schedule, bundle.generation, bundle.sort_key))
    assert any(not job.is_bundle and (job.due_at or 0) > world.clock.now() for job in world.jobs("batch"))
    world.pass_by(later)
    changed = at("2 12 2 3 *", "notify", properties={"changed": True}, **over)
    world.deploy(flights({"batch": changed}, notify=each))
    world.pass_by("3m")
    sent = _sent(world)
    assert (len(sent), set(sent.values())) == (30 - events.on_record(world, "batch"), {1})
    assert len(events.sent(world, "batch")) == len(sent)


LATE = "50 0 13 * * *"  # 50 s after a tick: an update a minute before this fire comes between two ticks
LATE_FIRE = NOON + HOUR + 50 * SECOND


@pytest.mark.parametrize("written", [(0,), (3,), (4, 6), range(7)])
def test_e2_a_fire_that_was_begun_as_jobs_stays_so(written: Sequence[int]) -> None:
    """An emitter wrote some events as jobs and died. The next one would write bundles: a policy has changed."""
    world = _deployed("0 13 * * *", 7)
    timer = world.ports.rows.get(Timer, full("batch"))
    assert timer is not None
    jobs = [fire.fire_of(timer, bundles.LEAF, NOON + HOUR, NOON + HOUR, number) for number in written]
    world.ports.ledger.put_all([*map(Put, jobs)])
    world.pass_by("1h5m")
    sent = _sent(world)
    assert (len(sent), set(sent.values())) == (7, {1})
    assert {job.job_id for job in jobs} <= set(sent)


@pytest.mark.parametrize("records", ["fire", "each"])
@pytest.mark.parametrize("count", [3, 10, 40])
def test_l6_a_cancelled_event_stays_out_of_its_fire(records: str, count: int) -> None:
    """The event has left its bundle. Then an update gives other events to later fires, and a row to each event."""
    world = World(wake_shards=1, history_shards=1)
    _put(world, 30, cron=LATE)
    world.clock.wait_until(LATE_FIRE - 4 * MINUTE)
    world.pass_by("135s")
    cancelled = events.waiting(world, "batch")[2]
    actions_of_jobs.withdraw(world.ports, cancelled, "tester")
    _put(world, count, records=records, cron=LATE)
    world.pass_by("4m")
    numbers = [context["spread"]["index"] for _, context in world.targets.queue.messages]
    assert sorted(numbers) == [number for number in range(30) if number != 2]
    assert [record.id for record in world.records("batch")] == [cancelled]


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("spreads", [
    [(60, "2s"), (40, "1s"), (10, "1s")],
    [(60, "2s"), (50, "3s"), (40, "1s"), (4, "3s")],  # at last as jobs
    [(600, None), (550, "1s"), (400, None), (100, None)],
    [(60, None), (10, None), (60, "2s")],
    [(3, None), (60, None), (40, "1m")],
])  # fmt: skip
def test_l6_a_prepared_fire_keeps_its_spread_over_many_updates(
    spreads: list[tuple[int, str | None]], is_killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``is_killed``: each request ends after its commit, so the ticks and sweeps do the rest."""
    world = World(wake_shards=1, history_shards=1)
    _put(world, *spreads[0], cron=LATE)
    world.clock.wait_until(LATE_FIRE - 4 * MINUTE)
    world.pass_by("135s")
    if is_killed:
        monkeypatch.setattr(emit, "emit_soon", lambda *of: 0)
        monkeypatch.setattr(carried, "refresh_all", lambda *of, **how: None)
    for spread in spreads[1:]:
        _put(world, *spread, cron=LATE)
        world.pass_by("10s")
    monkeypatch.undo()
    world.pass_by("4m")
    sent, (count, over) = _sent(world), spreads[0]
    assert (len(sent), set(sent.values())) == (count, {1})
    assert sorted(events.sent(world, "batch")) == sorted(sent)
    assert world.records("batch") == []
    last = LATE_FIRE + (duration(over) if over else 0)
    assert all(LATE_FIRE <= at_ < last + SECOND for at_ in world.targets.queue.sent_at)


def test_l6_a_fire_after_a_new_end_is_on_record() -> None:
    world = World(wake_shards=1, history_shards=1)
    _put(world, 30, cron=LATE)
    world.clock.wait_until(LATE_FIRE - 4 * MINUTE)
    world.pass_by("135s")
    batch = at(LATE, "notify", spread={"count": 40}, on_update="carry", ttl="1m")
    world.put("batch", batch)
    world.pass_by("4m")
    assert _sent(world) == {}
    assert events.on_record(world, "batch") == 30


@pytest.mark.parametrize("how", ["hold", "stop"])
def test_l4_a_pause_at_the_instant_of_a_large_fire_ends(world: World, how: str) -> None:
    """Its first events were due then, and go on as they are. The others of their call are spread again, so they are not
    sent with these."""
    world.deploy(flights({"s": on(time("0 */10 * * * *"), "notify", spread={"count": 600, "over": "10s"})}))
    world.clock.wait_until(world.clock.now() + 9 * MINUTE)
    world.tick()
    world.clock.wait_until(world.clock.now() + MINUTE)
    if how == "hold":
        pauses.pause(world.ports, full("s"), "hold", "ann")
    else:
        stops.stop(world.ports, Scope("demo"), "repair", "ann")
    passes(world, 3)
    assert events.sent(world, "s") == []
    begun = world.clock.now()
    if how == "hold":
        pauses.resume(world.ports, full("s"), "ann")
    else:
        stops.start(world.ports, Scope("demo"))
    passes(world, 1)
    sent = events.sent(world, "s")
    assert len(sent) == len(set(sent)) == 600
    assert min(world.targets.queue.sent_at) >= begun


def passes(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.settle()
        world.clock.pass_by("1m")
        world.tick()
    world.settle()
