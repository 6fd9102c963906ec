"""A partition comes at the instant at which its dataset is found to be late (T29), in every order of calls."""

from __future__ import annotations

from functools import partial

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import HOUR
from chalicelib.flow.ingest.objects import match_object
from chalicelib.flow.notices import freshness
from tests.acceptance.triggers.test_freshness import app, comes, loads, told, watch
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.snapshot import Start
from tests.support.world import World

STRIDE = 2


def lapsing() -> World:
    """The newest partition is just too old, and nobody has noticed it."""
    made = World(wake_shards=1, history_shards=1)
    made.deploy(app(loads()))
    comes(made, 1)
    made.pass_by("4m")
    made.clock.wait_until(made.clock.now() + 3 * HOUR)
    made.hints.sent.clear()
    return made


def test_t29_a_partition_beside_the_check_leaves_nothing_late() -> None:
    start = Start(lapsing)
    ends: set[tuple[str, ...]] = set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        created = ObjectCreated("lake-bucket", "daily/day=2/part-0.parquet", made.clock.now(), 5)
        acts = partial(freshness.check, made.ports, "demo.daily"), partial(match_object, made.ports, created)
        left = side_by_side(made, *acts, calls)
        made.settle()
        made.pass_by("12m")
        made.settle()
        kinds = tuple(what for what, _, _ in told(made))
        assert kinds in {(), ("data_late", "data_fresh")}, calls
        found = watch(made)
        assert found is not None and found.late_since is None and found.telling is None, calls
        ends.add(kinds)
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert len(ends) == 2
