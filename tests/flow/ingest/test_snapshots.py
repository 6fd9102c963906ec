"""The border between the snapshots that a dataset counts and those that were there before it, what is left of a table
whose invocation dies, and the files that no catalog ever names (T21).
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.events.iceberg import parse
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import MINUTE, Millis
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import CountedObject
from chalicelib.flow.ingest import snapshots
from chalicelib.flow.ingest.objects import match_object
from chalicelib.flow.ingest.snapshots import NotCommittedYet
from tests.support.crash import lost, wrap
from tests.support.iceberg_files import BUCKET, PREFIX, TABLE, after, file
from tests.support.world import World, flights

SINGLE = {**TABLE, "single_writer": True}


def made(triggers: dict[str, Any], **datasets: dict[str, Any]) -> World:
    """A world with tables, and a schedule of each trigger."""
    world = World()
    app = flights({
        name: {"workflow": "clean", "enabled": True, "trigger": {"dataset": "orders", **trigger}}
        for name, trigger in triggers.items()
    })  # fmt: skip
    app["datasets"] |= datasets or {"orders": SINGLE}
    world.deploy(app)
    return world


def committed(world: World, key: str, commits: int) -> str:
    """A metadata file comes after this many appends."""
    world.lake.objects[BUCKET, key] = after(commits, world.clock.now())
    return match_object(world.ports, ObjectCreated(BUCKET, key, world.clock.now()))


@pytest.mark.parametrize(("after_the_dataset", "counts"), [(-1, 0), (0, 1), (1, 1)])
def test_t21_a_snapshot_of_the_datasets_own_instant_counts(after_the_dataset: int, counts: int) -> None:
    world = World()
    world.deploy({"datasets": {"orders": SINGLE}})
    world.lake.objects[BUCKET, file(1)] = after(1, world.clock.now() + after_the_dataset)
    world.clock.pass_by("1m")
    match_object(world.ports, ObjectCreated(BUCKET, file(1), world.clock.now()))
    assert len(world.ports.catalog.partitions("demo.orders", 10, None).items) == counts


def test_t21_a_dataset_deleted_meanwhile_counts_no_snapshot() -> None:
    """The invocation has read the document, and the row of the prefix is gone."""
    world = made({})
    row = world.ports.rows.get(Definition, "dataset", "demo.orders")
    assert row is not None
    gone = Dataset.model_validate({**row.document, "prefix": "warehouse/sales/gone/"})
    assert world.ports.rows.get(PrefixRow, gone.bucket, gone.prefix) is None
    content = parse(after(1, world.clock.now() - 1))
    assert snapshots.unknown(world.ports, "demo.gone", gone, content) == []


# -- invocations that die ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", range(1, 8))
def test_t21_each_snapshot_counts_after_a_death_anywhere(effects: int) -> None:
    """The notification comes again after the death. So the parents of a registered snapshot are registered, too."""
    world = made({"each": {"type": "snapshot", "count": 9}})
    points = wrap(world)
    points.armed, points.die_after = True, effects
    assert lost(lambda: committed(world, file(3), 3))
    points.armed = False
    committed(world, file(3), 3)
    world.pass_by("2m")
    assert world.jobs("each")[0].leaves["0"].count == 3


def test_t21_a_tick_counts_what_a_dead_invocation_registered() -> None:
    """Its notification does not come again."""
    world = made({"each": {"type": "snapshot", "count": 9}, "bulk": {"type": "size", "bytes": "1GB"}})
    points = wrap(world)
    points.armed, points.die_after = True, 1
    assert lost(lambda: committed(world, file(1), 1))
    points.armed = False
    world.pass_by("2m")
    assert [world.jobs(name)[0].leaves["0"].count for name in ("each", "bulk")] == [1, 1]


def test_t21_a_snapshot_stored_meanwhile_has_no_outbox_to_apply() -> None:
    world = made({})
    row = world.ports.rows.get(Definition, "dataset", "demo.orders")
    assert row is not None
    dataset = Dataset.model_validate(row.document)
    [snapshot] = parse(after(1, world.clock.now())).snapshots.values()
    assert len(snapshots.register(world.ports, "demo.orders", dataset, snapshot, file(1))) == 1
    assert snapshots.register(world.ports, "demo.orders", dataset, snapshot, file(1)) == []


def test_t21_bytes_of_two_tables_with_equal_snapshot_ids_count() -> None:
    """A table that was copied has the snapshot ids of the other."""
    copied = {**SINGLE, "prefix": "warehouse/sales/copies/"}
    world = made(
        {"bulk": {"type": "size", "bytes": "1GB"}, "copied": {"type": "size", "dataset": "copies", "bytes": "1GB"}},
        orders=SINGLE,
        copies=copied,
    )
    for key in (file(1), file(1).replace(PREFIX, copied["prefix"])):
        assert committed(world, key, 1).startswith("1 new snapshot")
    world.settle()
    assert [world.jobs(name)[0].leaves["0"].amount for name in ("bulk", "copied")] == [50, 50]
    row = world.ports.rows.get(CountedObject, "demo.copies", "snapshot 1", "")
    assert row is not None
    assert (row.dataset, row.object_key, row.etag) == ("demo.copies", "snapshot 1", "")


# -- files that the catalog does not name ------------------------------------------------------------------------------


def named_late() -> World:
    """The catalog names the first metadata file, and not the second one, which was put now."""
    world = made({}, orders={**TABLE, "glue_table": "sales.orders"})
    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{file(1)}"
    for number in (1, 2):
        world.lake.objects[BUCKET, file(number)] = after(number, world.clock.now())
    return world


def notified(world: World, age: Millis) -> str:
    """The second file's notification, so long after the file was put."""
    put_at = world.clock.now()
    world.clock.wait_until(put_at + age)
    return match_object(world.ports, ObjectCreated(BUCKET, file(2), put_at))


def test_t21_a_file_unknown_to_glue_has_two_minutes_to_be_named() -> None:
    with pytest.raises(NotCommittedYet):
        notified(named_late(), 2 * MINUTE - 1)
    assert "no catalog or later metadata file confirms" in notified(named_late(), 2 * MINUTE)


def test_t21_a_file_that_was_never_committed_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    notified(named_late(), 3 * MINUTE)
    [line] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert line.message == "metadata never committed"
    said = {name: vars(line)[name] for name in ("dataset", "key", "current")}
    assert said == {"dataset": "demo.orders", "key": file(2), "current": f"s3://{BUCKET}/{file(1)}"}
