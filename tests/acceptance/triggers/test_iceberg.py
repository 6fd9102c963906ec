"""Commits of Iceberg tables (T21): each committed snapshot that brings new data is an event, once. The tables are
written by pyiceberg."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.events.iceberg import BadMetadata
from chalicelib.core.rows.event import Partition
from chalicelib.flow.ingest.snapshots import NotCommittedYet
from chalicelib.log import logger
from tests.acceptance.words import any_of, doze, on, size, why
from tests.support.backfills import begin
from tests.support.iceberg import BUCKET, PREFIX, Orders, app, edited, orders, reported
from tests.support.world import World

SINGLE = {"single_writer": True}


def snapshots(count: int = 1) -> dict[str, Any]:
    return {"type": "snapshot", "dataset": "orders", "count": count}


@pytest.fixture
def table(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def registered(world: World) -> dict[str, Partition]:
    found = world.ports.catalog.partitions("demo.orders", 1000, None).items
    return {row.values[0]: row for row in found}


# -- what counts -------------------------------------------------------------------------------------------------------


def test_t21_each_snapshot_counts_once_and_reaches_the_run(world: World, table: Orders) -> None:
    world.deploy(app({"three": on(snapshots(3))}, **SINGLE))
    table.append(1, 2)
    table.append(3)
    table.deliver(world)
    assert "waits for 1 snapshot of demo.orders (2 snapshots of demo.orders came" in why(world, "three")["why"]

    table.append(4, 5, 6)
    table.deliver(world, table.keys()[-1])
    assert reported(world, "three") == [table.snapshots]
    events = [event["snapshot"] for event in world.context(world.runs("three")[0])["events"]]
    first, _, last = sorted(events, key=lambda event: event["sequence_number"])
    assert first["parent_id"] is None
    assert (last["operation"], last["added_records"], last["total_records"]) == ("append", 3, 6)
    assert (last["added_data_files"], last["deleted_data_files"]) == (1, 0)
    assert last["added_files_size"] > 0


def test_t21_a_commit_notified_again_or_out_of_order_counts_once(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(4))}, **SINGLE))
    for number in range(3):
        table.append(number)
    first, second, third = table.keys()[1:]
    said = table.deliver(world, third, first, second, third)
    assert [text.split()[0] for text in said] == ["3", "0", "0", "0"]
    assert sorted(registered(world)) == sorted(table.snapshots)

    doze(world, "1h")
    table.deliver(world, third)
    assert world.jobs("each")[0].leaves["0"].count == 3


def test_t21_commits_with_lost_notifications_come_with_the_next(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots())}, **SINGLE))
    table.append(1)
    table.deliver(world, table.keys()[-1])
    table.append(2)
    table.append(3)
    table.append(4)
    table.deliver(world, table.keys()[-1])
    counted = [name for run in reported(world, "each") for name in run]
    assert sorted(counted) == sorted(table.snapshots)


def test_t21_snapshots_before_the_dataset_do_not_count(world: World, table: Orders) -> None:
    for number in range(3):
        table.append(number)
    history = table.snapshots
    world.clock.wait_until(table.table.current_snapshot().timestamp_ms + 1)
    world.deploy(app({"each": on(snapshots(2))}, **SINGLE))
    table.commit(lambda table: table.transaction().set_properties(owner="sales").commit_transaction())
    assert table.deliver(world, table.keys()[-1]) == ["0 new snapshots of demo.orders"]
    assert world.jobs("each") == []

    table.append(9)
    table.deliver(world, table.keys()[-1])
    assert set(registered(world)) == set(table.snapshots) - set(history)


def test_t21_removed_or_rewritten_data_counts_only_if_named(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    table.append(1, 2, 3)
    table.commit(lambda table: table.overwrite(orders(7)))  # a delete and an append, in one commit
    table.commit(lambda table: table.delete("number = 7"))
    table.append(8, 9)
    table.commit(lambda table: table.delete("number = 8"))  # rewrites a file: an overwrite
    table.deliver(world)
    known = registered(world)
    operations = [known[name].event.payload["operation"] for name in table.snapshots]
    assert operations == ["append", "delete", "append", "delete", "append", "overwrite"]
    assert world.jobs("each")[0].leaves["0"].count == 4

    document = app({"each": on(snapshots(9))}, operations=["delete"], **SINGLE)
    world.deploy(document)
    table.commit(lambda table: table.delete("number = 9"))
    table.deliver(world, table.keys()[-1])
    assert world.jobs("each")[0].leaves["0"].count == 5, "deletes of before stay left out"


def test_t21_a_compaction_does_not_count(world: World, table: Orders) -> None:
    """pyiceberg cannot compact, so the test changes the operation in a metadata file of pyiceberg."""
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    table.append(1)
    table.append(2)
    table.deliver(world, table.keys()[-2])
    compacted = edited(
        table.content(table.keys()[-1]),
        lambda metadata: metadata["snapshots"][-1]["summary"].update(operation="replace"),
    )
    assert world.upload(table.keys()[-1], text=compacted) == "0 new snapshots of demo.orders, 1 left out by operation"
    world.settle()
    assert world.jobs("each")[0].leaves["0"].count == 1
    assert registered(world)[table.snapshots[-1]].wake_at is None


def test_t21_bytes_that_snapshots_add_count_for_a_size(world: World, table: Orders) -> None:
    table.append(1)
    added = int(table.table.current_snapshot().summary["added-files-size"])
    world.deploy(app({"bulk": on(size(str(added + 1), "orders"))}, **SINGLE))
    table.deliver(world, *table.keys(), *table.keys())
    world.upload(PREFIX + "data/00000-0-1.parquet", size=10**9)
    world.settle()
    assert world.jobs("bulk")[0].leaves["0"].amount == added

    table.append(2)
    table.deliver(world)
    assert reported(world, "bulk") == [table.snapshots]
    events = world.context(world.runs("bulk")[0])["events"]
    assert {event["bytes"] for event in events} == {event["snapshot"]["added_files_size"] for event in events}


def test_t21_a_snapshot_without_bytes_counts_nothing_for_a_size(world: World, table: Orders) -> None:
    both = on(any_of(size("1GB", "orders"), snapshots(100)))
    world.deploy(app({"bulk": both}, operations=["append", "delete"], **SINGLE))
    table.append(1)
    table.commit(lambda table: table.delete("number = 1"))
    table.deliver(world)
    leaves = world.jobs("bulk")[0].leaves
    assert (leaves["0"].count, leaves["1"].count) == (1, 2)


def test_t21_a_size_asked_for_later_counts_no_earlier_snapshot(world: World, table: Orders) -> None:
    world.deploy(app({}, **SINGLE))
    table.append(1)
    table.deliver(world)
    world.deploy(app({"bulk": on(any_of(size("1GB", "orders"), snapshots(100)))}, **SINGLE))
    table.append(2)
    table.deliver(world)
    assert {leaf.count for leaf in world.jobs("bulk")[0].leaves.values()} == {1}


def test_t21_jobs_can_be_correlated_by_snapshot(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(), by=["snapshot"])}, **SINGLE))
    table.append(1)
    table.append(2)
    table.deliver(world)
    assert sorted(reported(world, "each")) == sorted([name] for name in table.snapshots)


# -- rollback, expiry, branches ----------------------------------------------------------------------------------------


def test_t21_a_rollback_is_no_event_but_commits_after_it_are(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    first, _ = table.append(1), table.append(2)
    back = int(table.snapshots[0])
    table.commit(lambda table: table.manage_snapshots().rollback_to_snapshot(back).commit())
    table.deliver(world)
    assert len(registered(world)) == 2

    table.append(3)
    assert table.deliver(world, table.keys()[-1], first) == [
        "1 new snapshot of demo.orders",
        "0 new snapshots of demo.orders",
    ]
    assert sorted(registered(world)) == sorted(table.snapshots)


def test_t21_a_snapshot_expired_before_it_was_read_is_no_event(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    for number in range(3):
        table.append(number)
    expired = table.snapshots[:2]
    table.commit(lambda table: table.maintenance.expire_snapshots().by_ids([int(name) for name in expired]).commit())
    table.deliver(world, table.keys()[-1])
    assert sorted(registered(world)) == table.snapshots
    assert len(table.snapshots) == 1


def test_t21_a_branch_counts_when_it_is_merged_into_main(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    table.append(1)
    main = int(table.snapshots[0])
    table.commit(lambda table: table.manage_snapshots().create_branch(main, "audit").commit())
    table.commit(lambda table: table.append(orders(2), branch="audit"))
    table.deliver(world)
    assert list(registered(world)) == [str(main)]

    audited = int(table.snapshots[-1])
    table.commit(lambda table: table.manage_snapshots().set_current_snapshot(audited).commit())
    table.deliver(world, table.keys()[-1])
    assert sorted(registered(world)) == sorted(table.snapshots)


# -- what is committed -------------------------------------------------------------------------------------------------


def test_t21_without_a_catalog_the_next_file_confirms_a_snapshot(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}))
    table.append(1)
    table.append(2)
    table.deliver(world)
    assert list(registered(world)) == table.snapshots[:1]

    table.commit(lambda table: table.transaction().set_properties(owner="sales").commit_transaction())
    table.deliver(world, table.keys()[-1])
    assert sorted(registered(world)) == sorted(table.snapshots)


def test_t21_a_commit_that_lost_its_race_is_no_event(world: World, table: Orders) -> None:
    """Two writers make version 2 of the table at once. Both files exist; the next commit is based on one of them."""
    world.deploy(app({"each": on(snapshots(9))}))
    table.append(1)
    table.append(2)
    winner = table.keys()[-1]
    lost = edited(table.content(winner), _another_commit)
    loser = winner.replace("/metadata/00002-", "/metadata/00002-1")
    assert loser != winner
    assert world.upload(loser, text=lost) == "no catalog or later metadata file confirms what is new in demo.orders"
    table.deliver(world)
    assert world.upload(loser, text=lost) == "0 new snapshots of demo.orders"
    table.append(3)
    table.deliver(world, table.keys()[-1])
    assert sorted(registered(world)) == sorted(table.snapshots[:2])


def test_t21_a_file_named_by_the_glue_catalog_counts_at_once(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, glue_table="sales.orders"))
    table.append(1)
    current = table.keys()[-1]
    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{current}"
    assert table.deliver(world, current) == ["1 new snapshot of demo.orders"]

    table.append(2)
    table.append(3)
    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{table.keys()[-1]}"
    said = table.deliver(world, *table.keys()[-2:])
    assert said == ["1 new snapshot of demo.orders", "1 new snapshot of demo.orders"]
    assert sorted(registered(world)) == sorted(table.snapshots)


def test_t21_a_file_unknown_to_glue_is_retried_until_it_has_lost(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, glue_table="sales.orders"))
    table.append(1)
    first = table.keys()[-1]
    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{first}"
    table.append(2)
    second = table.keys()[-1]
    table.deliver(world, first)
    put_at = world.clock.now()
    with pytest.raises(NotCommittedYet, match="of the Glue catalog to have named"):
        table.deliver(world, second)
    assert list(registered(world)) == table.snapshots[:1]

    doze(world, "3m")
    assert "confirms" in _notified(world, second, put_at)
    assert list(registered(world)) == table.snapshots[:1]

    world.lake.glue["sales.orders"] = f"s3://{BUCKET}/{second}"
    assert _notified(world, second, put_at) == "1 new snapshot of demo.orders"


def test_t21_numbered_metadata_files_are_commits_without_catalog(world: World, table: Orders) -> None:
    """A table without a catalog: its metadata files are called v1, v2, ..."""
    world.deploy(app({"each": on(snapshots(9))}))
    table.append(1)
    assert world.upload(f"{PREFIX}metadata/v2.metadata.json", text=table.content(table.keys()[-1])).startswith("1 new")


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["00002-1.gz.metadata.json", "00002-1.metadata.json.gz"])
def test_t21_compressed_metadata_is_read(world: World, table: Orders, name: str) -> None:
    """pyiceberg writes no compressed files. The test compresses its files under the names that Java's writers use."""
    world.deploy(app({"each": on(snapshots(9))}))
    first, second = table.append(1), table.append(2)
    base = f"{PREFIX}metadata/00001-1.gz.metadata.json"
    world.lake.objects[BUCKET, base] = gzip.compress(table.content(first))
    packed = gzip.compress(table.content(second).replace(first.encode(), base.encode()))
    assert world.upload(PREFIX + "metadata/" + name, text=packed) == "1 new snapshot of demo.orders"
    assert list(registered(world)) == table.snapshots[:1]


