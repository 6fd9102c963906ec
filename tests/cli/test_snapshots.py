"""Iceberg tables on the command line (T21): their snapshots in the order of commits, and which ones count."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import View, dataset, past

NS = "/v1/namespaces/demo"


def table(**more: Any) -> View:
    answer = {"format": "iceberg", "keys": ["snapshot"], "operations": ["append", "overwrite"]}
    return {**dataset("demo.orders"), "prefix": "warehouse/sales/orders/", "ready": {}, **answer, **more}


def snapshot(number: str, minutes: float, operation: str, records: int | None) -> View:
    counted = {"added_data_files": 2, "added_records": records, "deleted_data_files": 0, "total_records": 12_500}
    return {
        "dataset": "demo.orders",
        "partition": {"snapshot": number},
        "path": "s3://lake/warehouse/sales/orders/",
        "ready_at": past(minutes=1),
        "put_at": past(minutes=minutes),
        "object": "warehouse/sales/orders/metadata/00001-1.metadata.json",
        "snapshot": {"id": number, "operation": operation, **counted},
    }


def test_t21_snapshots_are_listed_in_the_order_of_commits(api: PlayedApi, sluice: Sluice) -> None:
    items = [snapshot("119", 3.5, "overwrite", None), snapshot("988", 60.5, "append", 1_200)]
    api.lists |= {f"{NS}/datasets/orders/partitions": items}
    lines = [line.split() for line in sluice("datasets", "demo.orders").stdout.splitlines()]
    assert lines[0][:2] == ["SNAPSHOT", "OPERATION"]
    assert lines[1][:6] == ["988", "append", "2", "1,200", "0", "12,500"]
    assert (lines[2][:3], lines[2][4:6]) == (["119", "overwrite", "2"], ["0", "12,500"])


@pytest.mark.parametrize(
    ("more", "confirmed"),
    [
        ({}, "the next commit"),
        ({"single_writer": True}, "its metadata file, for the table has one writer"),
        ({"glue_table": "sales.orders"}, "the table sales.orders of the Glue catalog"),
    ],
)
def test_t21_a_table_shows_what_counts_and_what_confirms_it(
    api: PlayedApi, sluice: Sluice, more: dict[str, Any], confirmed: str
) -> None:
    api.play("GET", f"{NS}/datasets/orders", table(**more))
    api.lists |= {f"{NS}/datasets/orders/partitions": []}
    page = sluice("describe", "dataset", "demo.orders").stdout
    assert "s3://lake/warehouse/sales/orders/" in page
    assert "append or overwrite" in page
    assert confirmed in page
    api.lists |= {f"{NS}/datasets": [table(**more)]}
    assert "a commit" in sluice("datasets", "-n", "demo").stdout
