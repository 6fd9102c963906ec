"""A benchmark loads the bytes that the API would have written, so its figures are those of real rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.burst import shot
from benchmarks.loader import load, load_each, rows_of
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow.schedules import actions
from tests.support.world import World

Stored = dict[tuple[str, str, str], Any]
TIMED = {
    "workflow": "w",
    "enabled": True,
    "trigger": {"type": "time", "expression": "0 5 * * *", "zone": "Europe/Paris"},
}
PARTITION = {"workflow": "w", "enabled": True, "trigger": {"type": "partition", "dataset": "d"}}
SHOT = shot("w", 150)


@pytest.mark.parametrize("document", [SHOT, TIMED], ids=["one-shot", "cron"])
def test_e9_a_loaded_schedule_has_the_rows_that_a_put_writes(document: dict[str, Any]) -> None:
    put, loaded = World(), World()
    actions.put(put.ports, "n.a.s", NewSchedule.model_validate(document), "bench", checked=True)
    load(loaded.ports.ledger, ["n.a.s"], document, loaded.clock.now())

    assert _stored(loaded) == _stored(put)
    assert {sk for _, _, sk in _stored(loaded)} == {"STATE", "TIMER", "VERSION#0000000001", "SCHEDULE#s"}


def test_e9_many_schedules_are_loaded_like_one_each_by_name() -> None:
    world = World()
    names = [f"n.a.s{number}" for number in range(600)]
    load(world.ports.ledger, names, SHOT, world.clock.now())

    schedule_states = [key for key in _stored(world) if key[2] == "STATE"]
    assert len(schedule_states) == 600
    timer = world.ports.rows.get(Timer, "n.a.s599")
    assert timer is not None and timer.wake_at == world.clock.now() + 150 * SECOND


def test_schedules_of_several_documents_are_counted_as_they_come() -> None:
    world = World()
    groups = [([f"n.a.s{second}x{number}" for number in range(300)], shot("w", 150 + second)) for second in range(3)]
    counts = list(load_each(world.ports.ledger, groups, world.clock.now()))

    assert counts == [250, 300, 550, 600, 850, 900]
    timers = [world.ports.rows.get(Timer, f"n.a.s{second}x299") for second in range(3)]
    assert [timer and timer.wake_at - world.clock.now() for timer in timers] == [
        (150 + second) * SECOND for second in range(3)
    ]


def test_a_schedule_that_needs_more_than_new_rows_is_refused() -> None:
    with pytest.raises(TypeError, match="only puts new rows"):
        list(rows_of("n.a.s", PARTITION, 0))


def _stored(world: World) -> Stored:
    return dict(_rows(world))


def _rows(world: World) -> Iterator[tuple[tuple[str, str, str], Any]]:
    for table, item in world.tables.rows():
        yield (table, item["pk"]["S"], item["sk"]["S"]), item