def test_t21_only_the_metadata_files_of_a_table_are_read(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots())}))
    for name in (
        "data/00000-0-1.parquet",
        "metadata/snap-1-0-2.avro",
        "metadata/1-m0.avro",
        "metadata/version-hint.text",
    ):
        assert world.upload(PREFIX + name) == "no metadata file of the table demo.orders"
    assert world.lake.reads == []


def test_t21_bad_metadata_fails_by_name_and_next_file_recovers(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    table.append(1)
    bad, content = table.keys()[-1], table.content(table.keys()[-1])
    with pytest.raises(BadMetadata, match=f"{bad}: expected the metadata of an Iceberg table in JSON"):
        world.upload(bad, text=content[:-20])
    table.append(2)
    table.deliver(world, table.keys()[-1])
    assert sorted(registered(world)) == sorted(table.snapshots)


def test_t21_a_metadata_file_deleted_meanwhile_is_skipped(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots())}))
    table.append(1)
    table.append(2)
    table.append(3)
    assert table.deliver(world, table.keys()[-1]) == [
        "no catalog or later metadata file confirms what is new in demo.orders"
    ]
    del world.lake.objects[BUCKET, table.keys()[-1]]
    assert _notified(world, table.keys()[-1], world.clock.now()) == "the metadata file of demo.orders is gone"


