"""A zone that the present rules no longer have: the answer says it, and nothing is lost (T2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.dag import Dag
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow.fires.zone_rules import Follower
from tests.acceptance.words import absent, calendar, on, partition, time, why, window
from tests.support import zone_rules
from tests.support.answers import explain
from tests.support.schedules import at
from tests.support.world import World, day, flights, full

GONE, KEPT = "US/Pacific-New", "America/Vancouver"
WHY = "expected a zone that version 2026y of the time zones has, got 'US/Pacific-New'; name another zone"
Rules = Callable[[str], None]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rules:
    """Computes with the version 2026x, or with 2026y, which no longer has one of the zones."""
    offset = zone_rules.hours(-8)
    versions = {
        "2026x": zone_rules.made(tmp_path, "2026x", {GONE: offset, KEPT: offset}),
        "2026y": zone_rules.made(tmp_path, "2026y", {KEPT: offset}),
    }
    return lambda version: zone_rules.use(monkeypatch, versions[version])


def document(zone: str) -> dict[str, Any]:
    fields = {"zone": zone}
    return flights({
        "tick": at("", "notify", trigger=time("0 6 * * *", zone=zone, excluding=["2026-03-05"])) | fields,
        "late": on(absent(partition(), deadline="06:00", zone=zone), "notify"),
        "hours": on(partition(), "notify", window("06:00", "20:00", zone=zone, on_unmet="abort")),
        "days": on(partition(), "notify", calendar(only=["2026-03-03"], zone=zone)),
        "every": at("@every 1h", "notify", zone=zone),
    })  # fmt: skip


@pytest.fixture
def world(rules: Rules) -> World:
    """The zone is gone; two jobs wait for times in it."""
    rules("2026x")
    world = World()
    world.deploy(document(GONE))
    world.upload(day(1))
    rules("2026y")
    world.settle()
    Follower().step(world.ports)
    return world


def test_t2_nothing_fires_in_an_unknown_zone_and_why_says_it(world: World) -> None:
    timer = world.ports.rows.get(Timer, full("tick"))
    world.pass_by("5h")
    assert world.runs("tick") == world.runs("late") == world.runs("hours") == world.runs("days") == []
    assert len(world.runs("every")) == 5, "an interval needs no rules"
    assert world.ports.rows.get(Timer, full("tick")) == timer
    shown = explain.why_schedule(world.ports, full("tick"))
    assert (shown["why"].endswith(f"; no fire can be computed: {WHY}"), shown["next_fire"]) == (True, None)
    assert WHY in explain.why_schedule(world.ports, full("late"))["why"]
    for name in ("hours", "days"):
        assert WHY in why(world, name)["why"]


def test_t2_once_the_rules_have_the_zone_again_all_goes_on(world: World, rules: Rules) -> None:
    world.pass_by("5h")
    rules("2026x")
    world.pass_by("2h")
    assert [len(world.runs(name)) for name in ("tick", "late", "hours", "days")] == [1, 0, 1, 0]
    world.pass_by("1d")
    assert [len(world.runs(name)) for name in ("tick", "late", "days")] == [2, 1, 1]


def test_t2_another_zone_mends_the_schedule(world: World) -> None:
    changed = document(KEPT)
    assert "schedule demo.flights.tick" in world.deploy(changed)["replaced"]
    world.pass_by("3h")
    assert len(world.runs("tick")) == 1


@pytest.mark.parametrize("name", ["tick", "late", "hours", "days"])
def test_t2_a_schedule_in_an_unknown_zone_can_be_stopped(world: World, name: str) -> None:
    world.pause(name)
    world.resume(name)
    world.disable(name)
    world.delete(name)


@pytest.mark.parametrize("name", ["tick", "late"])
def test_t2_an_enable_refuses_an_unknown_zone(world: World, name: str) -> None:
    world.disable(name)
    with pytest.raises(SluiceError, match="expected a time zone such as Europe/Paris or UTC, got 'US/Pacific-New'"):
        world.enable(name)


def test_t2_a_document_that_is_sent_may_not_name_it(world: World) -> None:
    with pytest.raises(ValidationError, match="expected a time zone such as Europe/Paris or UTC, got 'US/Pacific-New'"):
        world.deploy(document(GONE))
    with pytest.raises(ValidationError, match="expected a time zone such as Europe/Paris or UTC, got 'US/Pacific-New'"):
        world.message("m", schedule="0 6 * * *", zone=GONE)


def test_t2_a_dag_in_an_unknown_zone_stays_readable(rules: Rules) -> None:
    rules("2026x")
    dag = {"trigger": time("0 6 * * *", zone=GONE), "zone": GONE, "nodes": {"one": {"workflow": "clean"}}, "edges": []}
    world = World()
    world.deploy(flights({}) | {"dags": {"daily": dag}})
    rules("2026y")
    stored = world.ports.rows.get(Definition, "dag", full("daily"))
    assert Dag.model_validate(stored.document).zone == GONE
    world.deploy(flights({}) | {"dags": {"daily": dag | {"zone": KEPT, "trigger": time("0 6 * * *")}}})
