"""The tick benchmark: real rows in any number, and figures of the tick alone."""

from __future__ import annotations

from typing import Any

from benchmarks import tick
from benchmarks.cost.plant import BEGIN
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.flow.schedules import actions
from tests.support.world import World


def test_e9_filled_tables_have_the_rows_that_a_put_writes() -> None:
    put, filled = World(), World()
    document = {"workflow": tick.WORKFLOW, "enabled": True, "trigger": tick.TIME}
    for world in (put, filled):
        world.clock.wait_until(BEGIN)
    for number in range(120):
        model = NewSchedule.model_validate(document)
        schedule_state, _ = actions.put(put.ports, f"demo.flights.due{number:07d}", model, "bench", checked=True)
        assert schedule_state.mode == "enabled"
    tick.fill(filled.tables, "CatalogTable", "due", 120, tick.TIME)

    wanted = [key for key in _stored(put) if key[0] == "CatalogTable" and key[2] != "TIMER"]
    assert len(wanted) == 3 * 120
    assert {key: _stored(filled)[key] for key in wanted} == {key: _stored(put)[key] for key in wanted}
    # Due within the minute, so the put has prepared the first fire already: only the progress of the timer differs.
    timers = [(_stored(world)["CatalogTable", "SCHEDULE#demo.flights.due0000119", "TIMER"]) for world in (put, filled)]
    assert timers[0].keys() == timers[1].keys()
    assert timers[0]["wake_shard"] == timers[1]["wake_shard"]


def test_e9_a_tick_costs_the_same_among_more_schedules() -> None:
    few, more = tick.of_size(20, ticks=2, due=5), tick.of_size(400, ticks=2, due=5)

    assert (few["schedules"], more["schedules"]) == (20, 400)
    assert few["calls"] > 0 and few["write_units"] > 0
    grown = tick.growth([few, more])
    assert (grown["calls"], grown["read_units"], grown["write_units"]) == (1.0, 1.0, 1.0)


def test_client_side_time_is_counted_separately() -> None:
    class Busy:
        def get_item(self, count: int) -> int:
            return sum(range(count))

    watch = tick.Watch(Busy())
    assert watch.get_item(2_000_000) > 0
    assert watch.ms > 0


def _stored(world: World) -> dict[tuple[str, str, str], Any]:
    return {(table, item["pk"]["S"], item["sk"]["S"]): item for table, item in world.tables.rows()}
