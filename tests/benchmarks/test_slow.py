"""The burst on less CPU: what its figures count (W11)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, slow
from infra.local import counts

RUN: dict[str, Any] = {
    "share": 0.5,
    "jobs": 10,
    "seconds": 2.0,
    "per_second": 5.0,
    "lateness_ms": {"p50": 1000, "p99": 1999, "max": 2000},
    "missed": 0,
    "doubled": 0,
    "cpu_before_s": {"Lambda burst": 1.0, "emulator": 2.0},
    "cpu_after_s": {"Lambda burst": 0.5, "Lambda check": 0.1},
    "calls_before": {"dynamodb:BatchGetItem": 1200},
    "calls_after": {"sqs:SendMessageBatch": 1, "dynamodb:BatchGetItem": 2},
}


def test_w11_calls_are_counted_by_second(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text('{"10": {"sqs:GET": 1}, "11": {"sqs:GET": 2, "s3:PUT": 5}, "12": {"s3:PUT": 1}}')
    assert slow.calls_between(counts.read(path), 10, 12) == {"s3:PUT": 5, "sqs:GET": 3}


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_w11_a_share_of_the_cpu_is_given_back(share: float) -> None:
    every = os.sched_getaffinity(0)
    with slow.limited_to(share):
        assert len(os.sched_getaffinity(0)) == max(1, round(len(every) * max(share, 0.5)))
    assert os.sched_getaffinity(0) == every


def test_w11_the_tables_have_a_column_for_each_share() -> None:
    tables = slow.tables({"slow": {"jobs": 10, "runs": [RUN, {**RUN, "share": 0.25, "calls_after": {"s3:PUT": 7}}]}})
    after = tables[-1]
    assert [str(column.header) for column in after.columns] == ["", "50%", "25%"]
    assert [list(column.cells) for column in after.columns][1:] == [["1", "2", "0"], ["0", "0", "7"]]


def test_w11_the_page_sums_the_parts() -> None:
    _, _, row = page.TABLES["slow"]({"slow": {"jobs": 10, "runs": [RUN]}}).splitlines()
    assert row.split("|")[1:-1] == [
        f" {cell} " for cell in ("50%", "2.0", "5.0", "1,000", "1,999", "0", "0", "3.0", "0.6", "1,200", "3")
    ]  # fmt: skip