def _another_commit(metadata: dict[str, Any]) -> None:
    lost = metadata["snapshots"][-1]["snapshot-id"] + 1
    text = json.dumps(metadata).replace(str(metadata["snapshots"][-1]["snapshot-id"]), str(lost))
    metadata.clear()
    metadata.update(json.loads(text))


def _notified(world: World, key: str, at: int) -> str:
    from chalicelib.core.events.partitions import ObjectCreated
    from chalicelib.flow.ingest.objects import match_object

    return match_object(world.ports, ObjectCreated(BUCKET, key, at))


def test_t21_a_backfill_runs_known_snapshots_one_by_one(world: World, table: Orders) -> None:
    world.deploy(app({"each": on(snapshots(9))}, **SINGLE))
    table.append(1)
    table.append(2)
    table.deliver(world)
    with pytest.raises(SluiceError, match="expected snapshots of a table one by one"):
        begin(world, "each", partitions={"from": {"snapshot": "1"}, "to": {"snapshot": "2"}})
    with pytest.raises(SluiceError, match="expected a registered snapshot of demo.orders, got '1'"):
        begin(world, "each", partitions={"values": [{"snapshot": "1"}]})

    begin(world, "each", partitions={"values": [{"snapshot": table.snapshots[0]}]})
    world.settle()
    assert reported(world, "each") == [table.snapshots[:1]]


def test_t21_a_table_missing_in_glue_is_logged(world: World, table: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(app({"each": on(snapshots())}, glue_table="sales.order"))
    table.append(1)
    put_at = world.clock.now()
    with pytest.raises(NotCommittedYet):
        table.deliver(world, table.keys()[-1])
    doze(world, "3m")
    logged: list[Any] = []
    monkeypatch.setattr(logger, "error", lambda message, extra: logged.append((message, extra["expected"])))
    _notified(world, table.keys()[-1], put_at)
    expected = (
        "the table sales.order of the Glue catalog with its metadata under s3://lake-bucket/warehouse/sales/orders/"
    )
    assert logged == [("table not in the catalog", expected)]
