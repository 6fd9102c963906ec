"""Fires of many events that share rows: what is sent, what is on record, and what one event still can (E2, E6)."""

from __future__ import annotations

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.flow import lookup
from tests.support import events
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights

ONE = "0 13 * * *"
FIRST = NOON + HOUR


def _world(count: int, over: str | None = None, **rest: object) -> World:
    world = World(wake_shards=1, history_shards=1)
    spread = {"count": count} | ({"over": over} if over else {})
    world.deploy(flights({"batch": at(ONE, "notify", spread=spread, **rest)}))
    world.clock.wait_until(FIRST - MINUTE - 1)
    return world


def test_events_of_an_instant_are_sent_once_each() -> None:
    world = _world(1_000)
    world.pass_by("5m")
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == 1_000
    assert set(world.targets.queue.sent_at) == {FIRST}
    runs = world.runs("batch")
    assert sum(run.count for run in runs) == 1_000
    assert len(runs) == 4, "one row for 250 events"


def test_events_over_a_window_are_sent_at_their_instants() -> None:
    world = _world(600, over="1m")
    world.pass_by("5m")
    sent = dict(zip((run_id for run_id, _ in world.targets.queue.messages), world.targets.queue.sent_at, strict=True))
    assert len(sent) == 600
    for run_id, sent_at in sent.items():
        number = int(run_id.rpartition("-")[2], 36)
        due = FIRST + number * 100
        assert due <= sent_at <= due + 50


def test_one_event_has_a_run() -> None:
    world = _world(1_000)
    world.pass_by("5m")
    run_id, _ = world.targets.queue.messages[777]
    run: Run = lookup.find_run(world.ports, run_id)[-1]
    assert (run.run_id, run.state, run.count) == (run_id, "SUCCEEDED", 1)
    assert run.spread == (777, 1_000)


def test_every_event_is_found_by_its_id() -> None:
    world = _world(300)
    world.pass_by("50s")
    waiting = events.waiting(world, "batch")
    assert len(set(waiting)) == 300
    assert [lookup.find_job(world.ports, job_id).index for job_id in waiting] == list(range(300))
    world.pass_by("5m")
    assert [lookup.find_run(world.ports, job_id)[-1].spread for job_id in waiting] == [(n, 300) for n in range(300)]
