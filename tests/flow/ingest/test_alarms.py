"""A change of an alarm is stored before it is applied; one that no schedule waits for costs one read (T23)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chalicelib.flow.ingest import apply
from tests.acceptance.words import alarm, on
from tests.support.world import World, flights


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


@contextmanager
def counted_calls(world: World) -> Iterator[list[str]]:
    """Counts the calls of the tables in the block."""
    calls: list[str] = []
    world.tables.before_call = lambda: calls.append("call")
    yield calls
    world.tables.before_call = lambda: None


def test_t23_a_change_without_a_waiting_schedule_costs_one_read(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full"))}))
    before = list(world.tables.rows())
    with counted_calls(world) as calls:
        for number in range(50):
            world.alarm(f"of somebody else {number}")
            world.alarm("disk full", "OK")
            world.alarm("disk full", "INSUFFICIENT_DATA")
    assert len(calls) == 150
    assert list(world.tables.rows()) == before


def test_t23_a_repeated_state_costs_nothing(world: World) -> None:
    world.deploy(flights({"mend": on(alarm("disk full", count=9))}))
    change = world.alarm("disk full")
    again = world.alarm("disk full", delivered=False)
    with counted_calls(world) as calls:
        assert world.deliver_alarm(again) == "ignored: the alarm was in the state ALARM before"
    assert calls == []
    assert change.is_new_state


def test_t23_a_stored_change_is_applied_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Lambda is killed after the event is stored. The message comes again, or the tick finds the row."""
    world.deploy(flights({"mend": on(alarm("disk full"))}))
    with monkeypatch.context() as broken:
        broken.setattr(apply, "apply_event", _fails)
        world.alarm("disk full")
        world.settle()
        assert world.runs("mend") == []
    world.pass_by("11m")
    assert len(world.runs("mend")) == 1


def _fails(*args: Any) -> None:
    raise RuntimeError("the Lambda is gone")


def test_t23_more_schedules_than_a_page_may_wait_for_an_alarm(world: World) -> None:
    names = [f"s{number}" for number in range(220)]  # a page has 200
    world.deploy(flights({name: on(alarm("disk full"), "notify") for name in names}))
    world.alarm("disk full")
    world.settle()
    assert [len(world.runs(name)) for name in names] == [1] * len(names)
