"""H6: a Lambda that dies while it sends events of OpenLineage loses none, and none gets another id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.openlineage.outlets import Item, Later, Outcome, Sent
from tests.acceptance.words import day
from tests.support import dags
from tests.support.crash import Crash
from tests.support.dags import dag, ends
from tests.support.openlineage import Lineage
from tests.support.world import World


class Dying:
    """An outlet that kills its Lambda after so many events, or does not take the next ones; then it takes all."""

    def __init__(self, after: int, kills: bool) -> None:
        self.left, self.kills = after, kills
        self.events: list[dict[str, Any]] = []

    def send(self, items: Sequence[Item]) -> list[Outcome]:
        found: list[Outcome] = []
        for item in items:
            if self.left == 0:
                self.left = -1
                if self.kills:
                    raise Crash("sent")
                return [*found, *[Later("HTTP 503", failed=True)] * (len(items) - len(found))]
            self.left -= 1
            self.events.append(item.event)
            found.append(Sent())
        return found


@pytest.fixture(scope="module")
def played() -> Lineage:
    """A DAG run of two nodes, of which the last one fails, and which is mended."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(dags.app(dag("a -> b")))
    lineage = Lineage(world)
    world.upload(day(1))
    world.settle()
    ends(world, "a")
    ends(world, "b", "FAILED", "disk full")
    return lineage


def sent_by(lineage: Lineage, outlet: Any, changes: Any, restarts: bool) -> list[dict[str, Any]]:
    lineage.outlet, lineage.changes = outlet, list(changes)
    lineage.restart()
    for _ in range(3):
        try:
            lineage.work()
        except Crash:
            restarts = True
        if restarts:
            lineage.restart()
    assert lineage.changes == []
    return list(outlet.events)


@pytest.mark.parametrize("kills", [True, False], ids=["killed", "not taken"])
def test_h6_a_death_after_any_event_loses_none(played: Lineage, kills: bool) -> None:
    changes = list(played.changes)
    whole = sent_by(played, Dying(-1, kills), changes, restarts=False)
    assert [event["eventType"] for event in whole if event["job"]["name"] == "flights.daily"][-1] == "FAIL"
    for after in range(len(whole)):
        found = sent_by(played, Dying(after, kills), changes, restarts=after % 2 == 0)
        distinct = [event for number, event in enumerate(found) if event not in found[:number]]
        assert distinct == whole
    played.changes = changes
    assert played.letters.kept == []
