"""What the end of an element of a node with ``each`` costs: as much among 1,000 elements as among 10 (W19)."""

from __future__ import annotations

import pytest

from benchmarks.cost.meter import MeteredDynamo
from benchmarks.cost.plant import fresh_tables, new_tally
from benchmarks.cost.tally import Tally
from chalicelib.core.results import Result
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from tests.support import dags
from tests.support.world import World, day


def ending(count: int, concurrency: int) -> Tally:
    """What the end of the second of so many elements costs. Each value is a number of one digit."""
    client, names, schema = fresh_tables()
    metered = MeteredDynamo(client, schema, new_tally())
    world = World(metered, names, wake_shards=1, history_shards=1)
    load = {"workflow": "w_load", "each": {"of": "scan", "concurrency": concurrency}}
    world.deploy(dags.app(dags.dag("scan -> load", nodes={"load": load})))
    world.upload(day(1))
    world.settle()
    _end(world, dags.views(world)[0]["nodes"]["scan"]["run_id"], Result([0] * count))
    begun = [run.request["run_id"] for run in world.targets.emr.runs.values() if "each" in run.request]
    for run_id in begun[:2]:
        metered.tally = new_tally()
        _end(world, run_id, Result())
    return metered.tally


def _end(world: World, run_id: str, result: Result) -> None:
    complete.advance_run(world.ports, run_id, 1, RunUpdate("SUCCEEDED", world.clock.now(), result=result))
    world.settle()


@pytest.mark.parametrize("another_begins", [True, False])
def test_w19_an_end_costs_the_same_among_10_and_1000(another_begins: bool) -> None:
    """If another element begins, its end also reads the list, which has 1 KB more for each 500 of these numbers."""
    few, many = (ending(count, 3 if another_begins else count) for count in (10, 1000))
    assert dict(few.calls) == dict(many.calls)
    assert _written(few) == _written(many)
    assert _read(many) - _read(few) <= (1 if another_begins else 0)


def _written(tally: Tally) -> float:
    """The units of what was written, but for the limit of the workflow: its row has the runs that are active."""
    units = tally.table_units + tally.index_units
    return float(sum(count for what, count in units.items() if not what.row.startswith("LIMIT")))


def _read(tally: Tally) -> float:
    return float(sum(count for what, count in tally.reads.items() if not what.row.startswith("LIMIT")))
