"""Schedules of one document share what is parsed, unless their triggers learn holidays (`flow/lookup.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from tests.support.world import SQS, World

DAILY: dict[str, Any] = {"workflow": "notify", "trigger": {"type": "time", "expression": "0 6 * * *"}}
AT_WORK: dict[str, Any] = DAILY | {
    "trigger": {"type": "time", "expression": "0 17 LW * *", "zone": "Europe/Paris", "calendar": "france"}
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(lookup, "_PARSED", {})
    made = World()
    calendars = {"france": {"days": ["2026-05-01"]}}
    made.deploy({"workflows": {"notify": {"target": SQS}}, "calendars": calendars})
    return made


def parsed(world: World, name: str) -> Schedule:
    found = lookup.definition_of(world.ports, world.ports.rows.get(ScheduleState, f"demo.flights.{name}"))
    assert found is not None
    return found


def test_one_document_is_parsed_once(world: World) -> None:
    world.put("a", DAILY)
    world.put("b", DAILY)
    assert parsed(world, "a") is parsed(world, "b") is parsed(world, "a")


def test_another_document_or_version_is_parsed_by_itself(world: World) -> None:
    world.put("a", DAILY)
    world.put("b", DAILY | {"properties": {"shop": "b"}})
    first = parsed(world, "a")
    assert parsed(world, "b").properties == {"shop": "b"}
    assert first.properties == {}
    world.put("a", DAILY | {"properties": {"shop": "a"}})
    assert parsed(world, "a").properties == {"shop": "a"}
    assert first.properties == {}


def test_a_schedule_with_a_calendar_learns_its_holidays_alone(world: World) -> None:
    world.put("a", AT_WORK)
    world.put("b", AT_WORK)
    assert parsed(world, "a") is not parsed(world, "b")


def test_a_large_document_is_not_kept(world: World) -> None:
    world.put("a", DAILY | {"properties": {"text": "x" * lookup.MAX_KEPT}})
    assert parsed(world, "a").properties["text"]
    assert lookup._PARSED == {}


def test_few_documents_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_PARSED", 3)
    for number in range(8):
        world.put(f"s{number}", DAILY | {"properties": {"number": number}})
        parsed(world, f"s{number}")
        assert len(lookup._PARSED) <= 3
    assert parsed(world, "s0").properties == {"number": 0}
