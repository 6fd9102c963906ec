"""Lambdas die while stored instants follow new rules of time zones: no fire is lost, none comes twice (T2, O3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.instants import iso, parse_instant
from chalicelib.flow.fires.zone_rules import Follower
from chalicelib.flow.schedules import pauses
from tests.acceptance.words import on, partition, time, window
from tests.support import zone_rules
from tests.support.crash import lost, wrap
from tests.support.schedules import at
from tests.support.world import World, day, flights, full

ZONE = "America/Vancouver"


def deployed() -> World:
    """One fire is prepared, one is hours ahead, one is skipped, a job waits for its hours."""
    world = World(wake_shards=1, history_shards=1)

    def daily(expression: str, **fields: Any) -> dict[str, Any]:
        return at("", "notify", trigger=time(expression, zone=ZONE)) | fields

    world.deploy(
        flights({
            "prepared": daily("0 6 * * *"),
            "spread": daily("0 6 * * *", coalesce=False, spread={"count": 3}),
            "ahead": daily("0 8 * * *"),
            "skipped": daily("0 8 * * *"),
            "data": on(partition(), "notify", window("06:00", "20:00", zone=ZONE)),
        })
    )  # fmt: skip
    pauses.skip(world.ports, full("skipped"), parse_instant("2026-03-02T15:00:00Z"), "tester")
    world.pass_by("59m")
    world.upload(day(1))
    world.settle()
    return world


def play(monkeypatch: pytest.MonkeyPatch, folder: Path, death: int | None) -> int:
    """Plays the day with a kill after an effect of the first tick that follows. Returns the number of its effects."""
    rules = {offset: zone_rules.made(folder, f"2026{offset}", {ZONE: zone_rules.hours(offset)}) for offset in (-7, -8)}
    zone_rules.use(monkeypatch, rules[-7])
    world = deployed()
    zone_rules.use(monkeypatch, rules[-8])
    points = wrap(world)
    points.die_after, points.armed = (death,) if death is not None else (), True
    lost(lambda: Follower().step(world.ports))
    points.ends_act()
    points.armed = False
    for _ in range(12 * 60):
        Follower().step(world.ports)
        world.pass_by("1m")
    found = {name: [iso(run.claimed_at)[11:16] for run in world.runs(name)] for name in ("prepared", "spread", "ahead")}
    assert found == {"prepared": ["14:00"], "spread": ["14:00"] * 3, "ahead": ["16:00"]}, death
    assert world.runs("skipped") == [], death
    assert [iso(run.claimed_at)[11:16] for run in world.runs("data")] == ["14:00"], death
    return points.in_act or 0


def test_t2_a_death_while_instants_follow_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    effects = play(monkeypatch, tmp_path, None)
    assert effects >= 5
    for death in range(1, effects + 1):
        play(monkeypatch, tmp_path, death)
