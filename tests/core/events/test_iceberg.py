"""The content of an Iceberg metadata file (T21), and the valid datasets of Iceberg tables."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import iceberg
from chalicelib.core.events.iceberg import BadMetadata, Metadata
from tests.core.builders import NOON
from tests.support.iceberg_files import BUCKET, PREFIX, TABLE, file, metadata, snapshot

ORDERS = Dataset.model_validate(TABLE)


def parsed(document: Any) -> Metadata:
    return iceberg.parse(json.dumps(document).encode())


def ids(document: Any) -> list[str]:
    return [each.id for each in iceberg.main(parsed(document))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("metadata/00003-9b1c.metadata.json", True),
        ("metadata/00003-9b1c.gz.metadata.json", True),
        ("metadata/00003-9b1c.metadata.json.gz", True),
        ("metadata/v3.metadata.json", True),
        ("metadata/snap-1-2-3.avro", False),
        ("metadata/00003-9b1c.metadata.json.crc", False),
        ("metadata/old/00003-9b1c.metadata.json", False),
        ("data/metadata/00003-9b1c.metadata.json", False),
        ("00003-9b1c.metadata.json", False),
        ("metadata/.metadata.json", False),
    ],
)
def test_t21_metadata_files_are_recognized_by_their_names(name: str, expected: bool) -> None:
    assert iceberg.is_metadata(ORDERS, PREFIX + name) is expected
    assert not iceberg.is_metadata(ORDERS, f"warehouse/sales/returns/{name}")


@pytest.mark.parametrize(
    ("name", "counted"), [("v3.metadata.json", True), ("v3.gz.metadata.json", True), ("00003-v3.metadata.json", False)]
)
def test_t21_a_table_without_a_catalog_counts_its_files(name: str, counted: bool) -> None:
    assert iceberg.is_counted(ORDERS, f"{PREFIX}metadata/{name}") is counted


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_t21_a_location_is_read_only_if_it_is_one_of_the_table(scheme: str) -> None:
    assert iceberg.key_of(ORDERS, f"{scheme}://{BUCKET}/{file(3)}") == file(3)
    for other in (f"{scheme}://other/{file(3)}", f"{scheme}://{BUCKET}/secret.metadata.json", f"file:///{file(3)}", ""):
        assert iceberg.key_of(ORDERS, other) is None


def test_t21_a_snapshot_has_what_its_summary_counts() -> None:
    first = snapshot(2**62, None, NOON, **{"added-data-files": "3", "deleted-data-files": "1", "total-records": "70"})
    [found] = iceberg.main(parsed(metadata(first)))
    assert (found.id, found.parent_id) == ("4611686018427387904", None)
    assert (found.sequence_number, found.committed_at, found.operation) == (2**62, NOON, "append")
    assert (found.added_data_files, found.added_records, found.added_files_size) == (3, 10, 50)
    assert (found.deleted_data_files, found.total_records) == (1, 70)


def test_t21_a_missing_field_is_zero_a_missing_summary_unknown() -> None:
    bare = {"snapshot-id": 1, "timestamp-ms": NOON}
    [answer] = iceberg.main(parsed(metadata({**bare, "summary": {"operation": "delete", "deleted-data-files": "2"}})))
    assert (answer.added_data_files, answer.added_files_size, answer.deleted_data_files, answer.total_records) == (
        0,
        0,
        2,
        None,
    )
    [old] = iceberg.main(parsed(metadata(bare)))
    assert (old.operation, old.added_data_files, old.sequence_number) == ("unknown", None, 0)
    assert iceberg.counts(ORDERS, old)
    [later] = iceberg.main(parsed(metadata({**bare, "summary": {"operation": "merge"}})))
    assert later.operation == "unknown"


def test_t21_main_follows_parents_of_the_current_snapshot_only() -> None:
    first, second, other, last = snapshot(1, None, 1), snapshot(2, 1, 2), snapshot(3, 1, 3), snapshot(4, 2, 4)
    assert ids(metadata(first, second, other, last)) == ["4", "2", "1"]
    assert ids(metadata(first, second, other, last, current=3)) == ["3", "1"]
    assert ids(metadata(second, other, last)) == ["4", "2"], "the first has expired"
    assert ids(metadata(first, current=-1)) == []
    assert ids({**metadata(first), "current-snapshot-id": None}) == []
    assert ids(metadata()) == []


def test_t21_a_cycle_of_parents_comes_to_an_end() -> None:
    assert ids(metadata(snapshot(1, 2, 1), snapshot(2, 1, 2))) == ["2", "1"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "in JSON"),
        (b"\xff\xfe\xfd", "in JSON"),
        (b"[" * 100_000, "in JSON"),
        (b"[]", "of an Iceberg table, got AttributeError"),
        (b'{"snapshots": [{}]}', "KeyError: 'snapshot-id'"),
        (b'{"snapshots": [{"snapshot-id": "x", "timestamp-ms": 1}]}', "ValueError"),
        (b'{"metadata-log": [1]}', "TypeError"),
        (b'{"current-snapshot-id": Infinity}', "OverflowError"),
        (b'{"current-snapshot-id": 9223372036854775808}', "to 9223372036854775807, got 9223372036854775808"),
        (b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": 253402300800000}]}', "to 253402300799999"),
        (b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": -1}]}', "from 0 to"),
        (b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": {"added-records": "-1"}}]}', "got -1"),
        (b'{"snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "summary": "append"}]}', "AttributeError"),
        (b"\x1f\x8bnothing", "that gzip can decompress"),
        (gzip.compress(b"{}" * 1000, mtime=0)[:-4], "got a truncated one"),
    ],
)
def test_t21_invalid_metadata_is_refused_with_a_sluice_error(content: bytes, expected: str) -> None:
    with pytest.raises(BadMetadata, match=expected.replace("(", r"\(")):
        iceberg.parse(content)


def test_t21_a_file_that_expands_to_too_much_is_not_decompressed() -> None:
    with pytest.raises(BadMetadata, match="at most 32000000 bytes"):
        iceberg.parse(gzip.compress(b" " * (iceberg.MAX_METADATA + 1)))


def test_t21_a_table_needs_only_its_location_and_counts_new_data() -> None:
    assert ORDERS.keys == ("snapshot",)
    assert ORDERS.operations == ("append", "overwrite")
    assert Dataset.model_validate(ORDERS.model_dump(mode="json")) == ORDERS


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"keys": ["day"]}, "keys"),
        ({"operations": []}, "operations"),
        ({"operations": ["insert"]}, "operations.0"),
        ({"ready": {"done_flag": "_SUCCESS"}}, "ready"),
        ({"count_overwrites": True}, "count_overwrites"),
        ({"glue_table": "orders"}, "glue_table"),
        ({"glue_table": "sales.orders", "single_writer": True}, "single_writer"),
        ({"format": "delta"}, "format"),
        ({"format": "files", "keys": ["day"], "glue_table": "sales.orders"}, "glue_table"),
        ({"format": "files", "keys": ["day"], "single_writer": True}, "single_writer"),
        ({"format": "files", "keys": ["day"], "operations": ["append"]}, "operations"),
        ({"format": "files"}, "keys"),
    ],
)
def test_t21_invalid_metadata_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    from pydantic import ValidationError

    from chalicelib.core.errors import from_validation

    with pytest.raises((ValidationError, SluiceError)) as raised:
        Dataset.model_validate({**TABLE, **changes})
    error = raised.value if isinstance(raised.value, SluiceError) else from_validation(raised.value)
    assert error.field == field
