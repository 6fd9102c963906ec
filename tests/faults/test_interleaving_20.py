"""Interleaving 20: events that come before their run is recorded, lost answers, and messages that return after three
weeks. Each case has one run, and none is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.events import partitions as event_partitions
from chalicelib.core.instants import DAY, HOUR
from chalicelib.flow.ingest import objects
from chalicelib.flow.system import dispatch
from tests.faults import invariants
from tests.faults.meetings.entry import try_two
from tests.faults.meetings.situation import two
from tests.faults.meetings.situations_queues import made
from tests.faults.test_interleavings_launch import LIMIT, before
from tests.support.schedules import after, at_most, partitions
from tests.support.world import APPLICATION, World, day, flights

CLOSED = {"workflow": "clean", "enabled": True, "trigger": {"type": "event", "event": "orders.closed"}}


@pytest.fixture
def world() -> World:
    made = World(wake_shards=1, history_shards=1)
    made.deploy(flights({"daily": partitions(by=["day"], **at_most(1)), "next": after("clean", "join")}))
    return made


def one_run_that(world: World, state: str) -> None:
    [run] = world.runs("daily")
    assert (run.state, run.target_id) == (state, f"{APPLICATION}/jr00001")
    assert [made.name for made in world.targets.emr.runs.values()].count(run.request.name) == 1
    assert world.limit_state(LIMIT).active == (0 if state == "SUCCEEDED" else 1)


def test_interleaving_20_emr_reports_all_before_id_is_recorded(world: World) -> None:
    def all_of_it() -> None:
        for state in ("RUNNING", "SUCCESS"):
            world.emr_says("jr00001", state)

    before(world, "Put", all_of_it)
    world.upload(day(1))
    world.settle()
    one_run_that(world, "SUCCEEDED")
    assert len(world.runs("next")) == 1
    world.pass_by("30m")
    assert len(world.targets.emr.calls) == 2, "one for each workflow, and none again"


@pytest.mark.parametrize("reported", [(), ("RUNNING",), ("SUCCESS",), ("RUNNING", "SUCCESS"), ("SUCCESS", "RUNNING")])
def test_interleaving_20_one_run_with_or_without_later_events(world: World, reported: tuple[str, ...]) -> None:
    world.targets.emr.lose_answers = 1
    world.upload(day(1))
    world.settle()
    for state in reported:
        world.emr_says("jr00001", state)
    world.pass_by("5m")
    one_run_that(world, "SUCCEEDED" if "SUCCESS" in reported else "RUNNING" if reported else "STARTING")
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("12m")
    one_run_that(world, "SUCCEEDED")
    assert len(world.runs("next")) == 1


@pytest.mark.parametrize("answer", ["arrives", "lost"])
def test_interleaving_20_a_start_and_its_events_in_every_order(answer: str, record_property: Any) -> None:
    """The event comes as soon as EMR has the run, before or after any call of the starting invocation."""

    def build() -> World:
        def upload(world: World) -> None:
            world.targets.emr.lose_answers = int(answer == "lost")
            world.upload(day(1))

        return made(flights({"daily": partitions(by=["day"], **at_most(1))}), upload)

    def reported(world: World) -> None:
        for state in ("RUNNING", "SUCCESS"):
            if "jr00001" in world.targets.emr.runs:
                world.emr_says("jr00001", state)

    def rest(world: World) -> None:
        world.emr_says("jr00001", "SUCCESS")
        world.pass_by("5m")
        one_run_that(world, "SUCCEEDED")

    situation = two(build, lambda world: world.settle(), reported, rest=rest, check_rest=invariants.check_rest)
    try_two(situation, most=60, least=20, note=record_property)


def expire(world: World) -> int:
    """Delete the rows whose time to live has ended, as DynamoDB does. Returns the number of deleted rows."""
    now, gone = world.clock.now() // 1000, 0
    for table in world.tables._tables.values():
        for key, item in list(table.items.items()):
            if "ttl" in item and int(item["ttl"]["N"]) <= now:
                table.replace(key, None)
                gone += 1
    return gone


def _object(world: World) -> Callable[[], Any]:
    created = event_partitions.ObjectCreated("lake-bucket", day(1), world.clock.now())
    return lambda: objects.match_object(world.ports, created)


def _custom(world: World) -> Callable[[], Any]:
    return lambda: world.post("orders.closed", "n1")


def _hints(world: World) -> Callable[[], Any]:
    """The hints of an uploaded object, to be delivered again after its run has started."""
    _object(world)()
    refs = [ref for _, ref in world.hints.sent]
    assert refs
    return lambda: [dispatch.dispatch(world.ports, ref) for ref in refs]


MESSAGES = {"an object": _object, "a custom event": _custom, "a hint": _hints}


def deployed() -> World:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({"daily": partitions(timeout="never"), "closed": CLOSED}))
    world.clock.pass_by("1h")
    return world


def ran(world: World) -> list[str]:
    return [run.state for name in ("daily", "closed") for run in world.runs(name)]


@pytest.mark.parametrize("kind", MESSAGES)
def test_interleaving_20_a_handled_message_repeats_after_3_weeks(
    kind: str,
) -> None:
    world = deployed()
    deliver = MESSAGES[kind](world)
    deliver()
    world.settle()
    world.finish()
    assert ran(world) == ["SUCCEEDED"]
    world.clock.wait_until(world.clock.now() + 21 * DAY)
    world.tick()
    expire(world)

    deliver()
    world.settle()
    world.emr_says("jr00001", "RUNNING")  # and so are the rows of its run
    world.pass_by("5m")

    assert ran(world) == ["SUCCEEDED"]
    assert len(world.targets.emr.calls) == 1


@pytest.mark.parametrize("kind", MESSAGES)
def test_interleaving_20_unhandled_message_is_kept_three_weeks(kind: str) -> None:
    world = deployed()
    deliver = MESSAGES[kind](world)
    world.hints.sent.clear()
    world.clock.wait_until(world.clock.now() + 21 * DAY)
    expire(world)

    deliver()
    world.settle()
    world.finish()
    world.pass_by("5m")

    assert ran(world) == ["SUCCEEDED"]


def test_interleaving_20_news_of_a_forgotten_run_changes_nothing() -> None:
    world = deployed()
    _object(world)()
    world.settle()
    world.finish()
    world.clock.wait_until(world.clock.now() + 200 * DAY + HOUR)
    assert expire(world) > 1
    assert "was not started by Sluice" in world.emr_says("jr00001", "FAILED")
    world.settle()
    assert ran(world) == []
    assert len(world.targets.emr.calls) == 1
