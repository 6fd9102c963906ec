"""Objects in two folders of one period are processed at once (T24): one partition, one run, in every order of calls."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.ingest.objects import match_object, register_values
from tests.acceptance.triggers.test_periods import BY, HOURS, clicks, stored
from tests.acceptance.words import on
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.snapshot import Start
from tests.support.world import World

STRIDE = 3
BARE, PADDED = "dt=2026-03-02/hour=7", "dt=2026-03-02/hour=07"


def world() -> World:
    made = World(wake_shards=1, history_shards=1)
    made.deploy(clicks({"s": on({"type": "partition", "dataset": "clicks"}, by=BY)}, HOURS))
    return made


def object_in(folder: str, made: World) -> ObjectCreated:
    return ObjectCreated("lake-bucket", f"raw/clicks/{folder}/part-0.parquet", made.clock.now(), 5)


def check_one(made: World, calls: tuple[int, int]) -> Partition:
    """The only partition, which one run got, at the path of the folder that was first."""
    made.settle()
    [run] = made.runs("s")
    [row] = made.ports.catalog.partitions("demo.clicks", 10, None).items
    [event] = made.context(run)["events"]
    assert (row.values, event["path"]) == (("2026-03-02", "07"), row.event.path), calls
    return row


def test_t24_two_folders_at_once_are_one_partition() -> None:
    start = Start(world)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        acts = [partial(match_object, made.ports, object_in(folder, made)) for folder in (BARE, PADDED)]
        left = side_by_side(made, acts[0], acts[1], calls)
        first = check_one(made, calls).event.path or ""
        noted: Any = made.ports.rows.get(IgnoredObjects, "demo.clicks")
        second = PADDED if first.endswith("hour=7/") else BARE
        assert [(each["code"], each["of"]) for each in noted.objects] == [("other_folder", second)], calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def test_t24_a_registration_beside_an_object_is_one_partition() -> None:
    start = Start(world)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        named = {"partition": {"dt": "2026-03-02", "hour": "07"}}
        register = partial(register_values, made.ports, "demo.clicks", stored(made), named)
        left = side_by_side(made, register, partial(match_object, made.ports, object_in(BARE, made)), calls)
        check_one(made, calls)
        return left

    assert len(list(every_order(play, STRIDE))) > 10
