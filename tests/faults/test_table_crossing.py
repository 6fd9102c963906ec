"""Two metadata files of a table are processed at once (T21): each snapshot counts once, in every order of calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.flow.definitions import store
from chalicelib.flow.ingest.objects import match_object
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.iceberg_files import BUCKET, TABLE, file, lay_down
from tests.support.snapshot import Start
from tests.support.world import World, flights

COUNT = 9
STRIDE = 5


def world_with_commits(commits: int) -> World:
    world = World(wake_shards=1, history_shards=1)
    counted = {
        "workflow": "clean",
        "enabled": True,
        "trigger": {"type": "snapshot", "dataset": "orders", "count": COUNT},
    }
    weighed = {"workflow": "join", "enabled": True, "trigger": {"type": "size", "dataset": "orders", "bytes": "1GB"}}
    app: dict[str, Any] = flights({})
    app["datasets"]["orders"] = TABLE
    world.deploy(app)
    for name, schedule in {"count": counted, "weigh": weighed}.items():
        world.put(name, schedule)
    lay_down(world, commits)
    return world


@pytest.mark.parametrize(("first", "second"), [(3, 4), (4, 3)])
def test_t21_two_files_at_once_count_each_snapshot_once(first: int, second: int) -> None:
    newest = max(first, second) - 1
    start = Start(lambda: world_with_commits(4))

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        world = start.again()
        at = world.clock.now()
        acts = [partial(match_object, world.ports, ObjectCreated(BUCKET, file(each), at)) for each in (first, second)]
        left = side_by_side(world, acts[0], acts[1], calls)
        world.settle()
        [counted], [weighed] = world.jobs("count"), world.jobs("weigh")
        assert counted.leaves["0"].count == newest, calls
        assert weighed.leaves["0"].amount == 50 * newest, calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def test_t21_a_dataset_may_not_become_a_table_or_cease_to_be_one() -> None:
    from chalicelib.core.errors import SluiceError

    world = world_with_commits(0)
    files = {"bucket": BUCKET, "prefix": TABLE["prefix"], "keys": ["day"]}
    with pytest.raises(SluiceError, match="expected the format that the dataset has, iceberg"):
        store.put(world.ports, "dataset", "demo.orders", files, "tester")
    app: dict[str, Any] = flights({})
    app["datasets"]["orders"] = files
    with pytest.raises(SluiceError, match="expected the format that the dataset has, iceberg"):
        world.deploy(app)
